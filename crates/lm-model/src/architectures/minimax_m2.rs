//! MiniMax-M2: GQA with partial rotary and QK norm over whole rows; experts with a sigmoid router. Source:
//! `config.json` of MiniMaxAI/MiniMax-M2; `modeling_minimax_m2.py` and `MiniMaxM2Config` of transformers.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE, mixtral};
use crate::checkpoint::{LayerParam, Param, TensorLocation};
use crate::config::{ModelConfig, invalid, unsupported};
use crate::gguf::{EXPERTS, GgufArchitecture, SIGMOID, check_sigmoid_router};
use crate::spec::{Bias, DecoderSpec, Mlp, QkNorm, RouterScores, RouterSpec};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["minimax_m2"],
    goldens: &["minimax-m2-tiny", "minimax-m2-tiny-factor", "minimax-m2-tiny-one"],
    spec,
    locations,
    layers_ahead: true,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 200064, "hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62,
        "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 196608,
        "rms_norm_eps": 1e-6, "rope_theta": 5000000.0, "num_local_experts": 256, "num_experts_per_tok": 8
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("expert_count", "num_local_experts"),
        ("expert_feed_forward_length", "intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
    ],
    read: |model, _| check_sigmoid_router(model),
    write: |_, _, settings| {
        settings.put("expert_gating_func", GgufEntry::Size(SIGMOID));
        Ok(())
    },
    tensors: &[
        EXPERTS,
        &[("exp_probs_b.bias", "mlp.gate.e_score_correction_bias"), ("ffn_gate_inp", "mlp.gate")],
    ],
    ..GgufArchitecture::new("minimax-m2", "minimax_m2")
};

#[derive(Deserialize)]
struct Keys {
    /// Number of rotated elements of a head, as published files write it.
    rotary_dim: Option<usize>,
    scoring_func: Option<String>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let mut config = config.without_biases();
    check(&config.read()?, &mut config)?;
    let mut spec = DecoderSpec::partial_rotary(&config)?;
    spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::WholeRow);
    let router =
        RouterSpec { scores: RouterScores::Sigmoid, correction: Bias::Present, ..RouterSpec::softmax(true) };
    let experts = mixtral::expert_spec(&config, router)?;
    spec.layers.iter_mut().for_each(|layer| layer.mlp = Mlp::Experts(experts.clone()));
    Ok(spec)
}

/// Refuses what the reference has in one form only, and sets the share of rotated elements.
fn check(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if let Some(other) = keys.scoring_func.as_ref().filter(|scores| *scores != "sigmoid") {
        return Err(unsupported("scoring_func", other, "sigmoid"));
    }
    let (head_dim, (_, rope)) = (config.head_dim()?, config.rope_parameters());
    if let Some(rotary_dim) = keys.rotary_dim.filter(|_| rope.partial_rotary_factor.is_none()) {
        if rotary_dim > head_dim {
            return Err(invalid("rotary_dim", rotary_dim, format!("at most head_dim = {head_dim}")));
        }
        config.partial_rotary_factor = Some(rotary_dim as f64 / head_dim as f64);
    }
    Ok(())
}

fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    match param {
        Param::Layer(layer, LayerParam::RouterCorrection) => {
            let name = format!("model.layers.{layer}.block_sparse_moe.e_score_correction_bias");
            vec![TensorLocation::whole(name)]
        }
        other => mixtral::locations(spec, other),
    }
}
