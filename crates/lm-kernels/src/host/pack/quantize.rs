//! Quantisation of floats to the integer formats.

use super::super::lanes::{F32x16, Lanes, Line};
use super::integer::IntegerLayout;

/// A format that floats can be quantised to.
pub(in crate::host) trait Quantize: IntegerLayout {
    /// Quantises a block of 16 rows, given column by column in full groups, to scales and quants. The lines
    /// must be zero. `importances` are those of the values, for formats that search for scales; empty if
    /// there are none.
    fn quantize<V: Lanes>(
        x: &[F32x16],
        importances: &[F32x16],
        scales: &mut Self::Scales,
        lines: &mut [Line],
    );
}

/// `1 / x`, and 0 for 0.
#[inline(always)]
pub(super) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// 1.5 · 2^23: adding it to a small number rounds to an integer.
pub(super) const SHIFT: f32 = 12_582_912.0;

/// Rounds a number below 2^22 in magnitude to the nearest integer, ties to even.
#[inline(always)]
pub(super) fn round(x: f32) -> f32 {
    (x + SHIFT) - SHIFT
}

/// Converts a float that is a small unsigned integer to that integer.
#[inline(always)]
pub(super) fn low_bits(x: f32) -> u32 {
    (x + 8_388_608.0).to_bits() & 0xff // 2^23: the integer is in the lowest bits of the mantissa
}
