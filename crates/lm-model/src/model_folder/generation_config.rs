//! What a model's authors advise for generation.

use serde::Deserialize;

use super::files::{ModelFiles, parse_optional};
use crate::config::{CONFIG_FILE, TokenIds};
use crate::{Result, TokenId};

pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";

/// What a model's authors advise for generation. What their files leave out is `None`; other keys are passed over.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct GenerationConfig {
    /// Ids that end a reply.
    #[serde(skip)]
    pub eos_token_ids: Vec<TokenId>,
    /// Whether to sample at all.
    pub do_sample: Option<bool>,
    /// Softmax temperature.
    pub temperature: Option<f32>,
    /// Most likely tokens kept.
    pub top_k: Option<usize>,
    /// Probability mass kept.
    pub top_p: Option<f32>,
    /// Least probability relative to the best token.
    pub min_p: Option<f32>,
    /// Divisor of the logits of tokens already seen.
    pub repetition_penalty: Option<f32>,
}

#[derive(Default, Deserialize)]
struct EndIds {
    eos_token_id: Option<TokenIds>,
}

impl GenerationConfig {
    pub(super) fn read(files: &dyn ModelFiles) -> Result<Self> {
        let end_ids = |file| -> Result<Option<TokenIds>> {
            let EndIds { eos_token_id } = parse_optional(files, file)?.unwrap_or_default();
            Ok(eos_token_id)
        };
        let eos_token_id = match end_ids(GENERATION_CONFIG)? {
            Some(ids) => Some(ids),
            None => end_ids(CONFIG_FILE)?,
        };
        let config: Self = parse_optional(files, GENERATION_CONFIG)?.unwrap_or_default();
        Ok(Self { eos_token_ids: eos_token_id.map(Vec::from).unwrap_or_default(), ..config })
    }
}
