//! Softmax weights `e^(logit - max)` and sums over the vocabulary.

use super::argmax::BLOCK_SIZE;

/// Number of independent sums, so that the loops vectorise.
const LANES: usize = 16;

/// e to the power of `x` ≤ 0, within 2 units in the last place; 0 below -87, so that no result is denormal.
///
/// `f32::exp` is a call that does not vectorise: three times as slow over a vocabulary.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = if x > -87.0 { x } else { -87.0 };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor's polynomial of degree 7: its error on the interval, 5e-9, is below the rounding of the sum.
    let mut power = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * r + coefficient;
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let result = power * f32::from_bits(((exponent + 127) << 23) as u32);
    if x < -87.0 { 0.0 } else { result }
}

/// Sum of `term` over a block of at most [`BLOCK_SIZE`] values.
#[inline(always)]
pub(super) fn block_sum(values: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let mut sums = [0.0; LANES];
    let mut rows = values.chunks_exact(LANES);
    for row in &mut rows {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += term(value);
        }
    }
    let rest: f32 = rows.remainder().iter().map(|&value| term(value)).sum();
    f64::from(sums.iter().sum::<f32>() + rest)
}

/// Sum of `term` over any number of values.
#[inline(always)]
pub(super) fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    values.chunks(BLOCK_SIZE).map(|block| block_sum(block, &term)).sum()
}

/// Highest value; -infinity for an empty slice. Values are not NaN.
pub(super) fn max(values: &[f32]) -> f32 {
    let mut highest = [f32::NEG_INFINITY; LANES];
    let mut rows = values.chunks_exact(LANES);
    for row in &mut rows {
        for (highest, &value) in highest.iter_mut().zip(row) {
            *highest = if value > *highest { value } else { *highest };
        }
    }
    highest.iter().chain(rows.remainder()).fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate() {
        for i in -870_000..=0 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 2.0 * f64::from(f32::EPSILON), "exp({x}) is off by {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        for x in [f32::NEG_INFINITY, f32::MIN, -87.1] {
            assert_eq!(exp(x), 0.0, "{x}");
        }
    }

    #[test]
    fn sums_and_maxima_are_exact_for_every_length() {
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 1000] {
            let values: Vec<f32> = (0..len).map(|i| (i * 37 % 101) as f32).collect();
            let expected: f32 = values.iter().sum();
            assert_eq!(sum(&values, |value| value), f64::from(expected), "{len}");
            let highest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(max(&values), highest, "{len}");
        }
    }
}
