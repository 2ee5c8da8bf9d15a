use crate::checkpoint::Param;

/// Reading direction of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A decoder: a token attends to itself and those before it.
    Causal,
    /// An encoder: a token attends to the whole text, which runs in one call.
    Bidirectional,
}

/// Differences of an encoder from a decoder: its rows attend in both directions, without a cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncoderSpec {
    /// Number of token types, one row of which is added to each embedding; `None`: none.
    pub(crate) token_types: Option<usize>,
    pub(crate) embedding_norm: EmbeddingNorm,
}

/// Presence of a norm after the embeddings, of the kind of the other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmbeddingNorm {
    Absent,
    Present,
}

impl EncoderSpec {
    /// Bidirectional attention alone.
    pub(crate) const PLAIN: Self = Self { token_types: None, embedding_norm: EmbeddingNorm::Absent };

    /// Parameters in addition to a decoder's, except the bias of the norm.
    pub(super) fn params(&self, hidden: usize) -> Vec<(Param, Vec<usize>)> {
        let types = self.token_types.map(|types| (Param::TokenTypeEmbedding, vec![types, hidden]));
        let norm =
            (self.embedding_norm == EmbeddingNorm::Present).then(|| (Param::EmbeddingNorm, vec![hidden]));
        types.into_iter().chain(norm).collect()
    }
}
