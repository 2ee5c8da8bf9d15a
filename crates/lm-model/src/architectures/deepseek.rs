//! DeepSeek-V2 and V3: latent attention (MLA); experts with shared ones in all layers but the first. V3 and
//! Kimi K2 route by sigmoids, with a correction, V2 by a softmax. Source: DeepSeek-V2 (arXiv 2405.04434),
//! DeepSeek-V3 (arXiv 2412.19437); `config.json` of deepseek-ai/DeepSeek-V2-Lite and deepseek-ai/DeepSeek-V3;
//! `modeling_deepseek_v2.py` and `modeling_deepseek_v3.py` of transformers 5.23.

use std::ops::Range;

use lm_formats::Result;
use lm_kernels::RopePairing;
use serde::Deserialize;

use super::deepseek_moe::{RouterKind, add_experts, weight_name};
use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};
use crate::config::{ModelConfig, RopeParameters, invalid};
use crate::spec::expert_tensors::{self, PROJECTIONS};
use crate::spec::{DecoderSpec, LatentAttentionLayer, Mixer, RopeSpec};

pub(super) const V2: Architecture = Architecture {
    model_types: &["deepseek_v2"],
    goldens: &["deepseek-v2-tiny", "deepseek-v2-tiny-groups", "deepseek-v2-tiny-all"],
    spec: |config| with_experts(config, RouterKind::Softmax),
    weight_name,
    locations,
    defaults: r#"{
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "v_head_dim": 128, "rope_interleave": true, "first_k_dense_replace": 0, "moe_intermediate_size": 1407,
        "n_routed_experts": 64, "n_shared_experts": 2, "topk_method": "greedy", "norm_topk_prob": false,
        "routed_scaling_factor": 1.0
    }"#,
    ..BASE
};

pub(super) const V3: Architecture = Architecture {
    model_types: &["deepseek_v3"],
    goldens: &["deepseek-v3-tiny", "deepseek-v3-tiny-direct", "deepseek-v3-tiny-halves"],
    spec: |config| with_experts(config, RouterKind::Sigmoid),
    weight_name,
    locations,
    layers_ahead: true,
    defaults: r#"{
        "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
        "num_attention_heads": 128, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
        "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "v_head_dim": 128, "rope_interleave": true, "first_k_dense_replace": 3, "moe_intermediate_size": 2048,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
        "norm_topk_prob": true, "routed_scaling_factor": 2.5
    }"#,
    ..BASE
};

/// Epsilon of the norms within latent attention, whatever `rms_norm_eps` is.
const LATENT_NORM_EPS: f32 = 1e-6;

/// Maximum of head counts and widths, beyond any model, so that no product of sizes overflows.
const MAX_SIZE: usize = 1 << 16;

/// Keys of latent attention.
#[derive(Deserialize)]
struct Keys {
    kv_lora_rank: usize,
    q_lora_rank: Option<usize>,
    qk_rope_head_dim: usize,
    qk_nope_head_dim: usize,
    v_head_dim: usize,
    /// True if RoPE rotates pairs of adjacent elements.
    rope_interleave: bool,
}

fn with_experts(config: &ModelConfig, router: RouterKind) -> Result<DecoderSpec> {
    let mut spec = spec(config)?;
    add_experts(config, router, &mut spec)?;
    Ok(spec)
}

/// Builds the spec of a decoder with latent attention and dense feed-forward blocks.
pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    for (key, size) in [
        ("kv_lora_rank", keys.kv_lora_rank),
        ("q_lora_rank", keys.q_lora_rank.unwrap_or(1)),
        ("qk_rope_head_dim", keys.qk_rope_head_dim),
        ("qk_nope_head_dim", keys.qk_nope_head_dim),
        ("v_head_dim", keys.v_head_dim),
    ] {
        if !(1..=MAX_SIZE).contains(&size) {
            return Err(invalid(key, size, format!("1 to {MAX_SIZE}")));
        }
    }
    let (key, parameters) = config.rope_parameters();
    let context = config.max_position_embeddings;
    let rope = RopeSpec::from_parameters(key, &parameters, keys.qk_rope_head_dim, context)?;
    let pairing = if keys.rope_interleave { RopePairing::Adjacent } else { RopePairing::HalfSplit };
    // Heads of the rotated width, as in the reference; there are no key and value heads.
    let plain = ModelConfig { head_dim: Some(keys.qk_rope_head_dim), ..config.without_rope() };
    let attention = LatentAttentionLayer {
        num_heads: config.num_attention_heads,
        nope_dim: keys.qk_nope_head_dim,
        rope_dim: keys.qk_rope_head_dim,
        value_dim: keys.v_head_dim,
        latent_dim: keys.kv_lora_rank,
        query_rank: keys.q_lora_rank,
        scale: scale(keys.qk_nope_head_dim + keys.qk_rope_head_dim, &parameters) as f32,
        norm_eps: LATENT_NORM_EPS,
        rope: 0,
        bias: config.attention_bias.into(),
    };
    let mut spec = DecoderSpec::llama(&plain)?;
    spec.context_len = rope.context_len(context);
    spec.ropes = vec![RopeSpec { pairing, ..rope }];
    for layer in &mut spec.layers {
        layer.mixer = Mixer::LatentAttention(attention.clone());
    }
    Ok(spec)
}

/// Factor on the scores: YaRN with `mscale_all_dim` has another, squared.
fn scale(head_dim: usize, rope: &RopeParameters) -> f64 {
    let plain = (head_dim as f64).sqrt().recip();
    let weight = rope.mscale_all_dim.filter(|_| rope.kind() != "default").unwrap_or(0.0);
    match rope.factor {
        Some(factor) if weight != 0.0 && factor > 1.0 => plain * (0.1 * weight * factor.ln() + 1.0).powi(2),
        _ => plain,
    }
}

/// Locations of experts, and of the parameters of latent attention, whose rows are in another order in the
/// files: rotated parts follow the others, and the key and value projections of a head each other.
pub(super) fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, of_layer) = param else { return Vec::new() };
    let Mixer::LatentAttention(attention) = &spec.layers[layer].mixer else { return Vec::new() };
    let LatentAttentionLayer { num_heads, nope_dim, rope_dim, value_dim, latent_dim, .. } = *attention;
    let name = |module: &str, piece| {
        let piece = if piece == Piece::Weight { "weight" } else { "bias" };
        format!("model.layers.{layer}.self_attn.{module}.{piece}")
    };
    let (query, up) = (nope_dim + rope_dim, nope_dim + value_dim);
    match of_layer {
        LayerParam::LatentQuery(piece) => {
            let module = if attention.query_rank.is_some() { "q_b_proj" } else { "q_proj" };
            let rows =
                (0..num_heads).flat_map(|head| rotated_first(attention, head * query..(head + 1) * query));
            vec![TensorLocation::parts(&name(module, piece), rows, num_heads * query)]
        }
        LayerParam::LatentDown(piece) => {
            let (width, tensor) = (latent_dim + rope_dim, name("kv_a_proj_with_mqa", piece));
            vec![TensorLocation::parts(&tensor, rotated_first(attention, 0..width), width)]
        }
        LayerParam::LatentKeys => {
            let matrices = [num_heads, up, latent_dim];
            vec![TensorLocation::transposed_parts(name("kv_b_proj", Piece::Weight), matrices, nope_dim)]
        }
        LayerParam::LatentValues => {
            let head = |head| head * up + nope_dim..(head + 1) * up;
            let tensor = name("kv_b_proj", Piece::Weight);
            vec![TensorLocation::parts(&tensor, (0..num_heads).map(head), num_heads * up)]
        }
        _ => expert_tensors::one_tensor_each(spec, param, "mlp.experts", PROJECTIONS),
    }
}

/// A head's rows in the file, first those that RoPE rotates, which follow the others there.
fn rotated_first(attention: &LatentAttentionLayer, head: Range<usize>) -> [Range<usize>; 2] {
    let border = head.end - attention.rope_dim;
    [border..head.end, head.start..border]
}
