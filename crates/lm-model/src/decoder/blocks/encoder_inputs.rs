use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::Weight;
use lm_tokenizer::TokenId;

use super::load_norm;
use crate::batch::{Batch, SequenceInput};
use crate::checkpoint::Param;
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::Norm;
use crate::spec::{DecoderSpec, EmbeddingNorm, EncoderSpec};

/// Terms that an encoder adds to the embeddings of its rows, and the norm of the sums.
pub(crate) struct EncoderInputs {
    token_types: Option<Weight>,
    norm: Option<Norm>,
    device: BurnDevice,
}

impl EncoderInputs {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        encoder: &EncoderSpec,
    ) -> Result<Self> {
        let hidden = spec.hidden_size;
        let token_types =
            encoder.token_types.map(|types| loader.float_matrix(Param::TokenTypeEmbedding, types, hidden));
        let norm = match encoder.embedding_norm {
            EmbeddingNorm::Absent => None,
            EmbeddingNorm::Present => Some(load_norm(loader, spec, Param::EmbeddingNorm, hidden)?),
        };
        Ok(Self { token_types: token_types.transpose()?, norm, device: loader.burn_device().clone() })
    }

    /// Maps the embeddings of a batch's rows, `[rows, hidden]`, to the rows of the first layer.
    pub(crate) fn forward(&self, mut x: Tensor<2>, batch: &Batch) -> Tensor<2> {
        if let Some(table) = &self.token_types {
            let types: Vec<TokenId> = batch.sequences.iter().flat_map(token_types).collect();
            // A table of one row, as of RoBERTa, has no row of its own for second texts.
            let last = table.rows() as TokenId - 1;
            let types: Vec<TokenId> = types.into_iter().map(|ty| ty.min(last)).collect();
            x = x + lm_kernels::embedding(table, &types, &self.device);
        }
        match &self.norm {
            None => x,
            Some(norm) => norm.forward(x),
        }
    }
}

/// Type of each token of a sequence: 1 in the second text of a pair, else 0.
fn token_types(sequence: &SequenceInput) -> impl Iterator<Item = TokenId> {
    let second = sequence.second_text.unwrap_or(usize::MAX);
    (0..sequence.rows()).map(move |row| TokenId::from(row >= second))
}
