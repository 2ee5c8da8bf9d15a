//! Sixteen floats in two registers.

use std::arch::x86_64::*;

use super::super::matrix_unit::NoMatrixUnit;
use super::{LANES, Lanes, Line};

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
    type Unit = NoMatrixUnit;
    type Ints = [__m256i; 2];
    type Bytes = [__m256i; 2];
    type Quad = __m256i;
    type Factors = [__m256i; 2];

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
    fn splat_int(value: i32) -> [__m256i; 2] {
        // SAFETY: AVX is there.
        [unsafe { _mm256_set1_epi32(value) }; 2]
    }

    #[inline(always)]
    fn load_bytes(line: &Line) -> [__m256i; 2] {
        let (halves, _) = line.as_chunks::<32>();
        // SAFETY: AVX is there; 32 bytes each are read from arrays of 32.
        unsafe {
            [_mm256_loadu_si256(halves[0].as_ptr().cast()), _mm256_loadu_si256(halves[1].as_ptr().cast())]
        }
    }

    #[inline(always)]
    fn load_nibbles(line: &Line) -> [[__m256i; 2]; 2] {
        let [a, b] = Self::load_bytes(line);
        // SAFETY: AVX2 is there.
        unsafe {
            let low = _mm256_set1_epi8(15);
            let (high_a, high_b) = (_mm256_srli_epi16::<4>(a), _mm256_srli_epi16::<4>(b));
            [
                [_mm256_and_si256(a, low), _mm256_and_si256(b, low)],
                [_mm256_and_si256(high_a, low), _mm256_and_si256(high_b, low)],
            ]
        }
    }

    #[inline(always)]
    fn quad(x: [i8; 4]) -> __m256i {
        // SAFETY: AVX is there.
        unsafe { _mm256_set1_epi32(bytemuck::cast(x)) }
    }

    #[inline(always)]
    fn dot_bytes(sums: [__m256i; 2], w: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
        [add_dot_bytes(sums[0], w[0], x), add_dot_bytes(sums[1], w[1], x)]
    }

    #[inline(always)]
    fn dot_nibbles(sums: [__m256i; 2], w: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
        [add_dot_nibbles(sums[0], w[0], x), add_dot_nibbles(sums[1], w[1], x)]
    }

    /// The factors are in the low halves of the lanes; the high ones are zero.
    #[inline(always)]
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [[__m256i; 2]; 2] {
        let (magnitudes, _) = magnitudes.as_chunks::<8>();
        let (a, b) = (widen(&magnitudes[0]), widen(&magnitudes[1]));
        // SAFETY: AVX2 is there.
        let (low_a, low_b) = unsafe {
            let low = _mm256_set1_epi32(15);
            (_mm256_and_si256(a, low), _mm256_and_si256(b, low))
        };
        // SAFETY: AVX2 is there.
        let (high_a, high_b) = unsafe { (_mm256_srli_epi32::<4>(a), _mm256_srli_epi32::<4>(b)) };
        [
            [negate(low_a, signs[0]), negate(low_b, signs[0] >> 8)],
            [negate(high_a, signs[1]), negate(high_b, signs[1] >> 8)],
        ]
    }

    #[inline(always)]
    fn add_scaled(sums: [__m256i; 2], terms: [__m256i; 2], factors: [__m256i; 2]) -> [__m256i; 2] {
        // The high half of a term, its sign, is multiplied with zero.
        // SAFETY: AVX2 is there.
        unsafe {
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(terms[0], factors[0])),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(terms[1], factors[1])),
            ]
        }
    }

    #[inline(always)]
    fn scale_nibbles(w: [__m256i; 2], factors: [__m256i; 2]) -> [__m256i; 2] {
        [scale(w[0], factors[0]), scale(w[1], factors[1])]
    }

    #[inline(always)]
    fn store_bytes(w: [__m256i; 2], line: &mut Line) {
        *line = bytemuck::cast(w);
    }

    #[inline(always)]
    fn load_ints(x: &[i32; LANES]) -> [__m256i; 2] {
        let [low, high] = halves(x);
        // SAFETY: AVX is there; 8 integers each are read from arrays of 8.
        unsafe { [_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast())] }
    }

    #[inline(always)]
    fn from_ints(ints: [__m256i; 2]) -> Self {
        // SAFETY: AVX2 is there.
        Self(unsafe { [_mm256_cvtepi32_ps(ints[0]), _mm256_cvtepi32_ps(ints[1])] })
    }
}

// Functions, not closures: only what is inlined by force is compiled for the features of its caller.

/// Even and odd columns apart, in words: what multiplies bytes and adds pairs would cut the sums off at 16 bits.
#[inline(always)]
fn add_dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
    // SAFETY: AVX2 is there, as said above.
    unsafe {
        let (even, odd) = (_mm256_and_si256(w, _mm256_set1_epi16(255)), _mm256_srli_epi16::<8>(w));
        let (x_even, x_odd) = (_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x)), _mm256_srai_epi16::<8>(x));
        let products = _mm256_add_epi32(_mm256_madd_epi16(even, x_even), _mm256_madd_epi16(odd, x_odd));
        _mm256_add_epi32(sums, products)
    }
}

/// The sum of two products is at most 2 · 15 · 127, so that nothing is cut off.
#[inline(always)]
fn add_dot_nibbles(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
    // SAFETY: AVX2 is there.
    unsafe {
        let pairs = _mm256_maddubs_epi16(w, x);
        _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
}

/// Bytes as integers.
#[inline(always)]
fn widen(bytes: &[u8; 8]) -> __m256i {
    // SAFETY: AVX2 is there; 8 bytes are read from an array of 8.
    unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes.as_ptr().cast())) }
}

/// The lanes whose bit is set negated, and only the low half of each lane.
#[inline(always)]
fn negate(x: __m256i, signs: u16) -> __m256i {
    // SAFETY: AVX2 is there.
    unsafe {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let negative = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(signs)), bits), bits);
        let negated = _mm256_sub_epi32(_mm256_xor_si256(x, negative), negative);
        _mm256_and_si256(negated, _mm256_set1_epi32(0xffff))
    }
}

/// `128 + (byte - 8) * factor`.
#[inline(always)]
fn scale(w: __m256i, factors: __m256i) -> __m256i {
    // SAFETY: AVX2 is there.
    unsafe {
        let pairs = _mm256_or_si256(factors, _mm256_slli_epi32::<16>(factors));
        let offset = _mm256_sub_epi16(_mm256_set1_epi16(128), _mm256_slli_epi16::<3>(pairs));
        let (even, odd) = (_mm256_and_si256(w, _mm256_set1_epi16(255)), _mm256_srli_epi16::<8>(w));
        let even = _mm256_add_epi16(_mm256_mullo_epi16(even, pairs), offset);
        let odd = _mm256_add_epi16(_mm256_mullo_epi16(odd, pairs), offset);
        _mm256_or_si256(even, _mm256_slli_epi16::<8>(odd))
    }
}
