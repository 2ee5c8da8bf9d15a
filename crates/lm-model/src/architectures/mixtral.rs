//! Mixtral: Mistral with experts in place of the feed-forward blocks. Source: Mixtral of Experts (arXiv
//! 2401.04088); `config.json` of mistralai/Mixtral-8x7B-v0.1; `MixtralConfig` of transformers for the
//! defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE, llama, mistral};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};
use crate::config::ModelConfig;
use crate::spec::expert_tensors;
use crate::spec::{Bias, DecoderSpec, ExpertKeys, ExpertsSpec, Mlp, RouterSpec, activation};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["mixtral"],
    goldens: &["mixtral-tiny", "mixtral-tiny-fused", "mixtral-tiny-one", "mixtral-tiny-window"],
    spec,
    locations,
    gguf: &[&llama::GGUF],
    defaults: r#"{
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "num_local_experts": 8, "num_experts_per_tok": 2
    }"#,
    ..BASE
};

/// Keys of experts that have the width of a dense block.
#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "num_experts")]
    num_local_experts: usize,
    num_experts_per_tok: usize,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let mut spec = mistral::spec(config)?;
    let experts = expert_spec(config, RouterSpec::softmax(true))?;
    spec.layers.iter_mut().for_each(|layer| layer.mlp = Mlp::Experts(experts.clone()));
    Ok(spec)
}

/// Reads experts of the width `intermediate_size`.
pub(super) fn expert_spec(config: &ModelConfig, router: RouterSpec) -> Result<ExpertsSpec> {
    let keys: Keys = config.read()?;
    let experts = ExpertsSpec {
        num_experts: keys.num_local_experts,
        top_k: keys.num_experts_per_tok,
        intermediate_size: config.intermediate_size,
        activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
        bias: Bias::Absent,
        router,
    };
    let names = ExpertKeys {
        num_experts: "num_local_experts",
        top_k: "num_experts_per_tok",
        intermediate_size: "intermediate_size",
    };
    experts.check(names, config.hidden_size)?;
    Ok(experts)
}

/// Tensors of published checkpoints, whose gate, up and down projections are `w1`, `w3` and `w2`.
pub(super) fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    if let Param::Layer(layer, LayerParam::Router(Piece::Weight)) = param {
        return vec![TensorLocation::whole(format!("model.layers.{layer}.block_sparse_moe.gate.weight"))];
    }
    expert_tensors::one_tensor_each(spec, param, "block_sparse_moe.experts", ["w1", "w3", "w2"])
}
