//! Falcon: LayerNorm, an ungated feed-forward block; both blocks read one norm (7B, 11B) or one each (40B),
//! and queries, keys and values of each group of heads follow each other in one tensor. Source: The Falcon
//! Series of Open Language Models (arXiv 2311.16867); `config.json` of tiiuae/falcon-7b, falcon-40b and
//! falcon-11B; `FalconConfig` of transformers for the defaults.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation, hugging_face_name};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::GgufArchitecture;
use crate::spec::{Bias, DecoderSpec, Mixer, Mlp, NormKind, NormPlacement};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["falcon"],
    goldens: &["falcon-tiny", "falcon-tiny-groups", "falcon-tiny-one-norm", "falcon-tiny-serial"],
    spec,
    weight_name,
    locations,
    gguf: &[&GGUF],
    renamed_keys: &[
        ("n_embed", "hidden_size"),
        ("num_kv_heads", "num_key_value_heads"),
        ("ffn_hidden_size", "intermediate_size"),
        ("activation", "hidden_act"),
    ],
    defaults: r#"{
        "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "max_position_embeddings": 2048, "layer_norm_epsilon": 1e-5, "rms_norm_eps": 1e-5, "hidden_act": "gelu",
        "tie_word_embeddings": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_epsilon")],
    read: |model, config| {
        // The form of 40B and 11B can express all of the files' numbers of heads and norms.
        let norms = if model.tensor("blk.0.attn_norm_2.weight").is_some() { 2 } else { 1 };
        config.insert("new_decoder_architecture".to_owned(), true.into());
        config.insert("num_ln_in_parallel_attn".to_owned(), norms.into());
        config.insert("bias".to_owned(), model.tensor("blk.0.attn_qkv.bias").is_some().into());
        Ok(())
    },
    write: |_, _, settings| {
        settings.put("tensor_data_layout", GgufEntry::Text("jploski".to_owned()));
        Ok(())
    },
    tensors: &[&[
        ("attn_norm", "ln_mlp"),
        ("attn_norm_2", "ln_attn"),
        ("attn_output", "self_attention.dense"),
        ("attn_qkv", "self_attention.qkv_proj"),
        ("ffn_down", "mlp.dense_4h_to_h"),
        ("ffn_up", "mlp.dense_h_to_4h"),
        ("output_norm", "model.ln_f"),
        ("token_embd", "model.word_embeddings"),
    ]],
    ..GgufArchitecture::new("falcon", "falcon")
};

/// Keys of this architecture alone; null is the default.
#[derive(Deserialize)]
struct Keys {
    /// The form of 40B and 11B, which ignores the next two keys. Default: false.
    new_decoder_architecture: Option<bool>,
    /// True if all query heads share one key head. Default: true.
    multi_query: Option<bool>,
    /// True if both blocks read the same rows. Default: true.
    parallel_attn: Option<bool>,
    /// Norms of a layer whose blocks are parallel, 1 or 2. Default: 2 in the form of 40B, otherwise 1.
    num_ln_in_parallel_attn: Option<usize>,
    /// Bias of all projections. Default: false.
    bias: Option<bool>,
    /// ALiBi in place of RoPE. Default: false.
    alibi: Option<bool>,
}

impl Keys {
    fn placement(&self) -> Result<NormPlacement> {
        let (new, parallel) =
            (self.new_decoder_architecture == Some(true), self.parallel_attn != Some(false));
        match (new, parallel, self.num_ln_in_parallel_attn) {
            (true, false, _) => {
                Err(unsupported("parallel_attn", false, "true, with new_decoder_architecture"))
            }
            (true, true, None | Some(2)) => Ok(NormPlacement::ParallelOwn),
            (_, true, None | Some(1)) => Ok(NormPlacement::Parallel),
            (false, false, _) => Ok(NormPlacement::Pre),
            (new, true, Some(norms)) => {
                let known = if new { "1, 2" } else { "1, without new_decoder_architecture" };
                Err(unsupported("num_ln_in_parallel_attn", norms, known))
            }
        }
    }

    fn num_kv_heads(&self, config: &ModelConfig) -> usize {
        match (self.new_decoder_architecture, self.multi_query) {
            (Some(true), _) => config.num_kv_heads(),
            (_, Some(false)) => config.num_attention_heads,
            _ => 1,
        }
    }
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    if keys.alibi == Some(true) {
        return Err(unsupported("alibi", true, "false"));
    }
    let bias = keys.bias == Some(true);
    let config = &ModelConfig {
        attention_bias: bias,
        mlp_bias: bias,
        head_dim: None,
        num_key_value_heads: Some(keys.num_kv_heads(config)),
        ..config.with_norm_eps("layer_norm_epsilon")?
    };
    let mut spec = DecoderSpec::llama(config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    let (mlp, norms) = (Mlp::plain(config)?, keys.placement()?);
    for layer in &mut spec.layers {
        (layer.mlp, layer.norms) = (mlp.clone(), norms);
    }
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.word_embeddings.weight".into(),
        Param::OutputNorm => return "model.ln_f.weight".into(),
        Param::OutputNormBias => return "model.ln_f.bias".into(),
        Param::Layer(layer, param) => (layer, param),
        other => return hugging_face_name(other),
    };
    let module = match param {
        LayerParam::MixerPreNorm => "ln_attn.weight".to_owned(),
        LayerParam::MixerPreNormBias => "ln_attn.bias".to_owned(),
        LayerParam::MlpPreNorm => "ln_mlp.weight".to_owned(),
        LayerParam::MlpPreNormBias => "ln_mlp.bias".to_owned(),
        // Our own names, which no file has: queries, keys and values are in one tensor.
        LayerParam::Query(piece) => format!("self_attention.q_proj.{piece}"),
        LayerParam::Key(piece) => format!("self_attention.k_proj.{piece}"),
        LayerParam::Value(piece) => format!("self_attention.v_proj.{piece}"),
        LayerParam::AttentionOutput(piece) => format!("self_attention.dense.{piece}"),
        LayerParam::Up(piece) => format!("mlp.dense_h_to_4h.{piece}"),
        LayerParam::Down(piece) => format!("mlp.dense_4h_to_h.{piece}"),
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{module}")
}

/// The fused projection has the rows of one group of heads after those of another; in GGUF files all queries
/// precede all keys, and these all values. A norm of its own name is the only one of its layer.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let whole = |tensor: &str| vec![TensorLocation::whole(format!("model.layers.{layer}.{tensor}"))];
    // The file's single norm is under the name of the second one in GGUF files.
    let single = |piece: Piece| {
        let names = ["input_layernorm", "ln_mlp"];
        names.into_iter().flat_map(|name| whole(&format!("{name}.{piece}"))).collect::<Vec<_>>()
    };
    let is_single = spec.layers[layer].norms != NormPlacement::ParallelOwn;
    match param {
        LayerParam::MixerPreNorm if is_single => single(Piece::Weight),
        LayerParam::MixerPreNormBias if is_single => single(Piece::Bias),
        LayerParam::MlpPreNorm if is_single => whole("post_attention_layernorm.weight"),
        LayerParam::MlpPreNormBias if is_single => whole("post_attention_layernorm.bias"),
        LayerParam::Query(piece) => fused(spec, layer, 0, piece),
        LayerParam::Key(piece) => fused(spec, layer, 1, piece),
        LayerParam::Value(piece) => fused(spec, layer, 2, piece),
        _ => Vec::new(),
    }
}

/// Locations of queries (0), keys (1) or values (2) in the fused projection.
fn fused(spec: &DecoderSpec, layer: usize, part: usize, piece: Piece) -> Vec<TensorLocation> {
    let Mixer::Attention(attention) = &spec.layers[layer].mixer else { return Vec::new() };
    let (groups, [queries, keys]) = (attention.num_kv_heads, attention.widths());
    let of = queries + 2 * keys;
    let starts = |queries: usize, keys: usize| [0, queries, queries + keys, queries + 2 * keys];
    let rows = |starts: [usize; 4]| starts[part]..starts[part + 1];
    let (in_group, width) = (rows(starts(queries / groups, keys / groups)), of / groups);
    let in_groups = (0..groups).map(|group| group * width + in_group.start..group * width + in_group.end);
    let name = |tensor: &str| format!("model.layers.{layer}.self_attention.{tensor}.{piece}");
    vec![
        TensorLocation::parts(&name("query_key_value"), in_groups, of),
        TensorLocation::part(name("qkv_proj"), rows(starts(queries, keys)), of),
    ]
}
