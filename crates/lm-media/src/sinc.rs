//! Resampling of audio to 16 kHz with windowed sincs, in the form and with the defaults of torchaudio's
//! `functional.resample` (2.11): `sinc_interp_hann`, six zero crossings, a cut-off at 0.99 of the smaller
//! Nyquist frequency. Weights and sums are in double precision, as in torchaudio for audio in double
//! precision; in single precision torchaudio is off by about 1e-5 of full scale.

use std::f64::consts::PI;

use crate::audio::SAMPLE_RATE;

/// Zero crossings of a filter at each side.
const CROSSINGS: f64 = 6.0;

/// Cut-off frequency in terms of the smaller Nyquist frequency.
const ROLLOFF: f64 = 0.99;

/// Weights of one output sample, and the distance of the first one from the start of its block.
struct Taps {
    first: isize,
    weights: Vec<f64>,
}

/// Resampler of one channel to [`SAMPLE_RATE`]; takes the samples in pieces.
pub struct Resampler {
    /// Filters of the output samples of a block.
    filters: Vec<Taps>,
    /// Input samples of a block.
    block: usize,
    /// Number of samples before a block that its outputs need.
    reach: isize,
    /// Number of input samples so far, without silence at the end.
    taken: usize,
    /// Input samples that outputs still need.
    kept: Vec<f32>,
    /// Index of the first kept sample; negative at the start, where silence precedes the samples.
    start: isize,
    out: Vec<f32>,
}

impl Resampler {
    /// Creates a resampler from `rate` samples per second, at least one.
    pub fn new(rate: usize) -> Self {
        let divisor = greatest_common_divisor(rate, SAMPLE_RATE);
        let (block, outputs) = (rate / divisor, SAMPLE_RATE / divisor);
        let filters: Vec<Taps> = match block == outputs {
            true => vec![Taps { first: 0, weights: vec![1.0] }],
            false => (0..outputs).map(|output| taps(output, block, outputs)).collect(),
        };
        let reach = filters.iter().map(|taps| -taps.first).max().unwrap_or(0).max(0);
        let kept = vec![0.0; reach.unsigned_abs()];
        Self { filters, block, reach, taken: 0, kept, start: -reach, out: Vec::new() }
    }

    /// Takes the next samples.
    pub fn push(&mut self, samples: &[f32]) {
        self.taken += samples.len();
        self.kept.extend_from_slice(samples);
        self.produce(usize::MAX);
    }

    /// Returns the resampled audio: all samples that start within the input.
    pub fn finish(mut self) -> Vec<f32> {
        let total = resampled_length(self.taken, self.block, self.filters.len());
        let last = self.filters.iter().map(|taps| taps.weights.len()).max().unwrap_or(0);
        self.kept.resize(self.kept.len() + last + self.block, 0.0);
        self.produce(total);
        self.out
    }

    /// Computes the outputs whose inputs are known, up to a total number.
    fn produce(&mut self, total: usize) {
        while self.out.len() < total {
            let taps = &self.filters[self.out.len() % self.filters.len()];
            let block = (self.out.len() / self.filters.len() * self.block) as isize;
            let at = (block + taps.first - self.start).unsigned_abs();
            let Some(inputs) = self.kept.get(at..at + taps.weights.len()) else { break };
            let sum: f64 =
                inputs.iter().zip(&taps.weights).map(|(input, weight)| f64::from(*input) * weight).sum();
            self.out.push(sum as f32);
        }
        self.forget();
    }

    /// Drops samples before the block of the next output.
    fn forget(&mut self) {
        let block = (self.out.len() / self.filters.len() * self.block) as isize;
        let unneeded = (block - self.reach - self.start).max(0).unsigned_abs().min(self.kept.len());
        self.kept.drain(..unneeded);
        self.start += unneeded as isize;
    }
}

/// Number of samples at [`SAMPLE_RATE`] of an audio clip of `samples` samples at `rate`.
pub fn length_at_sample_rate(samples: usize, rate: usize) -> usize {
    resampled_length(samples, rate, SAMPLE_RATE)
}

fn resampled_length(samples: usize, block: usize, outputs: usize) -> usize {
    (samples as u128 * outputs as u128).div_ceil(block as u128) as usize
}

/// Returns the filter of one of `outputs` samples computed from `block` samples.
fn taps(output: usize, block: usize, outputs: usize) -> Taps {
    let cutoff = block.min(outputs) as f64 * ROLLOFF;
    let center = output as f64 / outputs as f64;
    let reach = CROSSINGS / cutoff;
    let (from, to) = (((center - reach) * block as f64).ceil(), ((center + reach) * block as f64).floor());
    let weight = |input: isize| {
        let distance = (input as f64 / block as f64 - center) * cutoff;
        let window = (distance * PI / CROSSINGS / 2.0).cos().powi(2);
        let sinc = if distance == 0.0 { 1.0 } else { (distance * PI).sin() / (distance * PI) };
        sinc * window * cutoff / block as f64
    };
    let first = from as isize;
    Taps { first, weights: (first..=to as isize).map(weight).collect() }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
