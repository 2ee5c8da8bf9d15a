use lm_formats::Result;
use lm_kernels::{LayerCache, Mamba2Spec};

use super::{Bias, linear_params};
use crate::checkpoint::{LayerParam, Piece};
use crate::config::invalid;

/// State space layer of Mamba-2: a projection, a convolution with the recurrence, a gated norm and a
/// projection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mamba2Layer {
    pub(crate) heads: Mamba2Spec,
    /// Width of the convolution in tokens, the row's own included.
    pub(crate) kernel: usize,
    pub(crate) conv_bias: Bias,
    /// Bias of both projections.
    pub(crate) bias: Bias,
    pub(crate) norm: GatedNorm,
}

/// RMS norm of the recurrence's output `y`, gated by `silu(z)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatedNorm {
    /// `norm(y · silu(z))`, over each of this many parts of a row.
    AfterGate(usize),
}

/// Upper limit of head counts and widths, beyond any model, so that no product of sizes overflows; likewise
/// of kernel sizes.
const MAX_HEADS: usize = 1 << 12;
const MAX_KERNEL_SIZE: usize = 256;

/// Config.json keys of an architecture's Mamba-2 sizes.
#[derive(Clone, Copy)]
pub(crate) struct Mamba2Keys {
    pub(crate) num_heads: &'static str,
    pub(crate) head_dim: &'static str,
    pub(crate) num_groups: &'static str,
    pub(crate) state_dim: &'static str,
    pub(crate) kernel: &'static str,
}

impl Mamba2Layer {
    /// Checks the sizes.
    pub(crate) fn check(&self, keys: Mamba2Keys) -> Result<()> {
        let Mamba2Spec { num_heads, head_dim, num_groups, state_dim, time_step_limit } = self.heads;
        for (key, size, most) in [
            (keys.num_heads, num_heads, MAX_HEADS),
            (keys.head_dim, head_dim, MAX_HEADS),
            (keys.num_groups, num_groups, MAX_HEADS),
            (keys.state_dim, state_dim, MAX_HEADS),
            (keys.kernel, self.kernel, MAX_KERNEL_SIZE),
        ] {
            if !(1..=most).contains(&size) {
                return Err(invalid(key, size, format!("1 to {most}")));
            }
        }
        if !num_heads.is_multiple_of(num_groups) {
            let expected = format!("a divisor of {} = {num_heads}", keys.num_heads);
            return Err(invalid(keys.num_groups, num_groups, expected));
        }
        let [shortest, longest] = time_step_limit;
        if shortest >= 0.0 && shortest <= longest {
            return Ok(());
        }
        let expected = "two numbers from 0 on, the larger last";
        Err(invalid("time_step_limit", format!("{time_step_limit:?}"), expected))
    }

    pub(super) fn cache(&self) -> LayerCache {
        LayerCache::State { len: self.heads.state_elements(self.kernel) }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let (width, inner, heads) = (self.heads.conv_width(), self.heads.inner_width(), self.heads.num_heads);
        let mut params = vec![
            (LayerParam::Conv1d(Piece::Weight), vec![width, self.kernel]),
            (LayerParam::MambaALog, vec![heads]),
            (LayerParam::MambaDtBias, vec![heads]),
            (LayerParam::MambaSkip, vec![heads]),
            (LayerParam::MambaNorm, vec![inner]),
        ];
        if self.conv_bias == Bias::Present {
            params.push((LayerParam::Conv1d(Piece::Bias), vec![width]));
        }
        let projected = self.heads.projected_width();
        params.extend(linear_params(LayerParam::MambaInput, [hidden, projected], self.bias));
        params.extend(linear_params(LayerParam::MambaOutput, [inner, hidden], self.bias));
        params
    }
}
