//! Sixteen-lane vectors in two AVX2 registers.

mod halves;
mod products;
mod vnni;

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::matrix_unit::NoMatrixUnit;
use super::vector::{Kernel, LANES, Lanes, Line, ZeroPointCorrection, places_of_pair};
use halves::{bits_of, exp2, negate, transpose_8};
pub(in crate::host) use products::{Maddubs, Products, run_avx2};
#[cfg(test)]
pub(in crate::host) use vnni::{Evex, Vex, Vnni};
pub(in crate::host) use vnni::{run_avx_vnni, run_avx_vnni_evex};

/// Sixteen floats in two AVX registers, the first eight lanes first, and how integers are multiplied.
#[derive(Clone, Copy)]
pub(in crate::host) struct Avx2<P = Maddubs>([__m256; 2], PhantomData<P>);

impl<P> From<[__m256; 2]> for Avx2<P> {
    #[inline(always)]
    fn from(halves: [__m256; 2]) -> Self {
        Self(halves, PhantomData)
    }
}

/// Both halves of sixteen entries.
#[inline(always)]
fn halves<T>(x: &[T; LANES]) -> [&[T; LANES / 2]; 2] {
    let (halves, _) = x.as_chunks();
    [&halves[0], &halves[1]]
}

// Safety invariant of all unsafe blocks below: only `Isa::run` names this type, after it has detected AVX2,
// FMA and F16C, and what its products need.
impl<P: Products> Lanes for Avx2<P> {
    type Unit = NoMatrixUnit;
    type Ints = [__m256i; 2];
    type Bytes = [__m256i; 2];
    type Quad = __m256i;
    type CodeSums = [__m256i; 2];
    type NibbleSums = [__m256i; 2];
    type Factors = [__m256i; 2];
    type Pairs = [__m256i; 2];
    const IN_REGISTERS: bool = true;
    const MANY_REGISTERS: bool = false;
    const PANELS: bool = false;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        P::call(kernel)
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: AVX is there, as said above.
        Self::from([unsafe { _mm256_set1_ps(value) }; 2])
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        let [low, high] = halves(x);
        // SAFETY: AVX is there; 8 floats each are read from arrays of 8.
        Self::from(unsafe { [_mm256_loadu_ps(low.as_ptr()), _mm256_loadu_ps(high.as_ptr())] })
    }

    #[inline(always)]
    fn load_f16(bits: &[u16; LANES]) -> Self {
        let [low, high] = halves(bits);
        // SAFETY: F16C is there; 16 bytes each are read from arrays of 16.
        Self::from(unsafe {
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
        Self::from(unsafe {
            [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high)),
            ]
        })
    }

    #[inline(always)]
    fn load_exp2(exponents: &[u8; LANES]) -> Self {
        let [low, high] = halves(exponents);
        Self::from([exp2(low), exp2(high)])
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        *out = bytemuck::cast(self.0);
    }

    #[inline(always)]
    fn mul(self, factor: Self) -> Self {
        // SAFETY: AVX is there.
        Self::from(unsafe { [_mm256_mul_ps(self.0[0], factor.0[0]), _mm256_mul_ps(self.0[1], factor.0[1])] })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        let ([a, b], [factor_a, factor_b], [addend_a, addend_b]) = (self.0, factor.0, addend.0);
        // SAFETY: FMA is there.
        Self::from(unsafe {
            [_mm256_fmadd_ps(a, factor_a, addend_a), _mm256_fmadd_ps(b, factor_b, addend_b)]
        })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        let ([a, b], [other_a, other_b]) = (self.0, other.0);
        // SAFETY: AVX is there.
        Self::from(unsafe { [_mm256_min_ps(a, other_a), _mm256_min_ps(b, other_b)] })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        let ([a, b], [other_a, other_b]) = (self.0, other.0);
        // SAFETY: AVX is there.
        Self::from(unsafe { [_mm256_max_ps(a, other_a), _mm256_max_ps(b, other_b)] })
    }

    #[inline(always)]
    fn transpose(lines: [&Line; LANES]) -> [[u32; LANES]; LANES] {
        let mut out = [[0; LANES]; LANES];
        // Four 8×8 blocks of lines and words.
        for first in [0, LANES / 2] {
            for word in [0, LANES / 2] {
                let mut part = [[0; LANES / 2]; LANES / 2];
                for (part, line) in part.iter_mut().zip(&lines[first..]) {
                    *part = bytemuck::pod_read_unaligned(&line[4 * word..][..size_of::<__m256i>()]);
                }
                for (out, part) in out[word..].iter_mut().zip(transpose_8(part)) {
                    out[first..][..LANES / 2].copy_from_slice(&part);
                }
            }
        }
        out
    }

    #[inline(always)]
    fn halves(words: &[u32; LANES]) -> [[u16; LANES]; 2] {
        let [a, b]: [__m256i; 2] = bytemuck::cast(*words);
        // SAFETY: AVX2 is there. Packing works per 128-bit lane: the middle quarters are swapped after it.
        let halves = unsafe {
            let mask = _mm256_set1_epi32(0xffff);
            let low = _mm256_packus_epi32(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
            let high = _mm256_packus_epi32(_mm256_srli_epi32::<16>(a), _mm256_srli_epi32::<16>(b));
            [_mm256_permute4x64_epi64::<0xd8>(low), _mm256_permute4x64_epi64::<0xd8>(high)]
        };
        bytemuck::cast(halves)
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
    fn store_bytes(bytes: [__m256i; 2], line: &mut Line) {
        *line = bytemuck::cast(bytes);
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
    fn bits_of(bytes: [__m256i; 2], shift: i32, mask: u8) -> [__m256i; 2] {
        [bits_of(bytes[0], shift, mask), bits_of(bytes[1], shift, mask)]
    }

    #[inline(always)]
    fn or(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: AVX2 is there.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }

    #[inline(always)]
    fn shuffle(table: &[u8; 16], bytes: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: AVX2 is there; 16 bytes are read from an array of 16.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            [_mm256_shuffle_epi8(table, bytes[0]), _mm256_shuffle_epi8(table, bytes[1])]
        }
    }

    #[inline(always)]
    fn first_bytes(bytes: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: AVX2 is there.
        unsafe {
            [
                _mm256_srai_epi32::<24>(_mm256_slli_epi32::<24>(bytes[0])),
                _mm256_srai_epi32::<24>(_mm256_slli_epi32::<24>(bytes[1])),
            ]
        }
    }

    #[inline(always)]
    fn next_bytes(bytes: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: AVX2 is there.
        unsafe { [_mm256_srli_epi32::<8>(bytes[0]), _mm256_srli_epi32::<8>(bytes[1])] }
    }

    #[inline(always)]
    fn pair(bytes: [__m256i; 2], which: [u8; 2]) -> [__m256i; 2] {
        // SAFETY: AVX2 is there; 16 bytes are read from an array of 16.
        unsafe {
            let places = _mm_loadu_si128(places_of_pair(which).as_ptr().cast());
            let places = _mm256_broadcastsi128_si256(places);
            [_mm256_shuffle_epi8(bytes[0], places), _mm256_shuffle_epi8(bytes[1], places)]
        }
    }

    #[inline(always)]
    fn quad(x: [i8; 4]) -> __m256i {
        // SAFETY: AVX is there.
        unsafe { _mm256_set1_epi32(bytemuck::cast(x)) }
    }

    #[inline(always)]
    fn start_bytes(correction: i32) -> [__m256i; 2] {
        Self::splat_int(P::start_bytes(correction))
    }

    #[inline(always)]
    fn dot_bytes(sums: [__m256i; 2], w: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
        [P::dot_bytes(sums[0], w[0], x), P::dot_bytes(sums[1], w[1], x)]
    }

    #[inline(always)]
    fn start_codes(sums: [__m256i; 2]) -> [__m256i; 2] {
        [P::start_codes(sums[0]), P::start_codes(sums[1])]
    }

    #[inline(always)]
    fn dot_codes(sums: [__m256i; 2], w: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
        [P::dot_codes(sums[0], w[0], x), P::dot_codes(sums[1], w[1], x)]
    }

    #[inline(always)]
    fn end_codes(sums: [__m256i; 2], products: [__m256i; 2]) -> [__m256i; 2] {
        [P::end_codes(sums[0], products[0]), P::end_codes(sums[1], products[1])]
    }

    #[inline(always)]
    fn start_bytes_of(parts: [__m256i; 2], sums: [i16; 2]) -> [__m256i; 2] {
        let [sums, _] = Self::splat_pair(sums);
        [P::start_bytes_of(parts[0], sums), P::start_bytes_of(parts[1], sums)]
    }

    #[inline(always)]
    fn splat_pair(pair: [i16; 2]) -> [__m256i; 2] {
        Self::splat_int(bytemuck::cast(pair))
    }

    #[inline(always)]
    fn dot_pairs(sums: [__m256i; 2], w: [__m256i; 2], x: [i16; 2]) -> [__m256i; 2] {
        let [x, _] = Self::splat_pair(x);
        [P::dot_pairs(sums[0], w[0], x), P::dot_pairs(sums[1], w[1], x)]
    }

    #[inline(always)]
    fn add_products(sums: [__m256i; 2], terms: [__m256i; 2], factors: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: AVX2 is there.
        unsafe {
            [
                _mm256_add_epi32(sums[0], _mm256_mullo_epi32(terms[0], factors[0])),
                _mm256_add_epi32(sums[1], _mm256_mullo_epi32(terms[1], factors[1])),
            ]
        }
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> [__m256i; 2] {
        Self::splat_int(P::start_nibbles(correction))
    }

    #[inline(always)]
    fn dot_nibbles(sums: [__m256i; 2], w: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
        [P::dot_nibbles(sums[0], w[0], x), P::dot_nibbles(sums[1], w[1], x)]
    }

    #[inline(always)]
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [[__m256i; 2]; 2] {
        // SAFETY: AVX2 is there; 16 bytes are read from an array of 16.
        let (low, high) = unsafe {
            let wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(magnitudes.as_ptr().cast()));
            (_mm256_and_si256(wide, _mm256_set1_epi16(15)), _mm256_srli_epi16::<4>(wide))
        };
        [P::factors(negate(low, signs[0])), P::factors(negate(high, signs[1]))]
    }

    #[inline(always)]
    fn add_scaled(sums: [__m256i; 2], terms: [__m256i; 2], factors: [__m256i; 2]) -> [__m256i; 2] {
        [P::dot_pairs(sums[0], terms[0], factors[0]), P::dot_pairs(sums[1], terms[1], factors[1])]
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
        Self::from(unsafe { [_mm256_cvtepi32_ps(ints[0]), _mm256_cvtepi32_ps(ints[1])] })
    }
}
