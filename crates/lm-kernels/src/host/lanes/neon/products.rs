//! Products of bytes: what the versions of the architecture add to NEON.
//!
//! The functions with a target feature are instructions: the intrinsics of `std` for them are not stable.

use std::arch::aarch64::*;
use std::arch::asm;

use super::super::super::matrix_unit::{MatrixUnit, NoMatrixUnit, Usmmla};
use super::super::portable::F32x16;
use super::super::vector::{Kernel, LANES, Lanes, Line, ZeroPointCorrection};
use super::{Bytes, Ints, Neon, REGISTERS, each};

/// Dot products of bytes in the lanes of [`Neon`](super::Neon), and the processors that have their
/// instructions.
///
/// Only [`Isa::run`](crate::host::Isa) may choose an implementation, after it was detected.
pub(in crate::host) trait ByteProducts: Copy {
    /// Matrix unit of the path.
    type Unit: MatrixUnit;
    /// Sums of products of nibbles over a group of 32 columns.
    type NibbleSums: Copy;
    /// True if [`ByteProducts::dot_bytes`] takes the weights as they are; otherwise it subtracts their zero
    /// point first.
    const UNSIGNED: bool;
    /// True if weights are expanded to bytes for products with many rows.
    const PANELS: bool;

    /// Runs a kernel in a function of its own, compiled for the instructions.
    fn call<K: Kernel>(kernel: K) -> K::Output;

    /// See [`Lanes::dot_bytes`].
    fn dot_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints;
    /// As [`Lanes::dot_codes`], of any number of quads.
    fn dot_small_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints;
    /// See [`Lanes::start_nibbles`].
    fn start_nibbles(correction: &ZeroPointCorrection) -> Self::NibbleSums;
    /// See [`Lanes::dot_nibbles`].
    fn dot_nibbles(sums: Self::NibbleSums, w: Bytes, x: int8x16_t) -> Self::NibbleSums;
    /// The sum of each lane.
    fn nibble_sums(sums: Self::NibbleSums) -> Ints;

    /// Returns true if the results of the path are those of the portable one; the processor must have its
    /// instructions.
    fn works() -> bool {
        Self::call(SelfCheck) == SelfCheck.run::<F32x16>()
    }
}

/// Armv8.0: products of 16 bits, added in pairs.
#[derive(Clone, Copy)]
pub(in crate::host) struct Baseline;

/// The `FEAT_DotProd` extension: sums of four products of signed bytes.
#[derive(Clone, Copy)]
pub(in crate::host) struct Dotprod;

/// The `FEAT_I8MM` extension: sums of four products of unsigned and signed bytes, and products of matrices.
#[derive(Clone, Copy)]
pub(in crate::host) struct I8mm;

/// Runs a kernel in its copy for NEON. Not inlined if one kernel calls another: a format's loops are a
/// function of their own.
#[inline(never)]
pub(in crate::host) fn run_neon<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon<Baseline>>()
}

/// Runs a kernel in its copy for `FEAT_DotProd`.
#[inline(never)]
#[target_feature(enable = "neon,dotprod")]
pub(in crate::host) fn run_dotprod<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon<Dotprod>>()
}

/// Runs a kernel in its copy for `FEAT_I8MM`.
#[inline(never)]
#[target_feature(enable = "neon,dotprod,i8mm")]
pub(in crate::host) fn run_i8mm<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon<I8mm>>()
}

/// Subtracts the zero point 128.
#[inline(always)]
fn signed(w: uint8x16_t) -> int8x16_t {
    // SAFETY: NEON is available, see the parent module.
    unsafe { vreinterpretq_s8_u8(veorq_u8(w, vdupq_n_u8(128))) }
}

/// Sums of two products each: at most 2 · 127 · 127 in magnitude, which fits 16 bits.
#[inline(always)]
fn pair_sums(w: int8x16_t, x: int8x16_t) -> int16x8_t {
    // SAFETY: NEON is there.
    unsafe { vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)) }
}

impl ByteProducts for Baseline {
    type Unit = NoMatrixUnit;
    /// Two 16-bit sums per lane, each over two of every four columns.
    type NibbleSums = [int16x8_t; REGISTERS];
    const UNSIGNED: bool = false;
    const PANELS: bool = false;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        run_neon(kernel)
    }

    #[inline(always)]
    fn dot_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        // SAFETY: NEON is there.
        each(|q| unsafe { vpadalq_s16(sums[q], pair_sums(signed(w[q]), x)) })
    }

    #[inline(always)]
    fn dot_small_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        // SAFETY: NEON is there.
        each(|q| unsafe { vpadalq_s16(sums[q], pair_sums(vreinterpretq_s8_u8(w[q]), x)) })
    }

    /// At the end, each sum is that of 16 products with nibbles minus 4 times the sum of 32 activations: at
    /// most 16 · (15 - 4) · 127 + 16 · 4 · 127 = 30,480, which fits 16 bits.
    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> Self::NibbleSums {
        // SAFETY: NEON is there.
        [unsafe { vreinterpretq_s16_s32(vdupq_n_s32(correction.halves)) }; REGISTERS]
    }

    #[inline(always)]
    fn dot_nibbles(sums: Self::NibbleSums, w: Bytes, x: int8x16_t) -> Self::NibbleSums {
        // SAFETY: NEON is there.
        each(|q| unsafe { vaddq_s16(sums[q], pair_sums(vreinterpretq_s8_u8(w[q]), x)) })
    }

    #[inline(always)]
    fn nibble_sums(sums: Self::NibbleSums) -> Ints {
        // SAFETY: NEON is there.
        each(|q| unsafe { vpaddlq_s16(sums[q]) })
    }
}

/// Adds four products of signed bytes to each lane.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(sums: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    let mut out = sums;
    // SAFETY: the processor has the instruction, as the target feature states.
    unsafe {
        asm!(
            "sdot {out:v}.4s, {w:v}.16b, {x:v}.16b",
            out = inout(vreg) out, w = in(vreg) w, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    out
}

impl ByteProducts for Dotprod {
    type Unit = NoMatrixUnit;
    type NibbleSums = Ints;
    const UNSIGNED: bool = false;
    const PANELS: bool = false;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: the extension was detected, as the trait requires.
        unsafe { run_dotprod(kernel) }
    }

    #[inline(always)]
    fn dot_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        let w = each(|q| signed(w[q]));
        // Not `each`: only code inlined by force is compiled with the extension.
        // SAFETY: the extension was detected.
        unsafe {
            [sdot(sums[0], w[0], x), sdot(sums[1], w[1], x), sdot(sums[2], w[2], x), sdot(sums[3], w[3], x)]
        }
    }

    #[inline(always)]
    fn dot_small_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        let w: [int8x16_t; REGISTERS] = bytemuck::cast(w);
        // SAFETY: the extension was detected.
        unsafe {
            [sdot(sums[0], w[0], x), sdot(sums[1], w[1], x), sdot(sums[2], w[2], x), sdot(sums[3], w[3], x)]
        }
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> Ints {
        // SAFETY: NEON is there.
        [unsafe { vdupq_n_s32(correction.whole) }; REGISTERS]
    }

    #[inline(always)]
    fn dot_nibbles(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        Self::dot_small_bytes(sums, w, x)
    }

    #[inline(always)]
    fn nibble_sums(sums: Ints) -> Ints {
        sums
    }
}

/// Adds four products of unsigned and signed bytes to each lane.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn usdot(sums: int32x4_t, w: uint8x16_t, x: int8x16_t) -> int32x4_t {
    let mut out = sums;
    // SAFETY: the processor has the instruction, as the target feature states.
    unsafe {
        asm!(
            "usdot {out:v}.4s, {w:v}.16b, {x:v}.16b",
            out = inout(vreg) out, w = in(vreg) w, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    out
}

impl ByteProducts for I8mm {
    type Unit = Usmmla;
    type NibbleSums = Ints;
    const UNSIGNED: bool = true;
    const PANELS: bool = true;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: the extension was detected, as the trait requires.
        unsafe { run_i8mm(kernel) }
    }

    #[inline(always)]
    fn dot_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        // SAFETY: the extension was detected.
        unsafe {
            [
                usdot(sums[0], w[0], x),
                usdot(sums[1], w[1], x),
                usdot(sums[2], w[2], x),
                usdot(sums[3], w[3], x),
            ]
        }
    }

    #[inline(always)]
    fn dot_small_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        Self::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> Ints {
        Dotprod::start_nibbles(correction)
    }

    #[inline(always)]
    fn dot_nibbles(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        Self::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn nibble_sums(sums: Ints) -> Ints {
        sums
    }
}

/// Products of bytes and of nibbles, both of the largest magnitude.
#[derive(Clone, Copy)]
struct SelfCheck;

impl Kernel for SelfCheck {
    type Output = [[f32; LANES]; 2];

    #[inline(always)]
    fn run<V: Lanes>(self) -> Self::Output {
        const ROW: [i8; 4] = [127, -127, 3, -56];
        let mut line: Line = [0; _];
        for (i, byte) in line.iter_mut().enumerate() {
            *byte = (i * 37 % 255 + 1) as u8;
        }
        let quad = V::quad(ROW);
        let sum: i32 = ROW.iter().map(|&x| i32::from(x)).sum();
        let bytes = V::dot_bytes(V::start_bytes(-128 * sum), V::load_bytes(&line), quad);
        let [low, high] = V::load_nibbles(&line);
        let nibbles = V::dot_nibbles(V::start_nibbles(&ZeroPointCorrection::of(2 * sum)), low, quad);
        let [factors, _] = V::factors(&[15; LANES], [0x5555; 2]);
        let scaled = V::add_scaled(V::splat_int(0), V::dot_nibbles(nibbles, high, quad), factors);
        let mut out = [[0.0; LANES]; 2];
        V::from_ints(bytes).store(&mut out[0]);
        V::from_ints(scaled).store(&mut out[1]);
        out
    }
}
