//! Products of integers in 256-bit registers: the operations that [VNNI](super::vnni) has instructions for.
//!
//! Safety invariant of all unsafe blocks below: only `Isa::run` names the lanes that use these, after it has
//! detected AVX2, FMA and F16C.

use std::arch::asm;
use std::arch::x86_64::*;

use super::super::vector::{Kernel, ZeroPointCorrection};
use super::Avx2;
use super::halves::twice;

/// Dot products of integers in one register of [`Avx2`](super::Avx2): the operations of
/// [`Lanes`](super::Lanes) of the same names, for eight lanes.
pub(in crate::host) trait Products: Copy {
    /// Runs a kernel in a function compiled for these instructions.
    fn call<K: Kernel>(kernel: K) -> K::Output;

    /// Initial value of each sum of [`Products::dot_bytes`].
    fn start_bytes(correction: i32) -> i32;
    fn start_bytes_of(parts: __m256i, sums: __m256i) -> __m256i;
    fn dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i;
    fn start_codes(sums: __m256i) -> __m256i;
    fn dot_codes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i;
    fn end_codes(sums: __m256i, products: __m256i) -> __m256i;
    fn dot_pairs(sums: __m256i, w: __m256i, x: __m256i) -> __m256i;

    /// Initial value of each lane of [`Products::dot_nibbles`].
    fn start_nibbles(correction: &ZeroPointCorrection) -> i32;
    fn dot_nibbles(sums: __m256i, w: __m256i, x: __m256i) -> __m256i;
    /// Sixteen factors in 16 bits, as pairs that [`Products::dot_pairs`] multiplies the sums of nibbles by.
    fn factors(words: __m256i) -> [__m256i; 2];
}

/// Products of AVX2: `maddubs` and `madd`.
#[derive(Clone, Copy)]
pub(in crate::host) struct Maddubs;

/// The sum itself, computed at this place of the program and held in a register. Otherwise the compiler
/// orders the sums of a group by rows, as trees, with the weights of all its lines in the 16 registers and
/// the sums in memory, which takes twice as long.
#[inline]
#[target_feature(enable = "avx2")]
fn in_register(mut sum: __m256i) -> __m256i {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(ymm_reg) sum, options(nomem, nostack, preserves_flags)) };
    sum
}

/// Runs a kernel in its copy for AVX2. Not inlined if one kernel calls another: a format's loops are a
/// function of their own.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::host) fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

impl Products for Maddubs {
    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: AVX2, FMA and F16C are available, see the module.
        unsafe { run_avx2(kernel) }
    }

    /// The bytes' offset is subtracted before they are multiplied.
    #[inline(always)]
    fn start_bytes(_: i32) -> i32 {
        0
    }

    /// As [`Products::start_bytes`].
    #[inline(always)]
    fn start_bytes_of(_: __m256i, _: __m256i) -> __m256i {
        // SAFETY: AVX is there.
        unsafe { _mm256_setzero_si256() }
    }

    /// The weights' magnitudes times the activations with the weights' signs: two products are at most 2 ·
    /// 127 · 127, so they do not saturate.
    #[inline(always)]
    fn dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let w = _mm256_xor_si256(w, _mm256_set1_epi8(i8::MIN));
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
            Self::end_codes(sums, pairs)
        }
    }

    /// Two 16-bit sums per lane, each over two of every four columns.
    #[inline(always)]
    fn start_codes(_: __m256i) -> __m256i {
        // SAFETY: AVX is there.
        unsafe { _mm256_setzero_si256() }
    }

    /// Neither the sum of two products nor that of all saturates: both fit 16 bits.
    #[inline(always)]
    fn dot_codes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { in_register(_mm256_add_epi16(sums, _mm256_maddubs_epi16(w, x))) }
    }

    #[inline(always)]
    fn end_codes(sums: __m256i, products: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { in_register(_mm256_add_epi32(sums, _mm256_madd_epi16(products, _mm256_set1_epi16(1)))) }
    }

    #[inline(always)]
    fn dot_pairs(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(w, x)) }
    }

    /// Two 16-bit sums per lane, each over two of every four columns. At the end, each is that of 16 products
    /// with nibbles minus 4 times the sum of 32 activations: at most 16 · (15 - 4) · 127 + 16 · 4 · 127 =
    /// 30,480, which fits 16 bits.
    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> i32 {
        correction.halves
    }

    #[inline(always)]
    fn dot_nibbles(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        Self::dot_codes(sums, w, x)
    }

    /// The factor of each lane twice, one for each of its sums.
    #[inline(always)]
    fn factors(words: __m256i) -> [__m256i; 2] {
        twice(words)
    }
}
