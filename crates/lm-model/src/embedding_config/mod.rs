//! Computation of embeddings as the files of sentence-transformers describe it: prompts, pooling, layers on
//! the pooled vector.

mod cross_encoder;
mod dense;
mod folder;
mod normalized;

use std::collections::BTreeMap;

pub use self::cross_encoder::{CrossEncoderConfig, ScoreActivation};
pub use self::dense::Dense;
pub(crate) use self::folder::{POOLING_TYPE, files};
pub use self::normalized::normalized;
use crate::spec::Pooling;

/// Names under which folders store the prompt for documents, the most usual first, as `encode_document` of
/// sentence-transformers looks them up.
const DOCUMENT_NAMES: [&str; 3] = [DOCUMENT, "passage", "corpus"];
const QUERY: &str = "query";
const DOCUMENT: &str = "document";

/// Computation of a model's embeddings: the prompt before a text, the pooling of the hidden states after the
/// last norm, and the layers on the pooled vector.
///
/// The default is that of a model without files of sentence-transformers: no prompt, the mean, normalised.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingConfig {
    /// Reduction of the hidden states to one vector.
    pub pooling: Pooling,
    /// True if the tokens of the prompt are pooled, too.
    pub include_prompt: bool,
    /// Layers on the pooled vector, in order.
    pub layers: Vec<EmbeddingLayer>,
    /// Texts to put before a text, by name.
    pub prompts: BTreeMap<String, String>,
    /// Name of the prompt of texts for which none is chosen; `None`: no prompt.
    pub default_prompt_name: Option<String>,
    /// Maximum number of tokens of a text with its prompt and special tokens; longer ones are cut off.
    /// `None`: longer texts than the context are an error.
    pub max_tokens: Option<usize>,
}

/// Layer on a pooled vector.
#[derive(Clone, Debug, PartialEq)]
pub enum EmbeddingLayer {
    /// Linear layer.
    Dense(Dense),
    /// Scaling to length 1.
    Normalize,
}

impl Default for EmbeddingConfig {
    fn default() -> Self {
        Self {
            pooling: Pooling::default(),
            include_prompt: true,
            layers: vec![EmbeddingLayer::Normalize],
            prompts: BTreeMap::new(),
            default_prompt_name: None,
            max_tokens: None,
        }
    }
}

impl EmbeddingConfig {
    /// Number of elements of an embedding of a model with this hidden size.
    pub fn size(&self, hidden_size: usize) -> usize {
        self.layers.iter().fold(hidden_size, |size, layer| match layer {
            EmbeddingLayer::Dense(dense) => dense.out_features(),
            EmbeddingLayer::Normalize => size,
        })
    }

    /// Returns true if embeddings have length 1.
    pub fn is_normalized(&self) -> bool {
        self.layers.last() == Some(&EmbeddingLayer::Normalize)
    }

    /// Applies the layers to a pooled vector. `normalize` replaces the decision of the files whether the
    /// result has length 1.
    pub fn apply(&self, pooled: Vec<f32>, normalize: Option<bool>) -> Vec<f32> {
        let layers = match self.layers.split_last() {
            Some((EmbeddingLayer::Normalize, layers)) => layers,
            _ => &self.layers,
        };
        let vector = layers.iter().fold(pooled, |vector, layer| match layer {
            EmbeddingLayer::Dense(dense) => dense.apply(&vector),
            EmbeddingLayer::Normalize => normalized(vector),
        });
        if normalize.unwrap_or(self.is_normalized()) { normalized(vector) } else { vector }
    }

    /// Prompt of texts for which none is chosen; may be empty.
    pub fn default_prompt(&self) -> &str {
        self.default_prompt_name.as_ref().and_then(|name| self.prompts.get(name)).map_or("", String::as_str)
    }

    /// Prompt with a name. `query` and `document` exist for each model: the prompts that `encode_query` and
    /// `encode_document` of sentence-transformers choose, or an empty one.
    ///
    /// ```
    /// let mut config = lm_model::EmbeddingConfig::default();
    /// config.prompts.insert("passage".to_owned(), "passage: ".to_owned());
    /// assert_eq!(config.prompt("document"), Some("passage: "));
    /// assert_eq!((config.prompt("query"), config.prompt("STS")), (Some(""), None));
    /// ```
    pub fn prompt(&self, name: &str) -> Option<&str> {
        let stored = |name: &str| self.prompts.get(name).map(String::as_str);
        match name {
            QUERY => Some(stored(QUERY).unwrap_or_default()),
            DOCUMENT => Some(DOCUMENT_NAMES.iter().find_map(|name| stored(name)).unwrap_or_default()),
            other => stored(other),
        }
    }

    /// Names of the prompts, for messages.
    pub fn prompt_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.prompts.keys().map(String::as_str).chain([QUERY, DOCUMENT]).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_apply_in_order() {
        let twice = EmbeddingLayer::Dense(Dense::new(2, vec![2.0, 0.0, 0.0, 2.0, 0.0, 0.5], None, |x| x));
        let config = |layers| EmbeddingConfig { layers, ..EmbeddingConfig::default() };
        let vector = || vec![3.0, 4.0];
        let last = config(vec![twice.clone(), EmbeddingLayer::Normalize]);
        assert_eq!((last.size(2), last.is_normalized()), (3, true));
        assert_eq!(last.apply(vector(), Some(false)), [6.0, 8.0, 2.0]);
        assert_eq!(last.apply(vector(), None), normalized(vec![6.0, 8.0, 2.0]));
        let first = config(vec![EmbeddingLayer::Normalize, twice]);
        assert!(!first.is_normalized());
        assert_eq!(first.apply(vector(), None), [1.2, 1.6, 0.4]);
        assert_eq!(first.apply(vector(), Some(true)), normalized(vec![1.2, 1.6, 0.4]));
        assert_eq!(EmbeddingConfig::default().apply(vector(), None), [0.6, 0.8]);
    }
}
