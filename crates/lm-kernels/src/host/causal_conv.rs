//! Causal depthwise 1-D convolutions over a sequence.

use std::ops::Range;

use super::activation::Activation;
use super::isa::Isa;
use super::lanes::{Kernel, LANES, Lanes, load_part, store_part};
use super::pages::StateRun;
use super::pool::Pool;
use super::split::SharedMatrix;

/// Channels per task.
const CHANNELS: usize = 8 * LANES;

/// Weights of a causal depthwise convolution over a sequence:
/// `y_t = bias + Σ_j weight_j · x_(t - kernel_size + 1 + j)` in each channel; inputs before the first token
/// are zero.
///
/// Its state is the last `kernel_size - 1` inputs.
///
/// ```
/// let conv = lm_kernels::CausalConv::new(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None); // 2 channels of kernel size 3
/// assert_eq!((conv.channels(), conv.kernel_size()), (2, 3));
/// assert_eq!(conv.state_len(), 2 * 16); // channels are filled up to 16
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CausalConv {
    kernel_size: usize,
    channels: usize,
    /// `[blocks of 16 channels, kernel_size, 16]`, zero-padded.
    weight: Vec<f32>,
    /// `[blocks, 16]`.
    bias: Vec<f32>,
}

impl CausalConv {
    /// Packs the weights.
    ///
    /// # Shapes
    /// - `weight`: `[channels, kernel_size]`, a channel's last weight for the newest input, as in PyTorch's
    ///   `Conv1d`
    /// - `bias`: `[channels]`
    ///
    /// # Panics
    /// When a length does not fit, or the kernel size is 0.
    pub fn new(kernel_size: usize, channels: usize, weight: &[f32], bias: Option<&[f32]>) -> Self {
        assert!(kernel_size > 0, "a convolution has taps");
        assert_eq!(weight.len(), channels * kernel_size, "taps are [{channels}, {kernel_size}]");
        let filled = channels.next_multiple_of(LANES);
        let mut conv =
            Self { kernel_size, channels, weight: vec![0.0; filled * kernel_size], bias: vec![0.0; filled] };
        for (channel, weight) in weight.chunks_exact(kernel_size).enumerate() {
            let (block, lane) = (channel / LANES, channel % LANES);
            for (index, value) in weight.iter().enumerate() {
                conv.weight[(block * kernel_size + index) * LANES + lane] = *value;
            }
        }
        if let Some(bias) = bias {
            assert_eq!(bias.len(), channels, "a bias for each channel");
            conv.bias[..channels].copy_from_slice(bias);
        }
        conv
    }

    /// Kernel size: the number of weights of a channel.
    pub fn kernel_size(&self) -> usize {
        self.kernel_size
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Elements of a state: `[blocks of 16 channels, kernel_size - 1, 16]`, the oldest input first.
    pub fn state_len(&self) -> usize {
        Self::state_elements(self.kernel_size, self.channels)
    }

    /// [`state_len`](Self::state_len) of a convolution with this kernel size and number of channels.
    ///
    /// # Panics
    /// When the kernel size is 0.
    pub fn state_elements(kernel_size: usize, channels: usize) -> usize {
        (kernel_size - 1) * channels.next_multiple_of(LANES)
    }

    /// A channel's weight for one of the kernel's inputs, the newest last.
    #[cfg(feature = "burn")]
    pub(crate) fn weight(&self, channel: usize, index: usize) -> f32 {
        self.weight[(channel / LANES * self.kernel_size + index) * LANES + channel % LANES]
    }

    /// The channels' biases.
    #[cfg(feature = "burn")]
    pub(crate) fn bias(&self) -> &[f32] {
        &self.bias[..self.channels]
    }

    /// Convolves the rows of each sequence, starting from its state in the pages and updating it; the state
    /// is the first [`state_len`](Self::state_len) elements of a page.
    ///
    /// # Panics
    /// When a row or a page is out of range.
    pub(super) fn run<A: Fusion>(
        &self,
        isa: Isa,
        pool: &Pool,
        fusion: &A,
        sequences: &[Vec<StateRun>],
        states: &SharedMatrix<'_, f32>,
        out: &SharedMatrix<'_, f32>,
    ) {
        let parts = self.channels.div_ceil(CHANNELS);
        pool.run(sequences.len() * parts, |index| {
            let (runs, part) = (&sequences[index / parts], index % parts);
            isa.run(Convolve { conv: self, fusion, runs, first: part * CHANNELS, states, out });
        });
    }

    /// Computes the output of 16 channels and shifts the input into the history.
    #[inline(always)]
    fn step<V: Lanes>(&self, block: usize, input: V, history: &mut [[f32; LANES]]) -> V {
        let weight = self.weight[block * self.kernel_size * LANES..][..self.kernel_size * LANES]
            .as_chunks::<LANES>()
            .0;
        let mut sum = load_part::<V>(&self.bias[block * LANES..]);
        for index in 0..history.len() {
            let earlier = V::load(&history[index]);
            sum = earlier.mul_add(V::load(&weight[index]), sum);
            if index > 0 {
                earlier.store(&mut history[index - 1]);
            }
        }
        if let Some(last) = history.last_mut() {
            input.store(last);
        }
        input.mul_add(V::load(&weight[self.kernel_size - 1]), sum)
    }
}

/// Prologue and epilogue fused into a convolution, for 16 channels from `channel` on; fewer at the end.
pub(super) trait Fusion: Sync {
    /// Loads the input of a row.
    fn input<V: Lanes>(&self, row: usize, channel: usize) -> V;
    /// Maps the row's sum to its output.
    fn output<V: Lanes>(&self, row: usize, channel: usize, sum: V) -> V;
}

/// Inputs taken from wider rows as they are, outputs through SiLU.
pub(super) struct SiluOfRows<'a> {
    pub rows: &'a [f32],
    /// Elements of a row.
    pub stride: usize,
    /// The channels' elements of a row.
    pub channels: Range<usize>,
}

impl Fusion for SiluOfRows<'_> {
    #[inline(always)]
    fn input<V: Lanes>(&self, row: usize, channel: usize) -> V {
        let start = row * self.stride + self.channels.start + channel;
        let end = row * self.stride + self.channels.end;
        load_part(&self.rows[start..end.min(start + LANES)])
    }

    #[inline(always)]
    fn output<V: Lanes>(&self, _: usize, _: usize, sum: V) -> V {
        let mut values = [0.0; LANES];
        sum.store(&mut values);
        for value in &mut values {
            *value = Activation::Silu.gate(*value, 1.0);
        }
        V::load(&values)
    }
}

/// The channels of one task over all rows of a sequence.
struct Convolve<'a, A> {
    conv: &'a CausalConv,
    fusion: &'a A,
    runs: &'a [StateRun],
    first: usize,
    states: &'a SharedMatrix<'a, f32>,
    out: &'a SharedMatrix<'a, f32>,
}

impl<A: Fusion> Kernel for Convolve<'_, A> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let (conv, end) = (self.conv, (self.first + CHANNELS).min(self.conv.channels));
        let blocks = self.first / LANES..end.div_ceil(LANES);
        let older = conv.kernel_size - 1;
        let columns = blocks.start * older * LANES..blocks.end * older * LANES;
        for (index, run) in self.runs.iter().enumerate() {
            // SAFETY: sequences write to distinct pages (`StatePages::check`), tasks of a sequence to
            // distinct columns.
            let mut state = unsafe { run.state(index, self.states, columns.clone()) };
            // SAFETY: as above, for rows.
            let mut out = unsafe { self.out.block(run.rows.clone(), self.first..end) };
            let history = state.row(0).as_chunks_mut::<LANES>().0;
            for (index, row) in run.rows.clone().enumerate() {
                let out = out.row(index);
                for block in blocks.clone() {
                    let channel = block * LANES;
                    let place = (block - blocks.start) * older;
                    let input = self.fusion.input::<V>(row, channel);
                    let sum = conv.step(block, input, &mut history[place..place + older]);
                    let result = self.fusion.output(row, channel, sum);
                    store_part(result, &mut out[channel - self.first..]);
                }
            }
        }
    }
}
