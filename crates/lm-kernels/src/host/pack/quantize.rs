//! How integers and scales are found for floats.

use super::super::lanes::{F32x16, Lanes, Line};
use super::integer::IntegerLayout;

/// A format that floats can be quantised to.
pub(in crate::host) trait Quantize: IntegerLayout {
    /// Finds scales and quants for a block of 16 rows, column by column, whole groups of them. The lines are zeros before.
    fn quantize(x: &[F32x16], scales: &mut Self::Scales, lines: &mut [Line]);
}

/// Groups whose largest magnitude is below this are zeros: the inverse of their scale would be infinite.
const TINY: f32 = 1e-35;

/// The scale with the least squared error for quants from -8 to 7, of a few that take the largest magnitude to about -8.
///
/// For given integers the best scale is Σxq / Σq², and it lowers the error by (Σxq)² / Σq².
#[inline(always)]
pub(super) fn least_squares_scale(x: &[F32x16]) -> F32x16 {
    let largest = x
        .iter()
        .fold(F32x16::ZERO, |largest, x| largest.zip(*x, |a, b| if b.abs() > a.abs() { b } else { a }));
    let mut best_gain = F32x16::ZERO;
    let mut best_scale = F32x16::ZERO;
    for target in [8.0_f32, 7.7, 7.4, 7.1, 6.8, 6.4, 6.0, 8.3, 8.6, 9.0] {
        let inverse = largest.map(|largest| if largest.abs() > TINY { -target / largest } else { 0.0 });
        let (mut xq, mut qq) = (F32x16::ZERO, F32x16::ZERO);
        for x in x {
            let q = x.zip(inverse, |x, inverse| round(x * inverse).clamp(-8.0, 7.0));
            xq = x.mul_add(q, xq);
            qq = q.mul_add(q, qq);
        }
        for lane in 0..xq.0.len() {
            let gain = xq.0[lane] * (xq.0[lane] / qq.0[lane]); // NaN without any quant: never the best
            if gain > best_gain.0[lane] {
                best_gain.0[lane] = gain;
                best_scale.0[lane] = xq.0[lane] / qq.0[lane];
            }
        }
    }
    best_scale
}

/// `1 / x`, and 0 for 0.
#[inline(always)]
pub(super) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// The nearest integer, ties to even, of a number below 2^22.
#[inline(always)]
pub(in crate::host) fn round(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23: one unit in the last place is 1
    (x + SHIFT) - SHIFT
}

/// A small integer without sign from the float that it is.
#[inline(always)]
pub(super) fn low_bits(x: f32) -> u32 {
    (x + 8_388_608.0).to_bits() & 0xff // 2^23: the integer stands in the lowest bits of the fraction
}
