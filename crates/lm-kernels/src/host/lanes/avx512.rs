//! Sixteen floats in one register.

use std::arch::x86_64::*;

use super::{Avx2, LANES, Lanes};

/// Sixteen floats in an AVX-512 register.
#[derive(Clone, Copy)]
pub(in crate::host) struct Avx512(__m512);

// All blocks below rely on one invariant: this type is named by `Isa::run` alone, after it has found AVX-512 F, BW and DQ, and
// all that `Avx2` needs.
impl Lanes for Avx512 {
    type Ints = __m512i;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: AVX-512 is there, as said above.
        Self(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        // SAFETY: AVX-512 is there; 16 floats are read from an array of 16.
        Self(unsafe { _mm512_loadu_ps(x.as_ptr()) })
    }

    #[inline(always)]
    fn load_f16(bits: &[u16; LANES]) -> Self {
        // SAFETY: AVX-512 is there; 32 bytes are read from an array of 32.
        Self(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(bits.as_ptr().cast())) })
    }

    #[inline(always)]
    fn load_bf16(bits: &[u16; LANES]) -> Self {
        // SAFETY: AVX-512 is there; 32 bytes are read from an array of 32.
        let wide = unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(bits.as_ptr().cast())) };
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide)) })
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        // SAFETY: AVX-512 is there; 16 floats are written to an array of 16.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn mul(self, factor: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_mul_ps(self.0, factor.0) })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: AVX-512 is there, DQ too.
        Avx2::from([unsafe { _mm512_castps512_ps256(self.0) }, unsafe {
            _mm512_extractf32x8_ps::<1>(self.0)
        }])
        .sum()
    }

    #[inline(always)]
    fn zeros() -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn add_pairs(sums: __m512i, w: &[i16; 2 * LANES], x: [i16; 2]) -> __m512i {
        // SAFETY: AVX-512 is there; 64 bytes are read from an array of 64.
        let w = unsafe { _mm512_loadu_si512(w.as_ptr().cast()) };
        // SAFETY: AVX-512 is there, BW too.
        unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(w, _mm512_set1_epi32(bytemuck::cast(x)))) }
    }

    #[inline(always)]
    fn from_ints(ints: __m512i) -> Self {
        // SAFETY: AVX-512 is there.
        Self(unsafe { _mm512_cvtepi32_ps(ints) })
    }
}
