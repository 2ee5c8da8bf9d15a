//! DeepSeek-V2 and V3: latent attention (MLA); experts with shared ones in all layers but the first. V3 and
//! Kimi K2 route by sigmoids, with a correction, V2 by a softmax. Source: DeepSeek-V2 (arXiv 2405.04434),
//! DeepSeek-V3 (arXiv 2412.19437); `config.json` of deepseek-ai/DeepSeek-V2-Lite and deepseek-ai/DeepSeek-V3;
//! `modeling_deepseek_v2.py` and `modeling_deepseek_v3.py` of transformers 5.23.

use std::ops::Range;

use lm_formats::{GgufEntry, Result};
use lm_kernels::RopePairing;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};
use crate::config::{ModelConfig, RopeParameters, invalid};
use crate::gguf::{Description, EXPERTS, GATING, GgufArchitecture, SIGMOID, SOFTMAX, Settings, rope};
use crate::spec::deepseek_moe::{RouterKind, add_experts, weight_name};
use crate::spec::expert_tensors::{self, PROJECTIONS};
use crate::spec::{
    DecoderSpec, LatentAttentionLayer, Mixer, RopeScaling, RopeSpec, RouterScores, RoutingNorm,
};

pub(super) const V2: Architecture = Architecture {
    model_types: &["deepseek_v2"],
    goldens: &["deepseek-v2-tiny", "deepseek-v2-tiny-groups", "deepseek-v2-tiny-all"],
    spec: |config| with_experts(config, RouterKind::Softmax),
    weight_name,
    locations,
    gguf: &[&GGUF],
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
    model_types: &["deepseek_v3", "kimi_k2"],
    goldens: &["deepseek-v3-tiny", "deepseek-v3-tiny-direct", "deepseek-v3-tiny-halves"],
    spec: |config| with_experts(config, RouterKind::Sigmoid),
    weight_name,
    locations,
    layers_ahead: true,
    gguf: &[&GGUF],
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

/// Files of all models with latent attention and these experts.
pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.kv_lora_rank", "kv_lora_rank"),
        ("attention.q_lora_rank", "q_lora_rank"),
        ("attention.value_length_mla", "v_head_dim"),
        ("expert_count", "n_routed_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_group_count", "n_group"),
        ("expert_group_used_count", "topk_group"),
        ("expert_shared_count", "n_shared_experts"),
        ("expert_used_count", "num_experts_per_tok"),
        ("expert_weights_scale", "routed_scaling_factor"),
        ("leading_dense_block_count", "first_k_dense_replace"),
        ("rope.dimension_count", "qk_rope_head_dim"),
    ],
    rope: read_rope,
    read: read_gguf,
    write: write_gguf,
    tensors: &[
        EXPERTS,
        &[
            ("attn_k_b", "self_attn.k_b_proj"),
            ("attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"),
            ("attn_kv_a_norm", "self_attn.kv_a_layernorm"),
            ("attn_q_a", "self_attn.q_a_proj"),
            ("attn_q_a_norm", "self_attn.q_a_layernorm"),
            ("attn_q_b", "self_attn.q_b_proj"),
            ("attn_v_b", "self_attn.v_b_proj"),
            ("exp_probs_b.bias", "mlp.gate.e_score_correction_bias"),
            ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
            ("ffn_gate_inp", "mlp.gate"),
            ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
            ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ],
    ],
    ..GgufArchitecture::new("deepseek2", "deepseek_v3")
};

/// Width of a head's key, both parts.
const KEY_WIDTH: &str = "attention.key_length_mla";
const YARN_WEIGHT: &str = "rope.scaling.yarn_log_multiplier";

/// Reads RoPE of the rotated part alone. YaRN's factor on sine and cosine is 1: the files have its weight on
/// scores only, divided by ten.
fn read_rope(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let mut rope = rope::parameters(model)?;
    rope.insert("partial_rotary_factor".to_owned(), 1.0.into());
    if rope["rope_type"] == "yarn" {
        let tenth = model.json(YARN_WEIGHT)?.and_then(|weight| weight.as_f64()).unwrap_or(0.0);
        for key in ["mscale", "mscale_all_dim"] {
            rope.insert(key.to_owned(), (10.0 * tenth).into());
        }
        rope.insert("attention_factor".to_owned(), 1.0.into());
    }
    config.insert("rope_parameters".to_owned(), rope.into());
    Ok(())
}

fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let (width, rotated) = (model.required_size(KEY_WIDTH)?, model.required_size("rope.dimension_count")?);
    let Some(rest) = width.checked_sub(rotated) else {
        let expected = format!("at least {} = {rotated}", model.key("rope.dimension_count"));
        return Err(model.metadata.invalid(&model.key(KEY_WIDTH), width, expected));
    };
    let mut put = |key: &str, value: Value| drop(config.insert(key.to_owned(), value));
    put("qk_nope_head_dim", rest.into());
    put("norm_topk_prob", model.bool("expert_weights_norm")?.unwrap_or(false).into());
    put("attention_bias", model.tensor("blk.0.attn_kv_a_mqa.bias").is_some().into());
    let is_sigmoid = match model.size(GATING)? {
        Some(kind) => kind == SIGMOID as usize,
        None => (0..model.num_layers()?)
            .any(|layer| model.tensor(&format!("blk.{layer}.exp_probs_b.bias")).is_some()),
    };
    put("model_type", if is_sigmoid { "deepseek_v3" } else { "deepseek_v2" }.into());
    // Absent keys are settings without effect, and not the defaults of the config classes.
    for (key, value) in [
        ("q_lora_rank", Value::Null),
        ("n_group", 1.into()),
        ("topk_group", 1.into()),
        ("routed_scaling_factor", 1.0.into()),
        ("first_k_dense_replace", 0.into()),
    ] {
        config.entry(key).or_insert(value);
    }
    let grouped = !is_sigmoid && config["n_group"] != 1;
    let method = if grouped { "group_limited_greedy" } else { "greedy" };
    config.insert("topk_method".to_owned(), method.into());
    Ok(())
}

fn write_gguf(config: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    let Some(Mixer::LatentAttention(attention)) = spec.layers.first().map(|layer| &layer.mixer) else {
        return Ok(());
    };
    settings.put_size("attention.head_count_kv", "num_key_value_heads", 1)?;
    settings.put_size("attention.key_length", "kv_lora_rank", attention.cached_dim())?;
    settings.put_size("attention.value_length", "kv_lora_rank", attention.latent_dim)?;
    settings.put_size(KEY_WIDTH, "qk_nope_head_dim", attention.nope_dim + attention.rope_dim)?;
    let dense = spec.layers.iter().take_while(|layer| layer.mlp.experts().is_none()).count();
    settings.put_size("leading_dense_block_count", "first_k_dense_replace", dense)?;
    if let Some(experts) = spec.layers.iter().find_map(|layer| layer.mlp.experts()) {
        let softmax = experts.router.scores == RouterScores::Softmax;
        settings.put(GATING, GgufEntry::Size(if softmax { SOFTMAX } else { SIGMOID }));
        if experts.router.norm != RoutingNorm::None {
            settings.put("expert_weights_norm", GgufEntry::Bool(true));
        }
    }
    let (_, parameters) = config.rope_parameters();
    if let (RopeScaling::Yarn { .. }, Some(weight)) = (&spec.ropes[0].scaling, parameters.mscale_all_dim) {
        settings.put(YARN_WEIGHT, GgufEntry::Float((0.1 * weight) as f32));
        settings.remove("rope.scaling.attn_factor");
    }
    Ok(())
}

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
