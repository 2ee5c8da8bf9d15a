use lm_kernels::KvGeometry;

use super::{Bias, linear_params};
use crate::checkpoint::LayerParam;

/// Multi-head latent attention (MLA): keys and values of all heads are projections of one latent vector per
/// token, which is cached in their place, with a key part that RoPE rotates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LatentAttentionLayer {
    pub(crate) num_heads: usize,
    /// Width of the part of a head's query and key that is not rotated.
    pub(crate) nope_dim: usize,
    /// Width of the rotated part, whose key all heads share; even.
    pub(crate) rope_dim: usize,
    /// Width of a head's value.
    pub(crate) value_dim: usize,
    /// Width of the latent vector (`kv_lora_rank`).
    pub(crate) latent_dim: usize,
    /// Width between the two query projections; `None`: one projection.
    pub(crate) query_rank: Option<usize>,
    /// Factor on the scores before the softmax.
    pub(crate) scale: f32,
    /// Epsilon of the norms of latent vectors and of the input of the second query projection.
    pub(crate) norm_eps: f32,
    /// Index in [`super::DecoderSpec::ropes`].
    pub(crate) rope: usize,
    /// Bias of the projections of the rows, except a query projection from the rows to the heads, and of the
    /// output projection.
    pub(crate) bias: Bias,
}

impl LatentAttentionLayer {
    /// Width of a cached vector: the rotated part of the keys, then the latent vector.
    pub(crate) fn cached_dim(&self) -> usize {
        self.rope_dim + self.latent_dim
    }

    /// Width of the query projection: of each head the rotated part, then the other.
    pub(crate) fn query_width(&self) -> usize {
        self.num_heads * (self.rope_dim + self.nope_dim)
    }

    pub(super) fn cache(&self) -> KvGeometry {
        KvGeometry { num_kv_heads: 1, head_dim: self.cached_dim(), window: None, shared_with: None }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let Self { num_heads, nope_dim, value_dim, latent_dim, bias, .. } = *self;
        let mut params = match self.query_rank {
            None => linear_params(LayerParam::LatentQuery, [hidden, self.query_width()], Bias::Absent),
            Some(rank) => [
                linear_params(LayerParam::LatentQueryDown, [hidden, rank], bias),
                vec![(LayerParam::LatentQueryNorm, vec![rank])],
                linear_params(LayerParam::LatentQuery, [rank, self.query_width()], Bias::Absent),
            ]
            .concat(),
        };
        params.extend(linear_params(LayerParam::LatentDown, [hidden, self.cached_dim()], bias));
        params.push((LayerParam::LatentNorm, vec![latent_dim]));
        params.push((LayerParam::LatentKeys, vec![num_heads * latent_dim, nope_dim]));
        params.push((LayerParam::LatentValues, vec![num_heads * value_dim, latent_dim]));
        params.extend(linear_params(LayerParam::AttentionOutput, [num_heads * value_dim, hidden], bias));
        params
    }
}
