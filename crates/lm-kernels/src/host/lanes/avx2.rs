//! Sixteen floats in two registers.

use std::arch::x86_64::*;

use super::{LANES, Lanes};

/// Sixteen floats in two AVX registers, the first eight lanes first.
#[derive(Clone, Copy)]
pub(in crate::host) struct Avx2([__m256; 2]);

impl From<[__m256; 2]> for Avx2 {
    #[inline(always)]
    fn from(halves: [__m256; 2]) -> Self {
        Self(halves)
    }
}

/// Both halves of sixteen entries.
#[inline(always)]
fn halves<T>(x: &[T; LANES]) -> [&[T; LANES / 2]; 2] {
    let (halves, _) = x.as_chunks();
    [&halves[0], &halves[1]]
}

// All blocks below rely on one invariant: this type is named by `Isa::run` alone, after it has found AVX2, FMA and F16C.
impl Lanes for Avx2 {
    type Ints = [__m256i; 2];

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: AVX is there, as said above.
        Self([unsafe { _mm256_set1_ps(value) }; 2])
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        let [low, high] = halves(x);
        // SAFETY: AVX is there; 8 floats each are read from arrays of 8.
        Self(unsafe { [_mm256_loadu_ps(low.as_ptr()), _mm256_loadu_ps(high.as_ptr())] })
    }

    #[inline(always)]
    fn load_f16(bits: &[u16; LANES]) -> Self {
        let [low, high] = halves(bits);
        // SAFETY: F16C is there; 16 bytes each are read from arrays of 16.
        Self(unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(low.as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(high.as_ptr().cast())),
            ]
        })
    }

    #[inline(always)]
    fn load_bf16(bits: &[u16; LANES]) -> Self {
        let [low, high] = halves(bits);
        // SAFETY: AVX2 is there; 16 bytes each are read from arrays of 16.
        let wide = unsafe {
            [
                _mm256_cvtepu16_epi32(_mm_loadu_si128(low.as_ptr().cast())),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(high.as_ptr().cast())),
            ]
        };
        let [low, high] = wide;
        // SAFETY: AVX2 is there.
        Self(unsafe {
            [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high)),
            ]
        })
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        *out = bytemuck::cast(self.0);
    }

    #[inline(always)]
    fn mul(self, factor: Self) -> Self {
        // SAFETY: AVX is there.
        Self(unsafe { [_mm256_mul_ps(self.0[0], factor.0[0]), _mm256_mul_ps(self.0[1], factor.0[1])] })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        let ([a, b], [factor_a, factor_b], [addend_a, addend_b]) = (self.0, factor.0, addend.0);
        // SAFETY: FMA is there.
        Self(unsafe { [_mm256_fmadd_ps(a, factor_a, addend_a), _mm256_fmadd_ps(b, factor_b, addend_b)] })
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: AVX is there.
        unsafe {
            let eight = _mm256_add_ps(self.0[0], self.0[1]);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn zeros() -> [__m256i; 2] {
        // SAFETY: AVX is there.
        [unsafe { _mm256_setzero_si256() }; 2]
    }

    #[inline(always)]
    fn add_pairs(sums: [__m256i; 2], w: &[i16; 2 * LANES], x: [i16; 2]) -> [__m256i; 2] {
        let (w, _) = w.as_chunks::<LANES>();
        // SAFETY: AVX2 is there; 32 bytes each are read from arrays of 32.
        let w =
            unsafe { [_mm256_loadu_si256(w[0].as_ptr().cast()), _mm256_loadu_si256(w[1].as_ptr().cast())] };
        // SAFETY: AVX2 is there.
        unsafe {
            let x = _mm256_set1_epi32(bytemuck::cast(x));
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(w[0], x)),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(w[1], x)),
            ]
        }
    }

    #[inline(always)]
    fn from_ints(ints: [__m256i; 2]) -> Self {
        // SAFETY: AVX2 is there.
        Self(unsafe { [_mm256_cvtepi32_ps(ints[0]), _mm256_cvtepi32_ps(ints[1])] })
    }
}
