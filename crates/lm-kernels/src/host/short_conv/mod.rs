//! The gated short convolution of LFM2.

#[cfg(test)]
mod tests;

use super::causal_conv::{CausalConv, Fusion};
use super::isa::Isa;
use super::lanes::{LANES, Lanes, load_part};
use super::pages::StatePages;
use super::pool::Pool;
use super::profile::{self, Work};
use super::ragged::RaggedLayout;
use super::split::SharedMatrix;

/// Gated short convolution over each sequence: with a row `b, c, x` of channels each, `c · conv(b · x)`.
///
/// The state of a sequence is that of the convolution, over the products `b · x`. A row's result is
/// bit-identical however the rows of a sequence are split into calls and batched with others.
///
/// # Shapes
/// - `x`: `[rows, 3 * channels]`, `out`: `[rows, channels]`, which is overwritten
///
/// # Panics
/// When a length does not fit, the states are not of [`CausalConv::state_len`], row ranges overlap, a block
/// table is too short or names a page out of range, or a page that one sequence writes is written or read by
/// another.
///
/// # Source
/// `Lfm2ShortConv` of transformers 5.23, `models/lfm2/modular_lfm2.py`.
pub fn short_conv(
    pool: &Pool,
    x: &[f32],
    conv: &CausalConv,
    states: &mut StatePages,
    layout: &RaggedLayout,
    out: &mut [f32],
) {
    let _span = profile::span(Work::States);
    short_conv_on(Isa::current(), pool, x, conv, states, layout, out);
}

/// [`short_conv`] on one instruction set.
fn short_conv_on(
    isa: Isa,
    pool: &Pool,
    x: &[f32],
    conv: &CausalConv,
    states: &mut StatePages,
    layout: &RaggedLayout,
    out: &mut [f32],
) {
    let (rows, channels) = (layout.rows(), conv.channels());
    assert_eq!(x.len(), 3 * rows * channels, "gates and inputs are [{rows}, 3, {channels}]");
    assert_eq!(out.len(), rows * channels, "results are [{rows}, {channels}]");
    assert_eq!(states.state_len(), conv.state_len(), "states are those of the convolution");
    let sequences = states.prepare(layout);
    let out = SharedMatrix::new(out, channels);
    conv.run(isa, pool, &Gates { x, channels }, &sequences, &states.share(), &out);
}

/// Rows of two gates and the input.
struct Gates<'a> {
    x: &'a [f32],
    channels: usize,
}

impl Gates<'_> {
    /// Loads part 0 (`b`), 1 (`c`) or 2 (`x`) of a row.
    #[inline(always)]
    fn part<V: Lanes>(&self, row: usize, part: usize, channel: usize) -> V {
        let start = (3 * row + part) * self.channels;
        load_part(&self.x[start + channel..start + self.channels.min(channel + LANES)])
    }
}

impl Fusion for Gates<'_> {
    #[inline(always)]
    fn input<V: Lanes>(&self, row: usize, channel: usize) -> V {
        self.part::<V>(row, 0, channel).mul(self.part(row, 2, channel))
    }

    #[inline(always)]
    fn output<V: Lanes>(&self, row: usize, channel: usize, sum: V) -> V {
        self.part::<V>(row, 1, channel).mul(sum)
    }
}
