//! Sixteen-lane vectors in one AVX-512 register.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::matrix_unit::{MatrixUnit, NoMatrixUnit};
use super::avx2::{Avx2, Maddubs};
use super::vector::{Kernel, LANES, Lanes, Line, ZeroPointCorrection, places_of_pair};

/// Sixteen floats in an AVX-512 register, with or without a matrix unit.
pub(in crate::host) struct Avx512<U>(__m512, PhantomData<U>);

impl<U> Clone for Avx512<U> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<U> Copy for Avx512<U> {}

impl<U> From<__m512> for Avx512<U> {
    #[inline(always)]
    fn from(register: __m512) -> Self {
        Self(register, PhantomData)
    }
}

/// Runs a kernel in its copy for AVX-512.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(in crate::host) fn run_avx512<U: MatrixUnit, K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512<U>>()
}

// Safety invariant of all unsafe blocks below: only `Isa::run` names this type, after it has detected AVX-512
// F, BW, DQ, VL and VNNI, and all that `Avx2` needs.
impl<U: MatrixUnit> Lanes for Avx512<U> {
    type Unit = U;
    type Ints = __m512i;
    type Bytes = __m512i;
    type Quad = __m512i;
    type CodeSums = __m512i;
    type NibbleSums = __m512i;
    type Factors = __m512i;
    type Pairs = __m512i;
    const IN_REGISTERS: bool = true;
    const MANY_REGISTERS: bool = true;
    const PANELS: bool = true;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        // The registers are the same for every unit, so the kernel is compiled once.
        // SAFETY: AVX-512 is there, as said above.
        unsafe { run_avx512::<NoMatrixUnit, K>(kernel) }
    }

    #[inline(always)]
    fn call_with_unit<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: AVX-512 is there, as said above.
        unsafe { run_avx512::<U, K>(kernel) }
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: AVX-512 is there, as said above.
        Self::from(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        // SAFETY: AVX-512 is there; 16 floats are read from an array of 16.
        Self::from(unsafe { _mm512_loadu_ps(x.as_ptr()) })
    }

    #[inline(always)]
    fn load_f16(bits: &[u16; LANES]) -> Self {
        // SAFETY: AVX-512 is there; 32 bytes are read from an array of 32.
        Self::from(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(bits.as_ptr().cast())) })
    }

    #[inline(always)]
    fn load_bf16(bits: &[u16; LANES]) -> Self {
        // SAFETY: AVX-512 is there; 32 bytes are read from an array of 32.
        let wide = unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(bits.as_ptr().cast())) };
        // SAFETY: AVX-512 is there.
        Self::from(unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide)) })
    }

    #[inline(always)]
    fn load_exp2(exponents: &[u8; LANES]) -> Self {
        // The computation of `exp2`.
        // SAFETY: AVX-512 is there; 16 bytes are read from an array of 16.
        unsafe {
            let one = _mm512_set1_epi32(1);
            let exponents = _mm512_cvtepu8_epi32(_mm_loadu_si128(exponents.as_ptr().cast()));
            let denormals = _mm512_slli_epi32::<21>(_mm512_add_epi32(_mm512_min_epi32(exponents, one), one));
            let powers = _mm512_slli_epi32::<23>(_mm512_sub_epi32(exponents, one));
            Self::from(_mm512_castsi512_ps(_mm512_max_epi32(powers, denormals)))
        }
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        // SAFETY: AVX-512 is there; 16 floats are written to an array of 16.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn mul(self, factor: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self::from(unsafe { _mm512_mul_ps(self.0, factor.0) })
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self::from(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self::from(unsafe { _mm512_min_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: AVX-512 is there.
        Self::from(unsafe { _mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn transpose(lines: [&Line; LANES]) -> [[u32; LANES]; LANES] {
        // SAFETY: AVX-512 is there; 64 bytes are read from arrays of 64 and written to arrays of 16 words. (A
        // loop over all 16 lines, not a closure for each: closures are compiled without the target features.)
        unsafe {
            let mut x = [_mm512_setzero_si512(); LANES];
            for (x, line) in x.iter_mut().zip(lines) {
                *x = _mm512_loadu_si512(line.as_ptr().cast());
            }
            // Interleaves words of two lines, then of four; each quarter of a register has its own columns.
            let mut y = x;
            for i in 0..LANES / 2 {
                y[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
                y[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
            }
            for i in 0..LANES / 4 {
                x[4 * i] = _mm512_unpacklo_epi64(y[4 * i], y[4 * i + 2]);
                x[4 * i + 1] = _mm512_unpackhi_epi64(y[4 * i], y[4 * i + 2]);
                x[4 * i + 2] = _mm512_unpacklo_epi64(y[4 * i + 1], y[4 * i + 3]);
                x[4 * i + 3] = _mm512_unpackhi_epi64(y[4 * i + 1], y[4 * i + 3]);
            }
            // x[4 i + j]: quarter q has column 4 q + j of lines 4 i to 4 i + 3. Transposes the quarters of
            // four registers.
            for j in 0..4 {
                let low = _mm512_shuffle_i32x4::<0x44>(x[j], x[4 + j]);
                let high = _mm512_shuffle_i32x4::<0xee>(x[j], x[4 + j]);
                let low_2 = _mm512_shuffle_i32x4::<0x44>(x[8 + j], x[12 + j]);
                let high_2 = _mm512_shuffle_i32x4::<0xee>(x[8 + j], x[12 + j]);
                y[j] = _mm512_shuffle_i32x4::<0x88>(low, low_2);
                y[4 + j] = _mm512_shuffle_i32x4::<0xdd>(low, low_2);
                y[8 + j] = _mm512_shuffle_i32x4::<0x88>(high, high_2);
                y[12 + j] = _mm512_shuffle_i32x4::<0xdd>(high, high_2);
            }
            let mut out = [[0; LANES]; LANES];
            for (out, y) in out.iter_mut().zip(y) {
                _mm512_storeu_si512(out.as_mut_ptr().cast(), y);
            }
            out
        }
    }

    #[inline(always)]
    fn halves(words: &[u32; LANES]) -> [[u16; LANES]; 2] {
        // SAFETY: AVX-512 is there; 64 bytes are read from an array of 64.
        let halves = unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            [_mm512_cvtepi32_epi16(words), _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(words))]
        };
        bytemuck::cast(halves)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: AVX-512 is there, DQ too.
        Avx2::<Maddubs>::from([unsafe { _mm512_castps512_ps256(self.0) }, unsafe {
            _mm512_extractf32x8_ps::<1>(self.0)
        }])
        .sum()
    }

    #[inline(always)]
    fn splat_int(value: i32) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    fn load_bytes(line: &Line) -> __m512i {
        // SAFETY: AVX-512 is there; 64 bytes are read from an array of 64.
        unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_bytes(bytes: __m512i, line: &mut Line) {
        // SAFETY: AVX-512 is there; 64 bytes are written to an array of 64.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), bytes) }
    }

    #[inline(always)]
    fn load_nibbles(line: &Line) -> [__m512i; 2] {
        let bytes = Self::load_bytes(line);
        // SAFETY: AVX-512 is there, BW too.
        unsafe {
            let low = _mm512_set1_epi8(15);
            [_mm512_and_si512(bytes, low), _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low)]
        }
    }

    #[inline(always)]
    fn bits_of(bytes: __m512i, shift: i32, mask: u8) -> __m512i {
        // The mask excludes the bits of the neighbour in a word.
        // SAFETY: AVX-512 is there, BW too.
        unsafe {
            let shifted = if shift >= 0 {
                _mm512_srl_epi16(bytes, _mm_cvtsi32_si128(shift))
            } else {
                _mm512_sll_epi16(bytes, _mm_cvtsi32_si128(-shift))
            };
            _mm512_and_si512(shifted, _mm512_set1_epi8(mask as i8))
        }
    }

    #[inline(always)]
    fn or(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn shuffle(table: &[u8; 16], bytes: __m512i) -> __m512i {
        // SAFETY: AVX-512 is there, BW too; 16 bytes are read from an array of 16.
        unsafe {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_shuffle_epi8(table, bytes)
        }
    }

    #[inline(always)]
    fn first_bytes(bytes: __m512i) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(bytes)) }
    }

    #[inline(always)]
    fn next_bytes(bytes: __m512i) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_srli_epi32::<8>(bytes) }
    }

    #[inline(always)]
    fn pair(bytes: __m512i, which: [u8; 2]) -> __m512i {
        // SAFETY: AVX-512 is there, BW too; 16 bytes are read from an array of 16.
        unsafe {
            let places = _mm_loadu_si128(places_of_pair(which).as_ptr().cast());
            _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(places))
        }
    }

    #[inline(always)]
    fn quad(x: [i8; 4]) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_set1_epi32(bytemuck::cast(x)) }
    }

    #[inline(always)]
    fn start_bytes(correction: i32) -> __m512i {
        Self::splat_int(correction)
    }

    #[inline(always)]
    fn dot_bytes(sums: __m512i, w: __m512i, x: __m512i) -> __m512i {
        // SAFETY: AVX-512 VNNI is there.
        unsafe { _mm512_dpbusd_epi32(sums, w, x) }
    }

    #[inline(always)]
    fn start_codes(sums: __m512i) -> __m512i {
        sums
    }

    #[inline(always)]
    fn dot_codes(sums: __m512i, w: __m512i, x: __m512i) -> __m512i {
        Self::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn end_codes(_: __m512i, products: __m512i) -> __m512i {
        products
    }

    #[inline(always)]
    fn start_bytes_of(parts: __m512i, sums: [i16; 2]) -> __m512i {
        Self::dot_pairs(Self::splat_int(0), parts, sums)
    }

    #[inline(always)]
    fn splat_pair(pair: [i16; 2]) -> __m512i {
        Self::splat_int(bytemuck::cast(pair))
    }

    #[inline(always)]
    fn dot_pairs(sums: __m512i, w: __m512i, x: [i16; 2]) -> __m512i {
        // SAFETY: AVX-512 VNNI is there.
        unsafe { _mm512_dpwssd_epi32(sums, w, _mm512_set1_epi32(bytemuck::cast(x))) }
    }

    #[inline(always)]
    fn add_products(sums: __m512i, terms: __m512i, factors: __m512i) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_add_epi32(sums, _mm512_mullo_epi32(terms, factors)) }
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> __m512i {
        Self::splat_int(correction.whole)
    }

    #[inline(always)]
    fn dot_nibbles(sums: __m512i, w: __m512i, x: __m512i) -> __m512i {
        Self::dot_bytes(sums, w, x)
    }

    /// The factors are in the low halves of the lanes; the high halves are zero.
    #[inline(always)]
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [__m512i; 2] {
        // SAFETY: AVX-512 is there, BW and VL too; 16 bytes are read from an array of 16.
        unsafe {
            let wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(magnitudes.as_ptr().cast()));
            let (low, high) = (_mm512_and_si512(wide, _mm512_set1_epi32(15)), _mm512_srli_epi32::<4>(wide));
            let low = _mm512_mask_sub_epi32(low, signs[0], _mm512_setzero_si512(), low);
            let high = _mm512_mask_sub_epi32(high, signs[1], _mm512_setzero_si512(), high);
            let half = _mm512_set1_epi32(0xffff);
            [_mm512_and_si512(low, half), _mm512_and_si512(high, half)]
        }
    }

    #[inline(always)]
    fn add_scaled(sums: __m512i, terms: __m512i, factors: __m512i) -> __m512i {
        // A term fits 16 bits; the high half of its lane, its sign extension, is multiplied by zero.
        // SAFETY: AVX-512 VNNI is there.
        unsafe { _mm512_dpwssd_epi32(sums, terms, factors) }
    }

    #[inline(always)]
    fn load_ints(x: &[i32; LANES]) -> __m512i {
        // SAFETY: AVX-512 is there; 16 integers are read from an array of 16.
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn from_ints(ints: __m512i) -> Self {
        // SAFETY: AVX-512 is there.
        Self::from(unsafe { _mm512_cvtepi32_ps(ints) })
    }
}
