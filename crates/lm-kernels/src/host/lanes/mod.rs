//! Sixteen-lane vector abstraction for the kernels. Each CPU path is one file here.
//!
//! Sixteen floats are one AVX-512 register, two of AVX2, four of SSE or NEON. The lanes fix the order of
//! every float sum, so that wider registers cannot change a bit; integer sums are exact, and each path orders
//! them freely.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod float;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod prefetch;
mod slices;
#[cfg(test)]
mod tests;
mod vector;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{run_avx_vnni, run_avx_vnni_evex, run_avx2};
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::run_avx512;
pub(super) use float::{bf16_to_f32, bfloat_not_below, exp, exp2, f16_to_f32, f32_to_f16, round};
#[cfg(target_arch = "aarch64")]
pub(super) use neon::{Baseline, ByteProducts, Dotprod, I8mm, run_dotprod, run_i8mm, run_neon};
pub(super) use portable::F32x16;
pub(super) use prefetch::{Ahead, prefetch_ahead, prefetch_over, prefetch_stream, prefetch_to_l2};
pub(super) use slices::{dot, load_part, store_part};
pub(super) use vector::{Aligned, Kernel, LANES, Lanes, Line, ZeroPointCorrection};
#[cfg(all(test, target_arch = "x86_64"))]
pub(super) use {
    avx2::{Avx2, Evex, Vex, Vnni},
    avx512::Avx512,
};
