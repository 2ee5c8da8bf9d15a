//! Granite MoE: Granite with experts in place of the feed-forward blocks, in some models with a shared
//! expert. Source: `config.json` of ibm-granite/granite-3.1-3b-a800m-instruct; `modeling_granitemoe.py` and
//! `modeling_granitemoeshared.py` of transformers.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE, granite, mixtral};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};
use crate::config::ModelConfig;
use crate::gguf::{EXPERTS, GgufArchitecture, SHARED_EXPERT};
use crate::spec::expert_tensors;
use crate::spec::{DecoderSpec, DenseBranch, GatedSpec, Mlp, RouterSpec};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["granitemoe", "granitemoeshared"],
    goldens: &["granite-moe-tiny", "granite-moe-tiny-bias", "granite-moe-tiny-shared"],
    spec,
    locations,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0,
        "num_local_experts": 8, "num_experts_per_tok": 2
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.scale", "attention_multiplier"),
        ("embedding_scale", "embedding_multiplier"),
        ("expert_count", "num_local_experts"),
        ("expert_shared_feed_forward_length", "shared_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
        ("logit_scale", "logits_scaling"),
        ("residual_scale", "residual_multiplier"),
    ],
    tensors: &[EXPERTS, SHARED_EXPERT, &[("ffn_gate_inp", "mlp.gate")]],
    ..granite::gguf("granitemoe", "granitemoeshared")
};

#[derive(Deserialize)]
struct Keys {
    /// 0 for no shared expert.
    #[serde(default)]
    shared_intermediate_size: usize,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { shared_intermediate_size: shared } = config.read()?;
    let mut spec = granite::spec(&ModelConfig { mlp_bias: false, ..config.clone() })?; // Not a key of Granite MoE.
    let mlp = if shared == 0 || config.model_type == "granitemoe" {
        Mlp::Experts(mixtral::expert_spec(config, RouterSpec::softmax(true))?)
    } else {
        with_shared_expert(config, shared)?
    };
    spec.layers.iter_mut().for_each(|layer| layer.mlp = mlp.clone());
    Ok(spec)
}

/// Reads experts with a shared one of this width.
pub(super) fn with_shared_expert(config: &ModelConfig, width: usize) -> Result<Mlp> {
    let experts = mixtral::expert_spec(config, RouterSpec::softmax(true))?;
    let shared = GatedSpec::beside(&experts, "shared_intermediate_size", width)?;
    Ok(Mlp::DenseAndMoe(shared, experts, DenseBranch::Shared))
}

/// Gate and up projections are halves of one tensor, those of all experts and those of the shared one.
pub(super) fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, of_layer) = param else { return Vec::new() };
    let name = |tensor: &str| format!("model.layers.{layer}.{tensor}.weight");
    let Mlp::DenseAndMoe(GatedSpec { intermediate_size: inner, .. }, ..) = spec.layers[layer].mlp else {
        return of_experts(spec, param, name);
    };
    let half = |first: usize| {
        let rows = first * inner..(first + 1) * inner;
        vec![TensorLocation::part(name("shared_mlp.input_linear"), rows, 2 * inner)]
    };
    match of_layer {
        LayerParam::SharedGate(Piece::Weight) => half(0),
        LayerParam::SharedUp(Piece::Weight) => half(1),
        LayerParam::SharedDown(Piece::Weight) => {
            vec![TensorLocation::whole(name("shared_mlp.output_linear"))]
        }
        _ => of_experts(spec, param, name),
    }
}

fn of_experts(spec: &DecoderSpec, param: Param, name: impl Fn(&str) -> String) -> Vec<TensorLocation> {
    match param {
        Param::Layer(_, LayerParam::Router(_)) => {
            vec![TensorLocation::whole(name("block_sparse_moe.router.layer"))]
        }
        _ => {
            let tensors = ["block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"];
            expert_tensors::fused(spec, param, tensors)
        }
    }
}
