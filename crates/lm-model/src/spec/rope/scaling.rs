use std::ops::{Add, Div, Mul, Sub};

/// Scaling of RoPE's frequencies for a longer context.
///
/// # Source
/// `modeling_rope_utils.py` of transformers, the functions of the same names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RopeScaling {
    None,
    /// Divides every frequency by `factor`.
    Linear {
        factor: f64,
    },
    /// Rotates the first `pairs` of a head's pairs, with frequencies divided by `factor`; the others are not
    /// rotated.
    Proportional {
        factor: f64,
        pairs: usize,
    },
    /// Increases the base with the length of a sequence beyond the context.
    Dynamic {
        factor: f64,
        context: usize,
    },
    /// Divides low frequencies by `factor`, keeps high ones, blends between.
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        context: f64,
    },
    /// Keeps frequencies up to pair `low`, divides them by `factor` from pair `high`, blends between.
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
    /// Divides each pair's frequency: by `short` in sequences within the context, by `long` in longer ones.
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
    /// Returns true if the frequencies depend on the sequence length.
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

    /// Returns the base (theta) for a sequence of `len` tokens.
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

    /// Returns the frequency of a pair in a sequence of `len` tokens; `period` is the reciprocal of the
    /// unscaled frequency.
    ///
    /// Operations and their order match the reference, so that they round alike in f32; models were trained
    /// with these values.
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

/// Float type of the frequency computation: f32 for the kernel's table, f64 for the divisors that are written
/// to files.
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

/// Clamps to 0..=1.
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
