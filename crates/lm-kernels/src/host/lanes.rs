//! Sixteen floats side by side, and the few functions that kernels need of them.
//!
//! The lanes fix the order of every sum, so that wider registers cannot change a bit: sixteen floats are one AVX-512
//! register, two of AVX2, four of SSE or NEON. Plain loops over sixteen: the compiler turns them into vectors.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// How many lanes there are.
pub(super) const LANES: usize = 16;

/// Sixteen floats.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct F32x16(pub [f32; LANES]);

impl F32x16 {
    pub const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    pub fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    pub fn map(self, f: impl Fn(f32) -> f32) -> Self {
        let mut out = self;
        for value in &mut out.0 {
            *value = f(*value);
        }
        out
    }

    #[inline(always)]
    pub fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self;
        for lane in 0..LANES {
            out.0[lane] = f(self.0[lane], other.0[lane]);
        }
        out
    }

    /// `self * factor + addend`, rounded once.
    #[inline(always)]
    pub fn mul_add(self, factor: Self, addend: Self) -> Self {
        let mut out = addend;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane].mul_add(factor.0[lane], addend.0[lane]);
        }
        out
    }

    /// The lanes' sum, always by halves: lane i and lane i + 8, then i and i + 4, and so on.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        let mut lanes = self.0;
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        lanes[0]
    }
}

/// The dot product of two slices of one length: element `i` is added to lane `i % 16`.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sum = F32x16::ZERO;
    for (a, b) in a.iter().zip(b) {
        sum = F32x16(*a).mul_add(F32x16(*b), sum);
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sum.0[lane] = a.mul_add(*b, sum.0[lane]);
    }
    sum.sum()
}

/// `out += factor * x`, each element rounded once.
#[inline(always)]
pub(super) fn add_scaled(out: &mut [f32], factor: f32, x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = factor.mul_add(*x, *out);
    }
}

/// e to the power of `x`, within 2 units in the last place; 0 below -87, so that no result is denormal.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-87.0, 88.7);
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
    if x < -87.0 { 0.0 } else { result }
}

/// The float with the bits of a half.
#[inline(always)]
pub(super) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Moves the exponent by the difference of the two biases; exact, denormal halves included.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let infinite_or_nan = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | infinite_or_nan | (u32::from(bits & 0x8000) << 16))
}

/// The float with the bits of a bfloat16.
#[inline(always)]
pub(super) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds floats to the nearest halves, ties to even; what is too large becomes infinite.
pub(super) fn f32_to_f16(x: &[f32], out: &mut [u16]) {
    out.reinterpret_cast_mut::<half::f16>().convert_from_f32_slice(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_bfloat_widens_exactly() {
        for bits in 0..=u16::MAX {
            let half = half::f16::from_bits(bits).to_f32();
            let ours = f16_to_f32(bits);
            assert!(ours.to_bits() == half.to_bits() || (ours.is_nan() && half.is_nan()), "{bits:#x}");
            let brain = half::bf16::from_bits(bits).to_f32();
            let ours = bf16_to_f32(bits);
            assert!(ours.to_bits() == brain.to_bits() || (ours.is_nan() && brain.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn exp_is_close_everywhere() {
        for i in -870_000..=887_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 2.0 * f64::from(f32::EPSILON), "exp({x}) is off by {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e9), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn dot_takes_the_tail() {
        for len in [0, 1, 15, 16, 17, 40] {
            let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let expected: f32 = x.iter().map(|x| x * x).sum();
            assert_eq!(dot(&x, &x), expected);
        }
    }
}
