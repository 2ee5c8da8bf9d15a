//! Operations on one of the two registers of [`Avx2`](super::Avx2).
//!
//! Safety invariant of all unsafe blocks below, as there: only `Isa::run` names that type, after it has
//! detected AVX2, FMA and F16C.

use std::arch::x86_64::*;

use super::super::vector::LANES;

// Functions, not closures: only code inlined by force is compiled with the target features of its caller.

/// Transposes: row `i` of the result has word `i` of each row.
#[inline(always)]
pub(super) fn transpose_8(rows: [[u32; LANES / 2]; LANES / 2]) -> [[u32; LANES / 2]; LANES / 2] {
    let x: [__m256i; LANES / 2] = bytemuck::cast(rows);
    let mut y = x;
    // SAFETY: AVX2 is available, see the module.
    unsafe {
        let mut z = x;
        for i in 0..4 {
            y[2 * i] = _mm256_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
            y[2 * i + 1] = _mm256_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
        }
        for i in 0..2 {
            z[4 * i] = _mm256_unpacklo_epi64(y[4 * i], y[4 * i + 2]);
            z[4 * i + 1] = _mm256_unpackhi_epi64(y[4 * i], y[4 * i + 2]);
            z[4 * i + 2] = _mm256_unpacklo_epi64(y[4 * i + 1], y[4 * i + 3]);
            z[4 * i + 3] = _mm256_unpackhi_epi64(y[4 * i + 1], y[4 * i + 3]);
        }
        // z[4 i + j]: half h has column 4 h + j of rows 4 i to 4 i + 3.
        for j in 0..4 {
            y[j] = _mm256_permute2x128_si256::<0x20>(z[j], z[4 + j]);
            y[4 + j] = _mm256_permute2x128_si256::<0x31>(z[j], z[4 + j]);
        }
    }
    bytemuck::cast(y)
}

/// The computation of [`exp2`](super::super::exp2).
#[inline(always)]
pub(super) fn exp2(exponents: &[u8; LANES / 2]) -> __m256 {
    // SAFETY: AVX2 is available, see the module; 8 bytes are read from an array of 8.
    unsafe {
        let one = _mm256_set1_epi32(1);
        let exponents = _mm256_cvtepu8_epi32(_mm_loadl_epi64(exponents.as_ptr().cast()));
        let denormals = _mm256_slli_epi32::<21>(_mm256_add_epi32(_mm256_min_epi32(exponents, one), one));
        let powers = _mm256_slli_epi32::<23>(_mm256_sub_epi32(exponents, one));
        _mm256_castsi256_ps(_mm256_max_epi32(powers, denormals))
    }
}

/// Shifts and masks each byte; the mask excludes the bits of the neighbour in a word.
#[inline(always)]
pub(super) fn bits_of(bytes: __m256i, shift: i32, mask: u8) -> __m256i {
    // SAFETY: AVX2 is available, see the module.
    unsafe {
        let shifted = if shift >= 0 {
            _mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift))
        } else {
            _mm256_sll_epi16(bytes, _mm_cvtsi32_si128(-shift))
        };
        _mm256_and_si256(shifted, _mm256_set1_epi8(mask as i8))
    }
}

/// Negates the words whose bit is set.
#[inline(always)]
pub(super) fn negate(x: __m256i, signs: u16) -> __m256i {
    const BITS: [u16; LANES] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
    // SAFETY: AVX2 is there; 32 bytes are read from an array of 32.
    unsafe {
        let bits = _mm256_loadu_si256(BITS.as_ptr().cast());
        let negative = _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(signs as i16), bits), bits);
        _mm256_sub_epi16(_mm256_xor_si256(x, negative), negative)
    }
}

/// Each word twice, the first eight words first.
#[inline(always)]
pub(super) fn twice(words: __m256i) -> [__m256i; 2] {
    // SAFETY: AVX2 is there.
    unsafe {
        // Unpacking interleaves within 128-bit lanes: the quarters are reordered for it.
        let quarters = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
        [_mm256_unpacklo_epi16(quarters, quarters), _mm256_unpackhi_epi16(quarters, quarters)]
    }
}
