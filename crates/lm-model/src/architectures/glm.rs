//! GLM-4 before 0414, GLM-Edge: GLM-4-0414 without norms after the blocks. Source: ChatGLM (arXiv
//! 2406.12793); `config.json` of zai-org/glm-4-9b-chat-hf and zai-org/glm-edge-1.5b-chat; `GlmConfig` of
//! transformers for the defaults.

use lm_formats::Result;

use super::{Architecture, BASE, glm4, phi3};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, NormPlacement};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["glm"],
    goldens: &["glm-tiny", "glm-tiny-plain", "glm-tiny-whole"],
    spec,
    locations: phi3::fused_gate_and_up,
    defaults: glm4::ARCHITECTURE.defaults,
    ..BASE
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let mut spec = glm4::spec(config)?;
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Pre);
    Ok(spec)
}
