//! Hunyuan, dense: Llama with a norm over each query and key head after RoPE, whose base a fixed factor
//! stretches. Source: `config.json` of tencent/Hunyuan-7B-Instruct; `HunYuanDenseV1Config` and
//! `modeling_hunyuan_v1_dense.py` of transformers.

use lm_formats::{GgufEntry, Result};

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::{ModelConfig, RopeParameters, invalid};
use crate::gguf::{GgufArchitecture, put_biases};
use crate::spec::{DecoderSpec, QkNorm};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["hunyuan_v1_dense"],
    goldens: &["hunyuan-v1-dense-tiny", "hunyuan-v1-dense-tiny-alpha", "hunyuan-v1-dense-tiny-dynamic"],
    spec,
    weight_name,
    gguf: &[&GGUF],
    defaults: r#"{"max_position_embeddings": 2048, "rms_norm_eps": 1e-5}"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        put_biases(model, config);
        Ok(())
    },
    write: |_, spec, settings| {
        // The stretched base.
        let rope = spec.ropes.iter().map(|rope| rope.theta as f32);
        rope.for_each(|theta| settings.put("rope.freq_base", GgufEntry::Float(theta)));
        Ok(())
    },
    tensors: &[&[("attn_k_norm", "self_attn.key_layernorm"), ("attn_q_norm", "self_attn.query_layernorm")]],
    ..GgufArchitecture::new("hunyuan-dense", "hunyuan_v1_dense")
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (_, parameters) = config.rope_parameters();
    let config = &ModelConfig {
        mlp_bias: false, // Not a key of Hunyuan.
        rope_parameters: Some(stretched(parameters, config.head_dim()?)?),
        ..config.without_rope()
    };
    let mut spec = DecoderSpec::llama(config)?;
    spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::PerHeadAfterRope);
    Ok(spec)
}

/// Returns the parameters without `alpha`, which multiplies the base by a power of itself: the same
/// frequencies at every length, although files call them dynamic.
fn stretched(mut parameters: RopeParameters, head_dim: usize) -> Result<RopeParameters> {
    const KEY: &str = "rope_parameters.alpha";
    let Some(alpha) = parameters.rest.remove("alpha").filter(|_| parameters.kind() == "dynamic") else {
        return Ok(parameters);
    };
    let factor = match alpha.as_f64() {
        _ if alpha.is_null() => return Ok(parameters),
        Some(0.0) => return Ok(parameters), // No factor, as in transformers.
        Some(factor) if factor.is_finite() && factor > 0.0 => factor,
        _ => return Err(invalid(KEY, alpha, "a positive number")),
    };
    if head_dim <= 2 {
        return Err(invalid("head_dim", head_dim, "more than 2 elements, for dynamic RoPE"));
    }
    let exponent = head_dim as f64 / (head_dim - 2) as f64;
    let base = parameters.rope_theta.unwrap_or(10_000.0) * factor.powf(exponent);
    Ok(RopeParameters { rope_theta: Some(base), ..RopeParameters::default() })
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::QueryNorm) => {
            format!("model.layers.{layer}.self_attn.query_layernorm.weight")
        }
        Param::Layer(layer, LayerParam::KeyNorm) => {
            format!("model.layers.{layer}.self_attn.key_layernorm.weight")
        }
        other => hugging_face_name(other),
    }
}
