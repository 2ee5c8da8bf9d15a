use super::Bias;
use crate::checkpoint::LayerParam;

/// Placement of the norms around a layer's two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormPlacement {
    /// Pre-norm: `x + block(norm(x))`.
    Pre,
    /// Post-norm: `x + norm(block(x))`.
    Post,
    /// Both, with separate weights.
    Sandwich,
    /// Parallel blocks: `x + mixer(norm(x)) + mlp(norm(x))`, with one norm for both.
    Parallel,
    /// Parallel blocks, each with a norm of its own.
    ParallelOwn,
}

/// Kind of a decoder's norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormKind {
    Rms,
    /// LayerNorm, with or without a bias.
    Layer(Bias),
}

/// Stored form of a norm's weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormWeight {
    /// The factors.
    AsStored,
    /// The factors minus one; one is added on loading.
    OnePlus,
}

impl NormPlacement {
    /// Pre-norms of mixer and feed-forward block, which may be the same.
    pub(crate) fn pre_norms(self) -> Option<[LayerParam; 2]> {
        match self {
            Self::Pre | Self::Sandwich | Self::ParallelOwn => {
                Some([LayerParam::MixerPreNorm, LayerParam::MlpPreNorm])
            }
            Self::Parallel => Some([LayerParam::MixerPreNorm; 2]),
            Self::Post => None,
        }
    }

    /// Returns true if the feed-forward block reads what the mixer reads.
    pub(crate) fn is_parallel(self) -> bool {
        matches!(self, Self::Parallel | Self::ParallelOwn)
    }

    /// Post-norms of mixer and feed-forward block.
    pub(crate) fn post_norms(self) -> Option<[LayerParam; 2]> {
        matches!(self, Self::Post | Self::Sandwich)
            .then_some([LayerParam::MixerPostNorm, LayerParam::MlpPostNorm])
    }
}
