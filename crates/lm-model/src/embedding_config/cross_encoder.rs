//! Settings of a cross-encoder: activation of its logits, maximum length of its inputs.

use lm_formats::{ModelFiles, file_names, parse_optional};
use serde::Deserialize;

use super::folder::{max_tokens, unsupported};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::spec::ClassifierSpec;

/// Settings of a model with a classifier for pairs of texts, as `CrossEncoder` of sentence-transformers reads
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrossEncoderConfig {
    /// Activation of the logits.
    pub activation: ScoreActivation,
    /// Maximum number of tokens of an input with its special tokens; longer ones are cut off. `None`: longer
    /// inputs than the context are an error.
    pub max_tokens: Option<usize>,
    /// True if the tokens of the second text have a type of their own.
    pub token_types: bool,
}

/// Activation of a cross-encoder's logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreActivation {
    /// The logits themselves.
    #[default]
    Identity,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
}

impl ScoreActivation {
    /// Applies it to a logit.
    ///
    /// ```
    /// use lm_model::ScoreActivation;
    /// assert_eq!((ScoreActivation::Sigmoid.apply(0.0), ScoreActivation::Identity.apply(2.0)), (0.5, 2.0));
    /// ```
    pub fn apply(self, logit: f32) -> f64 {
        match self {
            Self::Identity => logit.into(),
            Self::Sigmoid => 1.0 / (1.0 + (-f64::from(logit)).exp()),
        }
    }
}

/// Activations by the end of their name in torch.
const ACTIVATIONS: [(&str, ScoreActivation); 2] =
    [(".Identity", ScoreActivation::Identity), (".Sigmoid", ScoreActivation::Sigmoid)];

#[derive(Deserialize, Default)]
struct Named {
    activation_fn: Option<String>,
}

#[derive(Deserialize)]
struct Keys {
    sentence_transformers: Option<Named>,
    /// Of versions before 4.
    sbert_ce_default_activation_function: Option<String>,
}

/// Keys of tokenizer_config.json.
#[derive(Deserialize, Default)]
struct TokenizerKeys {
    tokenizer_class: Option<String>,
    model_input_names: Option<Vec<String>>,
}

impl TokenizerKeys {
    /// Returns true if transformers' tokenizer gives the types of tokens: it is asked to, or is BERT's, which
    /// a folder without a class has, too, if its model can tell types apart.
    fn give_types(&self) -> bool {
        match (&self.model_input_names, &self.tokenizer_class) {
            (Some(names), _) => names.iter().any(|name| name == "token_type_ids"),
            (None, Some(class)) => class.starts_with("Bert"),
            (None, None) => true,
        }
    }
}

impl CrossEncoderConfig {
    /// Reads the files of a model with a classifier; the default for other models.
    pub(crate) fn read(files: &dyn ModelFiles, config: &ModelConfig) -> Result<Self> {
        let Some(labels) = ClassifierSpec::labels(config)? else { return Ok(Self::default()) };
        let of_file: Named = parse_optional(files, file_names::SENTENCE_TRANSFORMERS)?.unwrap_or_default();
        let of_config: Keys = config.read()?;
        let (file, key, name) = match (of_file.activation_fn, of_config.sentence_transformers) {
            (Some(name), _) => (file_names::SENTENCE_TRANSFORMERS, "activation_fn", Some(name)),
            (None, Some(Named { activation_fn: Some(name) })) => {
                (file_names::CONFIG, "sentence_transformers.activation_fn", Some(name))
            }
            (None, _) => {
                let key = "sbert_ce_default_activation_function";
                (file_names::CONFIG, key, of_config.sbert_ce_default_activation_function)
            }
        };
        let by_labels = if labels == 1 { ScoreActivation::Sigmoid } else { ScoreActivation::Identity };
        let find = |name: &str| {
            let is = |end: &str| name.starts_with("torch.nn.") && name.ends_with(end);
            ACTIVATIONS.iter().find(|(end, _)| is(end)).map(|row| row.1)
        };
        let activation = match name {
            None => by_labels,
            Some(name) => find(&name)
                .ok_or_else(|| unsupported(file, key, &name, "Identity and Sigmoid of torch.nn"))?,
        };
        let max_tokens = max_tokens(files, config)?.or(Some(config.max_position_embeddings));
        let tokenizer: TokenizerKeys =
            parse_optional(files, file_names::TOKENIZER_CONFIG)?.unwrap_or_default();
        Ok(Self { activation, max_tokens, token_types: tokenizer.give_types() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_tokens_are_those_of_the_tokenizer_class() {
        for (keys, expected) in [
            ("{}", true),
            (r#"{"tokenizer_class": "BertTokenizer"}"#, true),
            (r#"{"tokenizer_class": "BertTokenizerFast"}"#, true),
            (r#"{"tokenizer_class": "PreTrainedTokenizerFast"}"#, false),
            (r#"{"tokenizer_class": "DistilBertTokenizer"}"#, false),
            (r#"{"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids"]}"#, false),
            (r#"{"tokenizer_class": "Other", "model_input_names": ["token_type_ids"]}"#, true),
        ] {
            let keys: TokenizerKeys = serde_json::from_str(keys).unwrap();
            assert_eq!(keys.give_types(), expected, "{:?}", keys.tokenizer_class);
        }
    }
}
