use std::ops::{Add, Div, Mul, Sub};

/// How RoPE's frequencies are changed for a longer context.
///
/// # Source
/// `modeling_rope_utils.py` of transformers, the functions of the same names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RopeScaling {
    None,
    /// Every frequency divided by `factor`.
    Linear {
        factor: f64,
    },
    /// The first `pairs` of a head's pairs turn, by frequencies divided by `factor`; the others stand still.
    Proportional {
        factor: f64,
        pairs: usize,
    },
    /// A base that grows with a sequence that is longer than the context.
    Dynamic {
        factor: f64,
        context: usize,
    },
    /// Low frequencies divided by `factor`, high ones kept, a blend between.
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        context: f64,
    },
    /// Frequencies kept up to pair `low`, divided by `factor` from pair `high`, a blend between.
    ///
    /// # Source
    /// YaRN, arXiv 2309.00071.
    Yarn {
        factor: f64,
        context: f64,
        low: f64,
        high: f64,
        attention_factor: f64,
    },
    /// A divisor for each pair: `short` ones for sequences within the context, `long` ones beyond.
    ///
    /// # Source
    /// LongRoPE, arXiv 2402.13753.
    LongRope {
        short: Vec<f64>,
        long: Vec<f64>,
        context: usize,
        attention_factor: f64,
    },
}

impl RopeScaling {
    /// Whether a sequence's length changes the frequencies.
    pub(crate) fn depends_on_length(&self) -> bool {
        matches!(self, Self::Dynamic { .. } | Self::LongRope { .. })
    }

    /// Factor on sine and cosine.
    pub(super) fn attention_factor(&self) -> f64 {
        match self {
            Self::Yarn { attention_factor, .. } | Self::LongRope { attention_factor, .. } => {
                *attention_factor
            }
            _ => 1.0,
        }
    }

    /// The base for a sequence of `len` tokens.
    pub(super) fn theta(&self, theta: f64, rotary_dim: usize, len: usize) -> f64 {
        match *self {
            Self::Dynamic { factor, context } if len > context => {
                let dim = rotary_dim as f64;
                let growth = factor * len as f64 / context as f64 - (factor - 1.0);
                theta * growth.powf(dim / (dim - 2.0))
            }
            _ => theta,
        }
    }

    /// The frequency of a pair in a sequence of `len` tokens; `period` is the reciprocal of the one without scaling.
    ///
    /// The operations are those of the reference in its order: in f32 they round alike, and models were trained with what comes out.
    pub(super) fn apply<R: Real>(&self, pair: usize, period: R, len: usize) -> R {
        let (one, of) = (R::of(1.0), R::of);
        let frequency = one / period;
        match self {
            Self::None | Self::Dynamic { .. } => frequency,
            Self::Linear { factor } => frequency / of(*factor),
            Self::Proportional { factor, pairs } if pair < *pairs => frequency / of(*factor),
            Self::Proportional { .. } => of(0.0),
            &Self::Llama3 { factor, low_freq_factor, high_freq_factor, context } => {
                let turns = of(context) / (of(std::f64::consts::TAU) / frequency);
                let kept = (turns - of(low_freq_factor)) / of(high_freq_factor - low_freq_factor);
                let kept = within_one(kept);
                (one - kept) * frequency / of(factor) + kept * frequency
            }
            &Self::Yarn { factor, low, high, .. } => {
                let kept = one - within_one((of(pair as f64) - of(low)) / of(high - low));
                one / (of(factor) * period) * (one - kept) + frequency * kept
            }
            Self::LongRope { short, long, context, .. } => {
                one / (of(if len > *context { long[pair] } else { short[pair] }) * period)
            }
        }
    }
}

/// The arithmetic of frequencies: f32 for what the kernel rotates by, f64 for what is written down of it.
pub(super) trait Real:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

/// The nearest number from 0 to 1.
fn within_one<R: Real>(value: R) -> R {
    let (zero, one) = (R::of(0.0), R::of(1.0));
    if value < zero {
        zero
    } else if value > one {
        one
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three bands of Llama 3.1: wavelengths below 2,048 kept, above 8,192 divided by 8, a blend between.
    #[test]
    fn llama3_scales_low_frequencies_only() {
        let scaling =
            RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, context: 8192.0 };
        let of_wavelength = |wavelength: f64| std::f64::consts::TAU / wavelength;
        for (wavelength, divisor) in [(10.0, 1.0), (2048.0, 1.0), (8192.0, 8.0), (100_000.0, 8.0)] {
            let frequency = of_wavelength(wavelength);
            let scaled = scaling.apply(0, 1.0 / frequency, 1);
            assert!((scaled * divisor / frequency - 1.0).abs() < 1e-12, "{wavelength}");
        }
        let middle = of_wavelength(4096.0);
        let expected = middle * (1.0 / 3.0 + 2.0 / 3.0 / 8.0);
        assert!((scaling.apply(0, 1.0 / middle, 1) / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn yarn_keeps_the_first_pairs() {
        let scaling =
            RopeScaling::Yarn { factor: 4.0, context: 8.0, low: 1.0, high: 3.0, attention_factor: 1.0 };
        let scaled: Vec<f64> = (0..5).map(|pair| scaling.apply(pair, 1.0_f64, 1)).collect();
        assert_eq!(scaled, [1.0, 1.0, 0.625, 0.25, 0.25]);
    }
}
