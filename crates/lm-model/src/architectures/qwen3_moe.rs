//! Qwen3 MoE: Qwen3 whose feed-forward blocks are mixtures of experts in some layers or all.
//! Source: Qwen3 Technical Report (arXiv 2505.09388); `config.json` of Qwen/Qwen3-30B-A3B.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{Param, TensorLocation};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{EXPERTS, GgufArchitecture};
use crate::spec::expert_tensors::{self, PROJECTIONS};
use crate::spec::{Bias, DecoderSpec, EXPERT_KEYS, ExpertsSpec, Mlp, QkNorm, RouterSpec, Window, activation};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen3_moe"],
    goldens: &["qwen3-moe-tiny", "qwen3-moe-tiny-mixed", "qwen3-moe-tiny-odd"],
    spec,
    locations,
    gguf: &[&GGUF],
    ..BASE
};

pub(super) const GGUF_KEYS: &[(&str, &str)] = &[
    ("expert_count", "num_experts"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_used_count", "num_experts_per_tok"),
];

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: GGUF_KEYS,
    read: |_, config| {
        // True of all checkpoints, hence not in the files.
        config.insert("norm_topk_prob".to_owned(), true.into());
        Ok(())
    },
    tensors: &[EXPERTS, &[("ffn_gate_inp", "mlp.gate")]],
    ..GgufArchitecture::new("qwen3moe", "qwen3_moe")
};

/// Keys that Qwen3 lacks, with the defaults of transformers' `Qwen3MoeConfig`.
#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "num_local_experts")]
    num_experts: usize,
    num_experts_per_tok: usize,
    moe_intermediate_size: usize,
    #[serde(default)]
    norm_topk_prob: bool,
    /// Layer `n`, counted from 1, has experts if `n` is a multiple of this.
    #[serde(default = "one")]
    decoder_sparse_step: usize,
    /// Layers, counted from 0, that have no experts regardless.
    mlp_only_layers: Option<Vec<usize>>,
}

fn one() -> usize {
    1
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = &ModelConfig { mlp_bias: false, ..config.clone() }; // Not a key of Qwen3.
    let mut spec = DecoderSpec::llama(config)?;
    let window = config.sliding_window.filter(|_| config.use_sliding_window);
    for attention in spec.attention_mut() {
        attention.qk_norm = QkNorm::PerHead;
        attention.window = window.map_or(Window::Full, Window::Sliding);
    }
    add_experts(config, &mut spec, |experts| Ok(Mlp::Experts(experts)))?;
    Ok(spec)
}

/// Puts blocks with experts in place of the dense ones, in the layers that the config names.
pub(super) fn add_experts(
    config: &ModelConfig,
    spec: &mut DecoderSpec,
    block: impl Fn(ExpertsSpec) -> Result<Mlp>,
) -> Result<()> {
    let keys: Keys = config.read()?;
    if keys.decoder_sparse_step == 0 {
        return Err(invalid("decoder_sparse_step", 0, "1 or more"));
    }
    let block = block(expert_spec(config, &keys)?)?;
    for (index, layer) in spec.layers.iter_mut().enumerate() {
        let excepted = keys.mlp_only_layers.iter().flatten().any(|&dense| dense == index);
        if (index + 1).is_multiple_of(keys.decoder_sparse_step) && !excepted {
            layer.mlp = block.clone();
        }
    }
    Ok(())
}

fn expert_spec(config: &ModelConfig, keys: &Keys) -> Result<ExpertsSpec> {
    let experts = ExpertsSpec {
        num_experts: keys.num_experts,
        top_k: keys.num_experts_per_tok,
        intermediate_size: keys.moe_intermediate_size,
        activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
        bias: Bias::Absent,
        router: RouterSpec::softmax(keys.norm_topk_prob),
    };
    experts.check(EXPERT_KEYS, config.hidden_size)?;
    Ok(experts)
}

/// Published checkpoints store a tensor for each projection of each expert.
pub(super) fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    expert_tensors::one_tensor_each(spec, param, "mlp.experts", PROJECTIONS)
}
