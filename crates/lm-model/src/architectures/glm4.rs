//! GLM-4-0414: norms around each block, part of a head rotated in adjacent pairs, fused gate and up. Source:
//! `config.json` of zai-org/GLM-4-9B-0414; `Glm4Config` of transformers for the defaults.

use lm_formats::Result;
use lm_kernels::RopePairing;

use super::{Architecture, BASE, phi3};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::ModelConfig;
use crate::gguf::{GgufArchitecture, put_biases};
use crate::spec::{Bias, DecoderSpec, NormPlacement};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["glm4"],
    goldens: &["glm4-tiny", "glm4-tiny-plain", "glm4-tiny-whole"],
    spec,
    weight_name,
    locations: phi3::fused_gate_and_up,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1.5625e-7,
        "attention_bias": true, "partial_rotary_factor": 0.5
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        put_biases(model, config);
        Ok(())
    },
    tensors: &[&[
        ("ffn_up", "mlp.gate_up_proj"),
        ("post_attention_norm", "post_self_attn_layernorm"),
        ("post_ffw_norm", "post_mlp_layernorm"),
    ]],
    ..GgufArchitecture::new("glm4", "glm4")
};

pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    // Not a key of GLM-4.
    let mut spec = DecoderSpec::partial_rotary(&ModelConfig { mlp_bias: false, ..config.clone() })?;
    spec.ropes.iter_mut().for_each(|rope| rope.pairing = RopePairing::Adjacent);
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Sandwich);
    spec.attention_mut().for_each(|attention| attention.output_bias = Bias::Absent);
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::MixerPostNorm) => {
            format!("model.layers.{layer}.post_self_attn_layernorm.weight")
        }
        Param::Layer(layer, LayerParam::MlpPostNorm) => {
            format!("model.layers.{layer}.post_mlp_layernorm.weight")
        }
        other => hugging_face_name(other),
    }
}
