//! Products with weights in the float formats: one chain of multiply-adds over the columns per output.

use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::super::pack::{Bf16Unit, F16Unit};

/// Maximum rows of a register tile.
const ROWS: usize = 6;
/// The same with 32 registers: each widened weight is used twice as often.
const MANY_ROWS: usize = 12;

/// One column of 16 weight rows.
pub(super) trait Column: bytemuck::Pod + Sync {
    fn widen<V: Lanes>(&self) -> V;
}

impl Column for [f32; LANES] {
    #[inline(always)]
    fn widen<V: Lanes>(&self) -> V {
        V::load(self)
    }
}

impl Column for F16Unit {
    #[inline(always)]
    fn widen<V: Lanes>(&self) -> V {
        V::load_f16(&self.0)
    }
}

impl Column for Bf16Unit {
    #[inline(always)]
    fn widen<V: Lanes>(&self) -> V {
        V::load_bf16(&self.0)
    }
}

/// Multiplies `rows` of `x` by two tiles; `out` is `[rows, 2, 16]`.
#[inline(always)]
pub(super) fn multiply<V: Lanes, U: Column>(
    tiles: &[&[U]; 2],
    x: &[f32],
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    let cols = tiles[0].len();
    let mut done = 0;
    while done < out.len() {
        let (x, out) = (&x[(rows.start + done) * cols..], &mut out[done..]);
        done += match out.len() {
            _ if !V::IN_REGISTERS => few::<V, U, 1>(tiles, x, out),
            1 => few::<V, U, 1>(tiles, x, out),
            2 => few::<V, U, 2>(tiles, x, out),
            3 => few::<V, U, 3>(tiles, x, out),
            4 => few::<V, U, 4>(tiles, x, out),
            5 => few::<V, U, 5>(tiles, x, out),
            MANY_ROWS.. if V::MANY_REGISTERS => few::<V, U, MANY_ROWS>(tiles, x, out),
            _ => few::<V, U, ROWS>(tiles, x, out),
        };
    }
}

/// Multiplies the first `M` rows of `x`, and returns `M`.
#[inline(always)]
fn few<V: Lanes, U: Column, const M: usize>(
    tiles: &[&[U]; 2],
    x: &[f32],
    out: &mut [[[f32; LANES]; 2]],
) -> usize {
    let cols = tiles[0].len();
    let mut rows: [&[f32]; M] = [&[]; M];
    for m in 0..M {
        rows[m] = &x[m * cols..(m + 1) * cols];
    }
    let mut sums = [[V::splat(0.0); 2]; M];
    for (column, (a, b)) in tiles[0].iter().zip(tiles[1]).enumerate() {
        let (a, b) = (a.widen::<V>(), b.widen::<V>());
        for m in 0..M {
            let x = V::splat(rows[m][column]);
            sums[m] = [a.mul_add(x, sums[m][0]), b.mul_add(x, sums[m][1])];
        }
    }
    for (out, sums) in out.iter_mut().zip(sums) {
        sums[0].store(&mut out[0]);
        sums[1].store(&mut out[1]);
    }
    M
}
