//! The gated delta rule (Gated DeltaNet): a matrix-valued state per head with decay and delta-rule updates.

mod recurrence;
#[cfg(test)]
mod tests;

use super::causal_conv::{CausalConv, SiluOfRows};
use super::isa::Isa;
use super::lanes::{Kernel, LANES, Lanes, dot};
use super::pages::StatePages;
use super::pool::Pool;
use super::profile::{self, Work};
use super::ragged::RaggedLayout;
use super::split::{SharedMatrix, for_each_chunk};
use super::time_step::softplus;
use recurrence::{Gate, Heads};

/// Rows per task.
const ROWS: usize = 8;

/// Epsilon of the L2 norm of keys and queries, added to the sum of squares under the root.
const NORM_EPS: f32 = 1e-6;

/// Head configuration of a gated delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetSpec {
    /// Query and key heads.
    pub num_key_heads: usize,
    /// Value heads, a multiple of `num_key_heads`.
    pub num_value_heads: usize,
    /// Head dimension of queries and keys.
    pub key_dim: usize,
    /// Head dimension of values.
    pub value_dim: usize,
    /// Assignment of value heads to key heads.
    pub order: HeadOrder,
}

/// Assignment of value heads to the key heads of a gated delta net, if there are several per key head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadOrder {
    /// Value heads of one key head are adjacent: `h` uses `h / (num_value_heads / num_key_heads)`, as in
    /// checkpoints of Hugging Face.
    #[default]
    Grouped,
    /// Key heads alternate: `h` uses `h % num_key_heads`, as in GGUF files of llama.cpp.
    Tiled,
}

impl DeltaNetSpec {
    /// Elements of all queries, keys and values of a row.
    pub fn width(&self) -> usize {
        2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim
    }

    /// Elements of a state with a convolution of this kernel size: the convolution's state, then
    /// `[num_value_heads, blocks of 16 values, key_dim, 16]`.
    pub fn state_elements(&self, kernel_size: usize) -> usize {
        let matrices = self.num_value_heads * self.value_blocks() * self.key_dim * LANES;
        CausalConv::state_elements(kernel_size, self.width()) + matrices
    }

    /// Key head of a value head.
    pub fn key_head(&self, value_head: usize) -> usize {
        match self.order {
            HeadOrder::Grouped => value_head / (self.num_value_heads / self.num_key_heads),
            HeadOrder::Tiled => value_head % self.num_key_heads,
        }
    }

    /// Blocks of 16 lanes per value head in a state.
    fn value_blocks(&self) -> usize {
        self.value_dim.div_ceil(LANES)
    }
}

/// Weights of a gated delta net with the short convolution in front of it.
///
/// Its state is that of the convolution and, behind it, a matrix for each value head.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaNet {
    spec: DeltaNetSpec,
    conv: CausalConv,
    /// Decay rate of each value head: at least 0.
    decay_rates: Vec<f32>,
    /// Bias of each value head's time step `dt`.
    dt_bias: Vec<f32>,
}

impl DeltaNet {
    /// Creates a net from its weights.
    ///
    /// # Shapes
    /// - `conv`: of [`DeltaNetSpec::width`] channels, over queries, keys and values in this order
    /// - `decay_rates`, `dt_bias`: `[num_value_heads]`; checkpoints have the first as `A_log`, its logarithm
    ///
    /// # Panics
    /// When a length does not fit, or key heads do not divide value heads.
    pub fn new(spec: DeltaNetSpec, conv: CausalConv, decay_rates: Vec<f32>, dt_bias: Vec<f32>) -> Self {
        let DeltaNetSpec { num_key_heads, num_value_heads, .. } = spec;
        assert!(
            num_value_heads.is_multiple_of(num_key_heads),
            "{num_key_heads} key heads of {num_value_heads}"
        );
        assert_eq!(conv.channels(), spec.width(), "queries, keys and values are convolved");
        assert_eq!([decay_rates.len(), dt_bias.len()], [num_value_heads; 2], "one for each value head");
        Self { spec, conv, decay_rates, dt_bias }
    }

    /// The head configuration.
    pub fn spec(&self) -> &DeltaNetSpec {
        &self.spec
    }

    /// The short convolution in front of it.
    pub fn conv(&self) -> &CausalConv {
        &self.conv
    }

    /// Decay rate of each value head.
    #[cfg(feature = "burn")]
    pub(crate) fn decay_rates(&self) -> &[f32] {
        &self.decay_rates
    }

    /// Bias of each value head's time step `dt`.
    #[cfg(feature = "burn")]
    pub(crate) fn dt_bias(&self) -> &[f32] {
        &self.dt_bias
    }

    /// Elements of a state: [`DeltaNetSpec::state_elements`].
    pub fn state_len(&self) -> usize {
        self.spec.state_elements(self.conv.kernel_size())
    }

    /// Gates of a value head for a token, from `dt` and `beta` as the projections output them:
    /// `alpha = e^(-rate · ln(1 + e^(dt + bias)))`, and the sigmoid of `beta`.
    pub(crate) fn gate(&self, head: usize, dt: f32, beta: f32) -> Gate {
        let dt = softplus(f64::from(dt) + f64::from(self.dt_bias[head]));
        Gate {
            alpha: (-f64::from(self.decay_rates[head]) * dt).exp() as f32,
            beta: (1.0 / (1.0 + (-f64::from(beta)).exp())) as f32,
        }
    }
}

/// Input rows of [`delta_net`], as the projections output them.
#[derive(Clone, Copy, Debug)]
pub struct DeltaNetRows<'a> {
    /// `[rows, width]`: queries, keys and values, before the convolution.
    pub qkv: &'a [f32],
    /// `[rows, num_value_heads]`: time step `dt` before bias and softplus (`a` of the reference).
    pub dt: &'a [f32],
    /// `[rows, num_value_heads]`: update strength `beta` before the sigmoid (`b` of the reference).
    pub beta: &'a [f32],
}

/// Convolves queries, keys and values over each sequence, applies SiLU, L2-normalises queries and keys, and
/// runs each value head's state matrix `S` `[key_dim, value_dim]` token by token:
///
/// `S ← alpha · S`, `S ← S + k ⊗ beta · (v - Sᵀk)`, `y = Sᵀq / sqrt(key_dim)`
///
/// A row's result is bit-identical however the rows of a sequence are split into calls and batched with
/// others: a prefill computes the same as decode steps.
///
/// # Shapes
/// - `out`: `[rows, num_value_heads, value_dim]`; overwritten
///
/// # Panics
/// When a length does not fit, the states are not of [`DeltaNet::state_len`], row ranges overlap, a block
/// table is too short or names a page out of range, or a page that one sequence writes is written or read by
/// another.
///
/// # Source
/// Gated Delta Networks, arXiv 2412.06464; `torch_recurrent_gated_delta_rule` of transformers 5.23,
/// `models/qwen3_5`.
pub fn delta_net(
    pool: &Pool,
    rows: DeltaNetRows<'_>,
    net: &DeltaNet,
    states: &mut StatePages,
    layout: &RaggedLayout,
    out: &mut [f32],
) {
    let _span = profile::span(Work::States);
    delta_net_on(Isa::current(), pool, rows, net, states, layout, out);
}

/// [`delta_net`] on one instruction set.
fn delta_net_on(
    isa: Isa,
    pool: &Pool,
    DeltaNetRows { qkv, dt, beta }: DeltaNetRows<'_>,
    net: &DeltaNet,
    states: &mut StatePages,
    layout: &RaggedLayout,
    out: &mut [f32],
) {
    let (rows, spec, width) = (layout.rows(), net.spec, net.spec.width());
    let heads = spec.num_value_heads;
    assert_eq!(qkv.len(), rows * width, "queries, keys and values are [{rows}, {width}]");
    assert_eq!([dt.len(), beta.len()], [rows * heads; 2], "gates are [{rows}, {heads}]");
    assert_eq!(out.len(), rows * heads * spec.value_dim, "results are [{rows}, {heads}, {}]", spec.value_dim);
    assert_eq!(states.state_len(), net.state_len(), "states are those of the net");
    let sequences = states.prepare(layout);
    let states = states.share();
    let mut mixed = vec![0.0; qkv.len()];
    let inputs = SiluOfRows { rows: qkv, stride: width, channels: 0..width };
    net.conv.run(isa, pool, &inputs, &sequences, &states, &SharedMatrix::new(&mut mixed, width));
    for_each_chunk(pool, &mut mixed, ROWS * width, |_, rows| isa.run(NormHeads { rows, spec }));
    let mut gates = vec![Gate::default(); rows * heads];
    for_each_chunk(pool, &mut gates, ROWS * heads, |index, gates| {
        for (offset, gate) in gates.iter_mut().enumerate() {
            let index = index * ROWS * heads + offset;
            *gate = net.gate(index % heads, dt[index], beta[index]);
        }
    });
    let heads =
        Heads { spec, first: net.conv.state_len(), mixed: &mixed, gates: &gates, sequences: &sequences };
    heads.run(isa, pool, &states, out);
}

/// L2-normalises the queries and keys of whole rows; queries are scaled by `1 / sqrt(key_dim)` as well.
struct NormHeads<'a> {
    rows: &'a mut [f32],
    spec: DeltaNetSpec,
}

impl Kernel for NormHeads<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let DeltaNetSpec { num_key_heads, key_dim, .. } = self.spec;
        let query_scale = 1.0 / (key_dim as f32).sqrt();
        for row in self.rows.chunks_exact_mut(self.spec.width()) {
            let heads = row[..2 * num_key_heads * key_dim].chunks_exact_mut(key_dim);
            for (index, head) in heads.enumerate() {
                let scale = if index < num_key_heads { query_scale } else { 1.0 };
                let factor = scale / (dot::<V>(head, head) + NORM_EPS).sqrt();
                for x in head {
                    *x *= factor;
                }
            }
        }
    }
}
