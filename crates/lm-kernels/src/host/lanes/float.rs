//! Floats one at a time, with the bits that every path computes: conversions, rounding, exponentials.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Rounds a number of a magnitude below 2^22 to the nearest integer, ties to even; any result for others.
#[inline(always)]
pub(in crate::host) fn round(x: f32) -> i32 {
    // The integer is in the lowest bits of the sum.
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23: one unit in the last place is 1
    (x + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i32
}

/// e to the power of `x`, within 2 units in the last place; 0 below -87, so that no result is denormal,
/// infinite above 88.72.
#[inline(always)]
pub(in crate::host) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-87.0, 88.72);
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, clamped));
    // Taylor's polynomial of degree 7: its error on the interval, 5e-9, is below the rounding of the sum.
    let mut power = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = r.mul_add(power, coefficient);
    }
    // 2^n in two steps, since n may be 128.
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = exponent >> 1;
    let two_to = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
    let result = power * two_to(half) * two_to(exponent - half);
    if x < -87.0 {
        0.0
    } else if x > 88.72 {
        f32::INFINITY
    } else {
        result
    }
}

/// Converts the bits of an f16 to a float.
#[inline(always)]
pub(in crate::host) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Rebiases the exponent; exact, denormals included.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let infinite_or_nan = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | infinite_or_nan | (u32::from(bits & 0x8000) << 16))
}

/// Rounds a nonnegative number up to bf16 bits.
pub(in crate::host) fn bfloat_not_below(x: f32) -> u16 {
    let bfloat = half::bf16::from_f32(x);
    if bfloat.to_f32() < x { bfloat.to_bits() + 1 } else { bfloat.to_bits() }
}

/// 2^(e - 128): the exponent bits are `e - 1`; a denormal if that is 0 or less.
#[inline(always)]
pub(in crate::host) fn exp2(exponent: u8) -> f32 {
    let exponent = i32::from(exponent);
    let denormal = (1 + exponent.min(1)) << 21;
    f32::from_bits(((exponent - 1) << 23).max(denormal) as u32)
}

/// Converts the bits of a bf16 to a float.
#[inline(always)]
pub(in crate::host) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds floats to f16, ties to even; overflow gives infinity.
pub(in crate::host) fn f32_to_f16(x: &[f32], out: &mut [u16]) {
    out.reinterpret_cast_mut::<half::f16>().convert_from_f32_slice(x);
}
