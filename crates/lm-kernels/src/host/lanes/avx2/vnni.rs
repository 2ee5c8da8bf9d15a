//! VNNI in 256-bit registers: dot products of four bytes or two words a lane in one instruction.
//!
//! Safety invariant of all unsafe blocks below: only `Isa::run` names the lanes that use these, after it has
//! detected the encoding's features and those of AVX2.

use std::arch::asm;
use std::arch::x86_64::*;

use super::super::vector::{Kernel, ZeroPointCorrection};
use super::Avx2;
use super::products::Products;

/// An encoding of the instructions, which are the same in both.
pub(in crate::host) trait Encoding: Copy {
    /// As [`Products::call`].
    fn call<K: Kernel>(kernel: K) -> K::Output;
    /// `vpdpbusd`.
    fn dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i;
    /// `vpdpwssd`.
    fn dot_pairs(sums: __m256i, w: __m256i, x: __m256i) -> __m256i;
}

/// The encoding of AVX-VNNI, of processors with and without AVX-512.
#[derive(Clone, Copy)]
pub(in crate::host) struct Vex;

/// The encoding of AVX-512 VNNI and VL: on a processor that lacks AVX-VNNI it runs, tests and measures the
/// same kernels. Inline assembly, so that they have 16 registers as with [`Vex`].
#[derive(Clone, Copy)]
pub(in crate::host) struct Evex;

/// Runs a kernel in its copy for AVX-VNNI.
#[inline(never)]
#[target_feature(enable = "avxvnni,avx2,fma,f16c")]
pub(in crate::host) fn run_avx_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2<Vnni<Vex>>>()
}

/// Runs a kernel in its copy for the encoding of AVX-512, without the features of AVX-512, which would give
/// it more registers.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::host) fn run_avx_vnni_evex<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2<Vnni<Evex>>>()
}

impl Encoding for Vex {
    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: AVX-VNNI is available, see the module.
        unsafe { run_avx_vnni(kernel) }
    }

    #[inline(always)]
    fn dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX-VNNI is there.
        unsafe { _mm256_dpbusd_avx_epi32(sums, w, x) }
    }

    #[inline(always)]
    fn dot_pairs(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX-VNNI is there.
        unsafe { _mm256_dpwssd_avx_epi32(sums, w, x) }
    }
}

impl Encoding for Evex {
    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: AVX2, FMA and F16C are available, see the module.
        unsafe { run_avx_vnni_evex(kernel) }
    }

    #[inline(always)]
    fn dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX-512 VNNI and VL are available, see the module.
        unsafe { vpdpbusd(sums, w, x) }
    }

    #[inline(always)]
    fn dot_pairs(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: AVX-512 VNNI and VL are there.
        unsafe { vpdpwssd(sums, w, x) }
    }
}

/// The instruction in the encoding of AVX-512.
///
/// # Safety
/// The processor has AVX-512 VNNI and VL.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn vpdpbusd(mut sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
    // SAFETY: the instruction is there, and reads and writes registers only.
    unsafe {
        asm!("{{evex}} vpdpbusd {sums}, {w}, {x}", sums = inout(ymm_reg) sums, w = in(ymm_reg) w, x = in(ymm_reg) x,
            options(pure, nomem, nostack, preserves_flags));
    }
    sums
}

/// As [`vpdpbusd`], with words.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn vpdpwssd(mut sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
    // SAFETY: as there.
    unsafe {
        asm!("{{evex}} vpdpwssd {sums}, {w}, {x}", sums = inout(ymm_reg) sums, w = in(ymm_reg) w, x = in(ymm_reg) x,
            options(pure, nomem, nostack, preserves_flags));
    }
    sums
}

/// An encoding's instructions as [`Products`].
#[derive(Clone, Copy)]
pub(in crate::host) struct Vnni<E>(E);

impl<E: Encoding> Products for Vnni<E> {
    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        E::call(kernel)
    }

    #[inline(always)]
    fn start_bytes(correction: i32) -> i32 {
        correction
    }

    #[inline(always)]
    fn start_bytes_of(parts: __m256i, sums: __m256i) -> __m256i {
        // SAFETY: AVX is available, see the module.
        E::dot_pairs(unsafe { _mm256_setzero_si256() }, parts, sums)
    }

    #[inline(always)]
    fn dot_bytes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        E::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn start_codes(sums: __m256i) -> __m256i {
        sums
    }

    #[inline(always)]
    fn dot_codes(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        E::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn end_codes(_: __m256i, products: __m256i) -> __m256i {
        products
    }

    #[inline(always)]
    fn dot_pairs(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        E::dot_pairs(sums, w, x)
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> i32 {
        correction.whole
    }

    #[inline(always)]
    fn dot_nibbles(sums: __m256i, w: __m256i, x: __m256i) -> __m256i {
        E::dot_bytes(sums, w, x)
    }

    /// The low half of a lane has its factor: a sum of nibbles fits 16 bits, and the high half, its sign
    /// extension, is multiplied by zero.
    #[inline(always)]
    fn factors(words: __m256i) -> [__m256i; 2] {
        // SAFETY: AVX2 is there.
        unsafe {
            let (low, high) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            [_mm256_cvtepu16_epi32(low), _mm256_cvtepu16_epi32(high)]
        }
    }
}
