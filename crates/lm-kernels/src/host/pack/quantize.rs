//! How integers and scales are found for floats.

use super::super::lanes::{F32x16, Lanes, Line};
use super::integer::IntegerLayout;

/// A format that floats can be quantised to.
pub(in crate::host) trait Quantize: IntegerLayout {
    /// Finds scales and quants for a block of 16 rows, column by column, whole groups of them. The lines are zeros before.
    fn quantize<V: Lanes>(x: &[F32x16], scales: &mut Self::Scales, lines: &mut [Line]);
}

/// `1 / x`, and 0 for 0.
#[inline(always)]
pub(super) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// 1.5 · 2^23: added to a small number, it leaves no room for a fraction.
pub(super) const SHIFT: f32 = 12_582_912.0;

/// The nearest integer, ties to even, of a number below 2^22.
#[inline(always)]
pub(in crate::host) fn round(x: f32) -> f32 {
    (x + SHIFT) - SHIFT
}

/// A small integer without sign from the float that it is.
#[inline(always)]
pub(super) fn low_bits(x: f32) -> u32 {
    (x + 8_388_608.0).to_bits() & 0xff // 2^23: the integer stands in the lowest bits of the fraction
}
