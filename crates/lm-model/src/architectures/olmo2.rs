//! OLMo 2: Llama with post-norm in place of pre-norm, and QK norm over whole rows.
//! Source: 2 OLMo 2 Furious (arXiv 2501.00656); `config.json` of allenai/OLMo-2-1124-7B; `modeling_olmo2.py` of transformers.

use lm_formats::Result;

use super::{Architecture, WHOLE_TENSORS};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, NormPlacement, QkNorm};
use crate::weights::hugging_face_name;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["olmo2"],
    goldens: &["olmo2-tiny", "olmo2-tiny-gqa", "olmo2-tiny-yarn"],
    spec,
    weight_name: hugging_face_name,
    locations: WHOLE_TENSORS,
    ignored_suffixes: &["rotary_emb.inv_freq"],
    ignored_prefixes: &[],
    defaults: r#"{"rms_norm_eps": 1e-5}"#,
};

/// Builds Llama's decoder with post-norm, and QK norm over whole rows.
pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = &ModelConfig { mlp_bias: false, ..config.clone() }; // Not a key of OLMo 2.
    let mut spec = DecoderSpec::llama(config)?;
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Post);
    spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::WholeRow);
    Ok(spec)
}
