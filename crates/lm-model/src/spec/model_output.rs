use super::Pooling;

/// Output of a model beyond hidden states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOutput {
    /// Logits of tokens: it generates text.
    Tokens,
    /// None: it gives embeddings.
    HiddenStates,
    /// Logits of labels for a whole text: a classifier, or with one label a reranker.
    Labels {
        /// Number of labels.
        count: usize,
        /// Pooling of the hidden states before the classifier.
        pooling: Pooling,
    },
}
