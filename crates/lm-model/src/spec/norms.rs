use super::Bias;
use crate::checkpoint::LayerParam;

/// Placement of the norms around a layer's two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormPlacement {
    /// Pre-norm: `x + block(norm(x))`.
    Pre,
    /// Pre-norm of the feed-forward block alone.
    PreMlp,
    /// Post-norm: `x + norm(block(x))`.
    Post,
    /// Post-norm after the addition: `norm(x + block(x))`.
    PostAdd,
    /// Both, with separate weights.
    Sandwich,
    /// Parallel blocks: `x + mixer(norm(x)) + mlp(norm(x))`, with one norm for both.
    Parallel,
    /// Parallel blocks, each with a norm of its own.
    ParallelOwn,
}

/// Presence of a norm after the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputNorm {
    Absent,
    Present,
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
    pub(crate) fn pre_norms(self) -> [Option<LayerParam>; 2] {
        match self {
            Self::Pre | Self::Sandwich | Self::ParallelOwn => {
                [Some(LayerParam::MixerPreNorm), Some(LayerParam::MlpPreNorm)]
            }
            Self::PreMlp => [None, Some(LayerParam::MlpPreNorm)],
            Self::Parallel => [Some(LayerParam::MixerPreNorm); 2],
            Self::Post | Self::PostAdd => [None; 2],
        }
    }

    /// Returns true if the feed-forward block reads what the mixer reads.
    pub(crate) fn is_parallel(self) -> bool {
        matches!(self, Self::Parallel | Self::ParallelOwn)
    }

    /// Post-norms of mixer and feed-forward block, of their outputs or of the sums.
    pub(crate) fn post_norms(self) -> [Option<LayerParam>; 2] {
        let is_there = matches!(self, Self::Post | Self::PostAdd | Self::Sandwich);
        [LayerParam::MixerPostNorm, LayerParam::MlpPostNorm].map(|norm| is_there.then_some(norm))
    }
}
