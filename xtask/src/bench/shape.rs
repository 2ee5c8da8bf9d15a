//! Public model shapes, and checkpoints of them with random weights.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::process;

/// The sizes of a decoder with a tied output head.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    model_type: &'static str,
    layers: usize,
    hidden: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    intermediate: usize,
    vocab: usize,
    context: usize,
    rope_theta: f64,
    /// The layers with attention; the others have a short convolution. `None`: all.
    attention: Option<&'static [usize]>,
    /// What each layer has in place of a feed-forward block.
    experts: Option<ExpertShape>,
}

/// Experts of `Shape::intermediate` inside.
#[derive(Clone, Copy)]
struct ExpertShape {
    count: usize,
    /// How many a row goes through.
    per_row: usize,
}

/// Inputs of a short convolution.
const TAPS: usize = 3;

/// From the models' cards.
const SHAPES: &[Shape] = &[
    Shape {
        name: "qwen3-0.6b",
        model_type: "qwen3",
        layers: 28,
        hidden: 1024,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        intermediate: 3072,
        vocab: 151_936,
        context: 40_960,
        rope_theta: 1e6,
        attention: None,
        experts: None,
    },
    Shape {
        name: "qwen3-1.7b",
        model_type: "qwen3",
        layers: 28,
        hidden: 2048,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        intermediate: 6144,
        vocab: 151_936,
        context: 40_960,
        rope_theta: 1e6,
        attention: None,
        experts: None,
    },
    Shape {
        name: "llama3.2-1b",
        model_type: "llama",
        layers: 16,
        hidden: 2048,
        heads: 32,
        kv_heads: 8,
        head_dim: 64,
        intermediate: 8192,
        vocab: 128_256,
        context: 131_072,
        rope_theta: 5e5,
        attention: None,
        experts: None,
    },
    Shape {
        name: "lfm2-350m",
        model_type: "lfm2",
        layers: 16,
        hidden: 1024,
        heads: 16,
        kv_heads: 8,
        head_dim: 64,
        intermediate: 4608,
        vocab: 65_536,
        context: 128_000,
        rope_theta: 1e6,
        attention: Some(&[2, 5, 8, 10, 12, 14]),
        experts: None,
    },
    // The layers of Qwen3-30B-A3B and of gpt-oss-20b, but fewer of them, with fewer experts and a smaller vocabulary.
    Shape {
        name: "qwen3-moe-small",
        model_type: "qwen3_moe",
        layers: 6,
        hidden: 2048,
        heads: 32,
        kv_heads: 4,
        head_dim: 128,
        intermediate: 768,
        vocab: 32_768,
        context: 40_960,
        rope_theta: 1e6,
        attention: None,
        experts: Some(ExpertShape { count: 32, per_row: 8 }),
    },
    Shape {
        name: "gpt-oss-small",
        model_type: "gpt_oss",
        layers: 4,
        hidden: 2880,
        heads: 64,
        kv_heads: 8,
        head_dim: 64,
        intermediate: 2880,
        vocab: 32_768,
        context: 131_072,
        rope_theta: 150_000.0,
        attention: None,
        experts: Some(ExpertShape { count: 16, per_row: 4 }),
    },
    // Not a public one: for trying the bench itself.
    Shape {
        name: "tiny",
        model_type: "qwen3",
        layers: 2,
        hidden: 128,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        intermediate: 256,
        vocab: 1024,
        context: 8192,
        rope_theta: 1e6,
        attention: None,
        experts: None,
    },
];

pub fn names() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// The folder with the checkpoint of a shape, written when it is not there yet.
pub fn checkpoint(name: &str) -> Result<PathBuf> {
    let shape = SHAPES.iter().find(|shape| shape.name == name).with_context(|| {
        format!("no shape is called {name}; known: {}", names().collect::<Vec<_>>().join(", "))
    })?;
    let folder = process::root().join("target/bench").join(name);
    if !folder.join("config.json").exists() {
        eprintln!("writing a checkpoint with random weights to target/bench/{name}");
        fs::create_dir_all(&folder)?;
        write_weights(shape, &folder.join("model.safetensors"))?;
        fs::write(folder.join("tokenizer.json"), tokenizer(shape.vocab).to_string())?;
        // The last file: when it is there, so are the others.
        fs::write(folder.join("config.json"), config(shape).to_string())?;
    }
    Ok(folder)
}

fn config(shape: &Shape) -> Value {
    let mut config = json!({
        "model_type": shape.model_type,
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": true,
        "attention_bias": false,
        "torch_dtype": "bfloat16",
        "eos_token_id": 0,
        // Keys of LFM2.
        "norm_eps": 1e-6,
        "block_auto_adjust_ff_dim": false,
        "full_attn_idxs": shape.attention,
        "conv_L_cache": TAPS,
    });
    if let Some(ExpertShape { count, per_row }) = shape.experts {
        config["num_experts_per_tok"] = json!(per_row);
        if shape.model_type == "gpt_oss" {
            config["num_local_experts"] = json!(count);
            config["quantization_config"] = json!({"quant_method": "mxfp4"});
        } else {
            config["num_experts"] = json!(count);
            config["moe_intermediate_size"] = json!(shape.intermediate);
            config["norm_topk_prob"] = json!(true);
        }
    }
    config
}

/// A tensor's name and shape.
type Tensor = (String, Vec<usize>);

fn tensors(shape: &Shape) -> Vec<Tensor> {
    let mut tensors = vec![("model.embed_tokens.weight".to_owned(), vec![shape.vocab, shape.hidden])];
    for layer in 0..shape.layers {
        let of_layer = if shape.model_type == "lfm2" { lfm2_layer(shape, layer) } else { llama_layer(shape) };
        let named = |(name, shape)| (format!("model.layers.{layer}.{name}.weight"), shape);
        tensors.extend(of_layer.into_iter().map(named));
        if let ("gpt_oss", Some(experts)) = (shape.model_type, shape.experts) {
            tensors.extend(gpt_oss_experts(shape, experts, layer));
        }
    }
    let norm = if shape.model_type == "lfm2" { "embedding_norm" } else { "norm" };
    tensors.push((format!("model.{norm}.weight"), vec![shape.hidden]));
    tensors
}

/// A tensor of a layer, by its name there.
type LayerTensor = (&'static str, Vec<usize>);

fn llama_layer(shape: &Shape) -> Vec<LayerTensor> {
    let Shape { hidden, head_dim, intermediate: inner, .. } = *shape;
    let mut tensors = attention(shape, "self_attn.o_proj");
    if shape.model_type.starts_with("qwen3") {
        tensors.extend(["self_attn.q_norm", "self_attn.k_norm"].map(|name| (name, vec![head_dim])));
    }
    tensors.extend([("input_layernorm", vec![hidden]), ("post_attention_layernorm", vec![hidden])]);
    match (shape.experts, shape.model_type) {
        (None, _) => tensors.extend([
            ("mlp.gate_proj", vec![inner, hidden]),
            ("mlp.up_proj", vec![inner, hidden]),
            ("mlp.down_proj", vec![hidden, inner]),
        ]),
        (Some(_), "gpt_oss") => {}
        (Some(ExpertShape { count, .. }), _) => tensors.extend([
            ("mlp.gate", vec![count, hidden]),
            ("mlp.experts.gate_proj", vec![count * inner, hidden]),
            ("mlp.experts.up_proj", vec![count * inner, hidden]),
            ("mlp.experts.down_proj", vec![count * hidden, inner]),
        ]),
    }
    tensors
}

/// As they are published: MXFP4 codes of 32 columns in 16 bytes, their exponents, biases, a router; and sinks.
fn gpt_oss_experts(shape: &Shape, ExpertShape { count, .. }: ExpertShape, layer: usize) -> Vec<Tensor> {
    let Shape { hidden, intermediate: inner, heads, .. } = *shape;
    let tensors = [
        ("self_attn.sinks", vec![heads]),
        ("mlp.router.weight", vec![count, hidden]),
        ("mlp.router.bias", vec![count]),
        ("mlp.experts.gate_up_proj_blocks", vec![count, 2 * inner, hidden / 32, 16]),
        ("mlp.experts.gate_up_proj_scales", vec![count, 2 * inner, hidden / 32]),
        ("mlp.experts.gate_up_proj_bias", vec![count, 2 * inner]),
        ("mlp.experts.down_proj_blocks", vec![count, hidden, inner / 32, 16]),
        ("mlp.experts.down_proj_scales", vec![count, hidden, inner / 32]),
        ("mlp.experts.down_proj_bias", vec![count, hidden]),
    ];
    tensors.map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)).into()
}

fn lfm2_layer(shape: &Shape, layer: usize) -> Vec<LayerTensor> {
    let Shape { hidden, head_dim, intermediate, .. } = *shape;
    let mut tensors = if shape.attention.is_none_or(|layers| layers.contains(&layer)) {
        let mut tensors = attention(shape, "self_attn.out_proj");
        tensors.extend(["self_attn.q_layernorm", "self_attn.k_layernorm"].map(|name| (name, vec![head_dim])));
        tensors
    } else {
        vec![
            ("conv.in_proj", vec![3 * hidden, hidden]),
            ("conv.conv", vec![hidden, 1, TAPS]),
            ("conv.out_proj", vec![hidden, hidden]),
        ]
    };
    tensors.extend([
        ("operator_norm", vec![hidden]),
        ("ffn_norm", vec![hidden]),
        ("feed_forward.w1", vec![intermediate, hidden]),
        ("feed_forward.w3", vec![intermediate, hidden]),
        ("feed_forward.w2", vec![hidden, intermediate]),
    ]);
    tensors
}

/// The four projections around attention, the last under this name.
fn attention(shape: &Shape, output: &'static str) -> Vec<LayerTensor> {
    let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
    vec![
        ("self_attn.q_proj", vec![q, shape.hidden]),
        ("self_attn.k_proj", vec![kv, shape.hidden]),
        ("self_attn.v_proj", vec![kv, shape.hidden]),
        (output, vec![shape.hidden, q]),
    ]
}

fn write_weights(shape: &Shape, path: &Path) -> Result<()> {
    let tensors = tensors(shape);
    let mut header = Map::new();
    let mut end = 0;
    for (name, shape) in &tensors {
        let start = end;
        let (dtype, size) = if is_bytes(name) { ("U8", 1) } else { ("BF16", 2) };
        end += size * shape.iter().product::<usize>();
        header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}));
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut state = 1;
    for (name, shape) in &tensors {
        match shape[..] {
            // Codes of any kind, times 2^-7.
            _ if name.ends_with("_blocks") => (0..shape.iter().product::<usize>())
                .try_for_each(|_| file.write_all(&normal(&mut state).to_bits().to_le_bytes()[1..2]))?,
            _ if name.ends_with("_scales") => {
                (0..shape.iter().product::<usize>()).try_for_each(|_| file.write_all(&[127 - 7]))?;
            }
            [len] => (0..len).try_for_each(|_| file.write_all(&bf16(1.0)))?,
            _ => (0..shape.iter().product::<usize>())
                .try_for_each(|_| file.write_all(&bf16(0.02 * normal(&mut state))))?,
        }
    }
    Ok(file.into_inner()?.sync_all()?)
}

/// Whether a tensor's elements are bytes.
fn is_bytes(name: &str) -> bool {
    name.ends_with("_blocks") || name.ends_with("_scales")
}

/// The upper half of a float.
fn bf16(x: f32) -> [u8; 2] {
    ((x.to_bits() >> 16) as u16).to_le_bytes()
}

/// About normal, with variance 1: the sum of four uniform numbers.
fn normal(state: &mut u64) -> f32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let bits = *state ^ (*state >> 29);
    let sum: i64 = (0..4).map(|i| (bits >> (16 * i) & 0xffff) as i64).sum();
    (sum - 2 * 0xffff) as f32 * (1.732_050_8 / 65_536.0)
}

/// A byte-level BPE tokenizer of so many entries: 256 bytes, then entries that are merged of an earlier one and a letter.
fn tokenizer(vocab: usize) -> Value {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut tokens: Vec<String> = (0..=u8::MAX).map(|byte| char_of_byte(byte).to_string()).collect();
    let mut merges = Vec::new();
    for i in 0..vocab.saturating_sub(tokens.len()) {
        let (left, right) = (tokens[i / LETTERS.len()].clone(), char::from(LETTERS[i % LETTERS.len()]));
        tokens.push(format!("{left}{right}"));
        merges.push(json!([left, right.to_string()]));
    }
    let vocab: Map<String, Value> =
        tokens.into_iter().enumerate().map(|(id, token)| (token, json!(id))).collect();
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": merges,
        },
    })
}

/// The character that stands for a byte in byte-level vocabularies: itself where it can be seen, otherwise one from U+0100 on.
fn char_of_byte(byte: u8) -> char {
    let seen = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if seen(byte) {
        return char::from(byte);
    }
    let unseen_before = (0..byte).filter(|&byte| !seen(byte)).count() as u32;
    char::from_u32(0x100 + unseen_before).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_has_as_many_entries_as_asked_for() {
        let tokenizer = tokenizer(5000);
        assert_eq!(tokenizer["model"]["vocab"].as_object().map(Map::len), Some(5000));
        assert_eq!(char_of_byte(b' '), 'Ġ');
    }

    #[test]
    fn weights_are_about_normal() {
        let mut state = 1;
        let values: Vec<f32> = (0..100_000).map(|_| normal(&mut state)).collect();
        let mean = values.iter().sum::<f32>() / 1e5;
        let variance = values.iter().map(|x| x * x).sum::<f32>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
