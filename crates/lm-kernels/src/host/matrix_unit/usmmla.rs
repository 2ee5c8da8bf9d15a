//! Matrix products of Arm's 8-bit integer extension (`FEAT_I8MM`): two rows of eight bytes times two rows of
//! eight bytes.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{MatrixUnit, Products, SIDE, STEP, multiplies};

/// The `USMMLA` instruction on NEON registers.
///
/// Correct under QEMU; never run on hardware. [`Usmmla::works`] compares one product with plain sums before
/// the instruction set is selected.
///
/// # Source
/// Arm Architecture Reference Manual for A-profile, DDI 0487, `USMMLA`.
#[derive(Clone, Copy)]
pub(in crate::host) struct Usmmla;

/// Weight rows of a tile.
const TILE: usize = SIDE / 2;
/// Columns of a product.
const DEPTH: usize = 8;
/// Rows of activations multiplied at a time: their sums are in 16 registers.
const ROWS: usize = 4;

/// Eight columns of sixteen weight rows, two rows to a register.
type Slice = [uint8x16_t; TILE / 2];
/// The slices of one step.
type Slices = [Slice; STEP / DEPTH];
/// Sums of [`ROWS`] rows with a tile: a register has those of two rows with two rows of weights.
type Sums = [[int32x4_t; TILE / 2]; ROWS / 2];

impl MatrixUnit for Usmmla {
    const PRESENT: bool = true;

    fn configure() {}
    fn release() {}

    #[inline(always)]
    unsafe fn multiply(a: *const i8, a_stride: usize, b: [*const u8; 2], steps: usize, out: &mut Products) {
        *out = [[0; SIDE]; SIDE];
        for (half, b) in b.into_iter().enumerate() {
            for step in 0..steps {
                // SAFETY: the caller guarantees `steps` tiles of 1,024 bytes, of any alignment.
                let lines = unsafe { b.cast::<[[u8; STEP]; TILE]>().add(step).read() };
                let slices = slices(lines);
                for (quad, out) in out.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
                    // SAFETY: the caller guarantees `SIDE` rows of `steps` times `STEP` columns.
                    unsafe {
                        let a = a.add(quad * ROWS * a_stride + step * STEP);
                        add_products(a, a_stride, &slices, half * TILE, out);
                    }
                }
            }
        }
    }
}

impl Usmmla {
    /// Returns true if the results are correct; the processor must have the extension.
    pub fn works() -> bool {
        multiplies::<Self>()
    }
}

/// Joins lines of four columns of sixteen rows to slices of eight columns.
#[inline(always)]
fn slices(lines: [[u8; STEP]; TILE]) -> Slices {
    let lines: [[uint32x4_t; 4]; TILE] = bytemuck::cast(lines);
    let mut out: Slices = bytemuck::Zeroable::zeroed();
    for (slice, out) in out.iter_mut().enumerate() {
        let (a, b) = (lines[2 * slice], lines[2 * slice + 1]);
        for rows in 0..4 {
            // SAFETY: NEON is part of AArch64.
            unsafe {
                out[2 * rows] = vreinterpretq_u8_u32(vzip1q_u32(a[rows], b[rows]));
                out[2 * rows + 1] = vreinterpretq_u8_u32(vzip2q_u32(a[rows], b[rows]));
            }
        }
    }
    out
}

/// Adds the products of [`ROWS`] rows with the slices of a step to columns of `out`, from `first` on.
///
/// # Safety
/// `a` has [`ROWS`] rows of [`STEP`] columns, `a_stride` bytes apart; the processor has the extension.
#[inline(always)]
unsafe fn add_products(
    a: *const i8,
    a_stride: usize,
    slices: &Slices,
    first: usize,
    out: &mut [[i32; SIDE]; ROWS],
) {
    let mut sums: Sums = bytemuck::Zeroable::zeroed();
    for (slice, weights) in slices.iter().enumerate() {
        for (pair, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the caller guarantees the rows and the extension.
            unsafe {
                let a = a.add(2 * pair * a_stride + slice * DEPTH);
                let x = vcombine_s8(vld1_s8(a), vld1_s8(a.add(a_stride)));
                for (sums, weights) in sums.iter_mut().zip(weights) {
                    *sums = usmmla(*sums, *weights, x);
                }
            }
        }
    }
    for (sums, out) in sums.iter().zip(out.as_chunks_mut::<2>().0) {
        for (sums, column) in sums.as_chunks::<2>().0.iter().zip((first..).step_by(4)) {
            // SAFETY: NEON is part of AArch64.
            let rows: [[i32; 4]; 2] =
                bytemuck::cast(unsafe { [vuzp1q_s32(sums[0], sums[1]), vuzp2q_s32(sums[0], sums[1])] });
            for (out, row) in out.iter_mut().zip(rows) {
                out[column..column + 4].iter_mut().zip(row).for_each(|(out, sum)| *out += sum);
            }
        }
    }
}

/// Adds the products of two rows of unsigned and two rows of signed bytes, eight each.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn usmmla(sums: int32x4_t, w: uint8x16_t, x: int8x16_t) -> int32x4_t {
    let mut out = sums;
    // SAFETY: the processor has the instruction, as the target feature states.
    unsafe {
        asm!(
            "usmmla {out:v}.4s, {w:v}.16b, {x:v}.16b",
            out = inout(vreg) out, w = in(vreg) w, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    out
}
