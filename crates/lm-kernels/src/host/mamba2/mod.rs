//! Mamba-2 (state space duality): a matrix-valued state per head with a scalar decay per token.

mod recurrence;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::causal_conv::{CausalConv, SiluOfRows};
use super::isa::Isa;
use super::lanes::LANES;
use super::pages::StatePages;
use super::pool::Pool;
use super::profile::{self, Work};
use super::ragged::RaggedLayout;
use super::split::{SharedMatrix, for_each_chunk};
use super::time_step::softplus;
use recurrence::{Heads, Step};

/// Rows per task.
const ROWS: usize = 8;

/// Head configuration of a Mamba-2 layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mamba2Spec {
    /// Heads, a multiple of `num_groups`.
    pub num_heads: usize,
    /// Elements of a head's input and output.
    pub head_dim: usize,
    /// Groups of adjacent heads that share `B` and `C`.
    pub num_groups: usize,
    /// Elements of `B` and of `C` in a group: the state dimension.
    pub state_dim: usize,
    /// Smallest and largest time step after the softplus; 0 and infinity where unlimited.
    pub time_step_limit: [f32; 2],
}

impl Mamba2Spec {
    /// Elements of all heads' inputs of a row, and of their outputs.
    pub fn inner_width(&self) -> usize {
        self.num_heads * self.head_dim
    }

    /// Elements of a row that are convolved: the heads' inputs, `B` and `C`.
    pub fn conv_width(&self) -> usize {
        self.inner_width() + 2 * self.num_groups * self.state_dim
    }

    /// Elements of a projected row: gates, the convolved part, and the time step of each head.
    pub fn projected_width(&self) -> usize {
        self.inner_width() + self.conv_width() + self.num_heads
    }

    /// The convolved part of a projected row.
    pub(crate) fn convolved(&self) -> Range<usize> {
        self.inner_width()..self.inner_width() + self.conv_width()
    }

    /// Elements of a state with a convolution of this kernel size: the convolution's state, then
    /// `[num_heads, blocks of 16 elements of a head, state_dim, 16]`.
    pub fn state_elements(&self, kernel_size: usize) -> usize {
        let matrices = self.num_heads * self.blocks() * self.state_dim * LANES;
        CausalConv::state_elements(kernel_size, self.conv_width()) + matrices
    }

    /// Blocks of 16 lanes per head in a state.
    fn blocks(&self) -> usize {
        self.head_dim.div_ceil(LANES)
    }
}

/// Weights of a Mamba-2 layer between its projections, with the short convolution.
///
/// Its state is that of the convolution and, behind it, a matrix for each head.
#[derive(Clone, Debug, PartialEq)]
pub struct Mamba2 {
    spec: Mamba2Spec,
    conv: CausalConv,
    /// Decay rate of each head: at least 0.
    decay_rates: Vec<f32>,
    /// Bias of each head's time step.
    dt_bias: Vec<f32>,
    /// Factor of each head on its input, which is added to its output (`D`).
    skips: Vec<f32>,
}

impl Mamba2 {
    /// Creates a layer from its weights.
    ///
    /// # Shapes
    /// - `conv`: of [`Mamba2Spec::conv_width`] channels, over the heads' inputs, `B` and `C` in this order
    /// - `decay_rates`, `dt_bias`, `skips`: `[num_heads]`; checkpoints have the first as `A_log`, its
    ///   logarithm, and the last as `D`
    ///
    /// # Panics
    /// When a length does not fit, or groups do not divide heads.
    pub fn new(
        spec: Mamba2Spec,
        conv: CausalConv,
        decay_rates: Vec<f32>,
        dt_bias: Vec<f32>,
        skips: Vec<f32>,
    ) -> Self {
        let Mamba2Spec { num_heads, num_groups, .. } = spec;
        assert!(num_heads.is_multiple_of(num_groups), "{num_groups} groups of {num_heads} heads");
        assert_eq!(conv.channels(), spec.conv_width(), "inputs, B and C are convolved");
        let lengths = [decay_rates.len(), dt_bias.len(), skips.len()];
        assert_eq!(lengths, [num_heads; 3], "one for each head");
        Self { spec, conv, decay_rates, dt_bias, skips }
    }

    /// The head configuration.
    pub fn spec(&self) -> &Mamba2Spec {
        &self.spec
    }

    /// The short convolution.
    pub fn conv(&self) -> &CausalConv {
        &self.conv
    }

    /// Decay rate of each head.
    #[cfg(feature = "burn")]
    pub(crate) fn decay_rates(&self) -> &[f32] {
        &self.decay_rates
    }

    /// Bias of each head's time step.
    #[cfg(feature = "burn")]
    pub(crate) fn dt_bias(&self) -> &[f32] {
        &self.dt_bias
    }

    /// Factor of each head on its input.
    #[cfg(feature = "burn")]
    pub(crate) fn skips(&self) -> &[f32] {
        &self.skips
    }

    /// Elements of a state: [`Mamba2Spec::state_elements`].
    pub fn state_len(&self) -> usize {
        self.spec.state_elements(self.conv.kernel_size())
    }

    /// Time step of a head for a token, from the projection's output, and the decay in it:
    /// `dt = ln(1 + e^(dt + bias))`, within the limits, and `alpha = e^(-rate · dt)`.
    fn step(&self, head: usize, dt: f32) -> Step {
        let [shortest, longest] = self.spec.time_step_limit.map(f64::from);
        let dt = softplus(f64::from(dt) + f64::from(self.dt_bias[head])).max(shortest).min(longest);
        Step { alpha: (-f64::from(self.decay_rates[head]) * dt).exp() as f32, dt: dt as f32 }
    }
}

/// Convolves the heads' inputs, `B` and `C` over each sequence, applies SiLU, and runs each head's state
/// matrix `S` `[state_dim, head_dim]` token by token:
///
/// `S ← alpha · S + B ⊗ (dt · x)`, `y = Sᵀ C + D · x`
///
/// The gates at the start of a row are not read. A row's result is bit-identical however the rows of a
/// sequence are split into calls and batched with others: a prefill computes the same as decode steps.
///
/// # Shapes
/// - `projected`: `[rows, projected_width]`: gates `[inner_width]`, inputs, `B` and `C` `[conv_width]`, and
///   time steps `[num_heads]`
/// - `out`: `[rows, num_heads, head_dim]`; overwritten
///
/// # Panics
/// When a length does not fit, the states are not of [`Mamba2::state_len`], row ranges overlap, a block
/// table is too short or names a page out of range, or a page that one sequence writes is written or read by
/// another.
///
/// # Source
/// Transformers are SSMs, arXiv 2405.21060; `GraniteMoeHybridMambaLayer` of transformers 5.23.
pub fn mamba2(
    pool: &Pool,
    projected: &[f32],
    net: &Mamba2,
    states: &mut StatePages,
    layout: &RaggedLayout,
    out: &mut [f32],
) {
    let _span = profile::span(Work::States);
    mamba2_on(Isa::current(), pool, projected, net, states, layout, out);
}

/// [`mamba2`] on one instruction set.
fn mamba2_on(
    isa: Isa,
    pool: &Pool,
    projected: &[f32],
    net: &Mamba2,
    states: &mut StatePages,
    layout: &RaggedLayout,
    out: &mut [f32],
) {
    let (rows, spec, stride) = (layout.rows(), net.spec, net.spec.projected_width());
    let (heads, width) = (spec.num_heads, spec.conv_width());
    assert_eq!(projected.len(), rows * stride, "projected rows are [{rows}, {stride}]");
    assert_eq!(out.len(), rows * spec.inner_width(), "results are [{rows}, {heads}, {}]", spec.head_dim);
    assert_eq!(states.state_len(), net.state_len(), "states are those of the layer");
    let sequences = states.prepare(layout);
    let states = states.share();
    let mut mixed = vec![0.0; rows * width];
    let inputs = SiluOfRows { rows: projected, stride, channels: spec.convolved() };
    net.conv.run(isa, pool, &inputs, &sequences, &states, &SharedMatrix::new(&mut mixed, width));
    let mut steps = vec![Step::default(); rows * heads];
    for_each_chunk(pool, &mut steps, ROWS * heads, |index, steps| {
        for (offset, step) in steps.iter_mut().enumerate() {
            let (row, head) = (index * ROWS + offset / heads, offset % heads);
            *step = net.step(head, projected[row * stride + spec.convolved().end + head]);
        }
    });
    let heads = Heads { net, mixed: &mixed, steps: &steps, sequences: &sequences };
    heads.run(isa, pool, &states, out);
}
