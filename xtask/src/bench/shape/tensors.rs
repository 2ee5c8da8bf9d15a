//! Tensors of a shape's checkpoint, with their published names.

use super::{Experts, Family, Shape, Tower};

/// A tensor's name and shape.
pub(super) type Tensor = (String, Vec<usize>);

pub(super) fn of_shape(shape: &Shape) -> Vec<Tensor> {
    let model = if let Family::SmolVlm(_) = shape.family { "model.text_model" } else { "model" };
    let mut tensors = vec![(format!("{model}.embed_tokens.weight"), vec![shape.vocab, shape.hidden])];
    for layer in 0..shape.layers {
        let named = |(name, shape)| (format!("{model}.layers.{layer}.{name}"), shape);
        tensors.extend(of_layer(shape, layer).into_iter().map(named));
    }
    let norm = if let Family::Lfm2 { .. } = shape.family { "embedding_norm" } else { "norm" };
    tensors.push((format!("{model}.{norm}.weight"), vec![shape.hidden]));
    if let Family::SmolVlm(tower) = shape.family {
        tensors.extend(of_tower(tower, shape.hidden));
    }
    tensors
}

/// Tensors of a tower and its projector to rows of `width`.
fn of_tower(tower: Tower, width: usize) -> Vec<Tensor> {
    let Tower { hidden, intermediate, image, patch, scale, .. } = tower;
    let mut tensors = Vec::new();
    let mut linear = |name: String, shape: Vec<usize>, bias: bool| {
        let out = shape[..1].to_vec();
        tensors.push((format!("{name}.weight"), shape));
        if bias {
            tensors.push((format!("{name}.bias"), out));
        }
    };
    let root = "model.vision_model";
    linear(format!("{root}.embeddings.patch_embedding"), vec![hidden, 3, patch, patch], true);
    linear(format!("{root}.embeddings.position_embedding"), vec![(image / patch).pow(2), hidden], false);
    for layer in 0..tower.layers {
        for (name, shape) in [
            ("layer_norm1", vec![hidden]),
            ("self_attn.q_proj", vec![hidden, hidden]),
            ("self_attn.k_proj", vec![hidden, hidden]),
            ("self_attn.v_proj", vec![hidden, hidden]),
            ("self_attn.out_proj", vec![hidden, hidden]),
            ("layer_norm2", vec![hidden]),
            ("mlp.fc1", vec![intermediate, hidden]),
            ("mlp.fc2", vec![hidden, intermediate]),
        ] {
            linear(format!("{root}.encoder.layers.{layer}.{name}"), shape, true);
        }
    }
    linear(format!("{root}.post_layernorm"), vec![hidden], true);
    let projection = "model.connector.modality_projection.proj".to_owned();
    linear(projection, vec![width, hidden * scale * scale], false);
    tensors
}

/// A tensor of a layer, with its name inside the layer.
type LayerTensor = (&'static str, Vec<usize>);

fn of_layer(shape: &Shape, layer: usize) -> Vec<LayerTensor> {
    const NORMS: [&str; 2] = ["input_layernorm.weight", "post_attention_layernorm.weight"];
    const HEAD_NORMS: [&str; 2] = ["self_attn.q_norm.weight", "self_attn.k_norm.weight"];
    let vectors = |names: [_; 2], len| names.map(|name| (name, vec![len])).to_vec();
    let norms = vectors(NORMS, shape.hidden);
    let head_norms = vectors(HEAD_NORMS, shape.head_dim);
    match shape.family {
        Family::Llama | Family::SmolVlm(_) => [norms, attention(shape, OUTPUT), dense(shape, DENSE)].concat(),
        Family::Qwen3 => [norms, head_norms, attention(shape, OUTPUT), dense(shape, DENSE)].concat(),
        Family::Qwen3Moe(experts) => {
            [norms, head_norms, attention(shape, OUTPUT), qwen3_experts(shape, experts)].concat()
        }
        Family::GptOss(experts) => {
            [norms, gpt_oss_attention(shape), gpt_oss_experts(shape, experts)].concat()
        }
        Family::Gemma3 { .. } => {
            let more = ["pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"];
            let more = vectors(more, shape.hidden);
            [norms, more, head_norms, attention(shape, OUTPUT), dense(shape, DENSE)].concat()
        }
        Family::Lfm2 { taps, attention } => lfm2_layer(shape, taps, attention.contains(&layer)),
    }
}

const OUTPUT: &str = "self_attn.o_proj.weight";
const DENSE: [&str; 3] = ["mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"];

/// The four attention projections; `output` is the name of the last.
fn attention(shape: &Shape, output: &'static str) -> Vec<LayerTensor> {
    let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
    vec![
        ("self_attn.q_proj.weight", vec![q, shape.hidden]),
        ("self_attn.k_proj.weight", vec![kv, shape.hidden]),
        ("self_attn.v_proj.weight", vec![kv, shape.hidden]),
        (output, vec![shape.hidden, q]),
    ]
}

/// A gated MLP, with the names of its gate, up and down projections.
fn dense(shape: &Shape, [gate, up, down]: [&'static str; 3]) -> Vec<LayerTensor> {
    let (hidden, inner) = (shape.hidden, shape.intermediate);
    vec![(gate, vec![inner, hidden]), (up, vec![inner, hidden]), (down, vec![hidden, inner])]
}

/// Experts in one tensor per projection, as in converted folders.
fn qwen3_experts(shape: &Shape, Experts { count, .. }: Experts) -> Vec<LayerTensor> {
    let (hidden, inner) = (shape.hidden, shape.intermediate);
    vec![
        ("mlp.gate.weight", vec![count, hidden]),
        ("mlp.experts.gate_proj.weight", vec![count * inner, hidden]),
        ("mlp.experts.up_proj.weight", vec![count * inner, hidden]),
        ("mlp.experts.down_proj.weight", vec![count * hidden, inner]),
    ]
}

/// Attention with biases and sinks.
fn gpt_oss_attention(shape: &Shape) -> Vec<LayerTensor> {
    let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
    let mut tensors = attention(shape, OUTPUT);
    tensors.extend([
        ("self_attn.q_proj.bias", vec![q]),
        ("self_attn.k_proj.bias", vec![kv]),
        ("self_attn.v_proj.bias", vec![kv]),
        ("self_attn.o_proj.bias", vec![shape.hidden]),
        ("self_attn.sinks", vec![shape.heads]),
    ]);
    tensors
}

/// MXFP4 blocks of 32 columns in 16 bytes, their exponents, biases, and a router.
fn gpt_oss_experts(shape: &Shape, Experts { count, .. }: Experts) -> Vec<LayerTensor> {
    let (hidden, inner) = (shape.hidden, shape.intermediate);
    vec![
        ("mlp.router.weight", vec![count, hidden]),
        ("mlp.router.bias", vec![count]),
        ("mlp.experts.gate_up_proj_blocks", vec![count, 2 * inner, hidden / 32, 16]),
        ("mlp.experts.gate_up_proj_scales", vec![count, 2 * inner, hidden / 32]),
        ("mlp.experts.gate_up_proj_bias", vec![count, 2 * inner]),
        ("mlp.experts.down_proj_blocks", vec![count, hidden, inner / 32, 16]),
        ("mlp.experts.down_proj_scales", vec![count, hidden, inner / 32]),
        ("mlp.experts.down_proj_bias", vec![count, hidden]),
    ]
}

fn lfm2_layer(shape: &Shape, taps: usize, attends: bool) -> Vec<LayerTensor> {
    let hidden = shape.hidden;
    let mut tensors = vec![("operator_norm.weight", vec![hidden]), ("ffn_norm.weight", vec![hidden])];
    if attends {
        let norms = ["self_attn.q_layernorm.weight", "self_attn.k_layernorm.weight"];
        tensors.extend(norms.map(|name| (name, vec![shape.head_dim])));
        tensors.extend(attention(shape, "self_attn.out_proj.weight"));
    } else {
        tensors.extend([
            ("conv.in_proj.weight", vec![3 * hidden, hidden]),
            ("conv.conv.weight", vec![hidden, 1, taps]),
            ("conv.out_proj.weight", vec![hidden, hidden]),
        ]);
    }
    let names = ["feed_forward.w1.weight", "feed_forward.w3.weight", "feed_forward.w2.weight"];
    tensors.extend(dense(shape, names));
    tensors
}
