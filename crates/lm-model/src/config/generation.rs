//! Generation parameters recommended by a model's authors.

use lm_formats::{ModelFiles, Result, file_names, parse_optional};
use lm_tokenizer::TokenId;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::TokenIds;

/// Contents of `generation_config.json`: the sampling parameters that the model's authors recommend. Absent
/// keys are `None`; unknown keys are ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct GenerationConfig {
    /// End-of-sequence token ids, from `generation_config.json`, otherwise from `config.json`; empty if
    /// neither has them.
    #[serde(skip)]
    pub eos_token_ids: Vec<TokenId>,
    /// True if the model recommends sampling or greedy decoding; false for one without a
    /// `generation_config.json`, such as a GGUF file without sampling keys.
    #[serde(skip)]
    pub is_recommended: bool,
    /// True to sample, false or `None` for greedy decoding.
    pub do_sample: Option<bool>,
    /// Softmax temperature.
    pub temperature: Option<f32>,
    /// Top-k: number of most likely tokens kept.
    pub top_k: Option<usize>,
    /// Top-p (nucleus sampling): probability mass kept.
    pub top_p: Option<f32>,
    /// Min-p: minimum probability relative to the most likely token.
    pub min_p: Option<f32>,
    /// Repetition penalty: positive logits of tokens seen before are divided by it, negative ones multiplied;
    /// 1 disables it.
    pub repetition_penalty: Option<f32>,
}

#[derive(Default, Deserialize)]
struct EndIds {
    eos_token_id: Option<TokenIds>,
}

impl GenerationConfig {
    pub(crate) fn read(files: &dyn ModelFiles) -> Result<Self> {
        let end_ids = |file| -> Result<Option<TokenIds>> {
            let EndIds { eos_token_id } = parse_optional(files, file)?.unwrap_or_default();
            Ok(eos_token_id)
        };
        let eos_token_id = match end_ids(file_names::GENERATION_CONFIG)? {
            Some(ids) => Some(ids),
            None => end_ids(file_names::CONFIG)?,
        };
        let file: Option<Map<String, Value>> = parse_optional(files, file_names::GENERATION_CONFIG)?;
        // An absent key is transformers' default, greedy decoding; null stands for no recommendation.
        let greedy = file.as_ref().is_some_and(|file| !file.contains_key("do_sample"));
        let config: Self = parse_optional(files, file_names::GENERATION_CONFIG)?.unwrap_or_default();
        let is_recommended = config.do_sample.is_some() || greedy;
        Ok(Self { eos_token_ids: eos_token_id.map(Vec::from).unwrap_or_default(), is_recommended, ..config })
    }
}
