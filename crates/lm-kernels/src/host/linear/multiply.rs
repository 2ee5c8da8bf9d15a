//! Selects the kernel for rows and a pair of tiles, by the weights' format and the number of rows.

use std::marker::PhantomData;
use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::super::pack::{
    Bf16Unit, BlockFormat, F16Unit, ForBlocks, IntegerLayout, PackedMatrix, Q4, Q8, Tile, WeightFormat,
};
use super::activations::QuantizedRows;
use super::integer::IntegerWeights;
use super::{Rows, blocks, float, integer, panels};

/// Maximum rows for which integer quants are unpacked on the fly; paths with a panel kernel use it for more.
pub(super) const FEW_ROWS: usize = 16;

/// Multiplies the rows by a pair of tiles. Gate and up weights of different formats, which are rare, take
/// two passes.
#[inline(always)]
pub(super) fn multiply_pair<V: Lanes>(
    [first, second]: [(&PackedMatrix, usize); 2],
    x: &Rows<'_>,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    let unlike = first.0.format() != second.0.format();
    let mut firsts = Vec::new();
    for pass in 0..=usize::from(unlike) {
        // Assigned separately, here and below, not by `map`: copying a pair as a whole right after its halves were
        // written causes a store-forwarding stall, which also delays the loads after it.
        let a = if unlike && pass == 1 { second } else { first };
        let b = if unlike && pass == 0 { first } else { second };
        multiply::<V>([a, b], x, rows.clone(), out);
        if unlike && pass == 0 {
            firsts.extend(out.iter().map(|pair| pair[0]));
        }
    }
    for (pair, first) in out.iter_mut().zip(firsts) {
        pair[0] = first;
    }
}

/// Multiplies the rows by a pair of tiles of one format.
#[inline(always)]
pub(super) fn multiply<V: Lanes>(
    [(a, i), (b, j)]: [(&PackedMatrix, usize); 2],
    x: &Rows<'_>,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    match a.format() {
        WeightFormat::Q8 => {
            let x = x.quantized(Q8::BLOCK);
            multiply_integers::<V, Q8>(&[a.tile(i), b.tile(j)], x, rows, out);
        }
        WeightFormat::Q4 => {
            let x = x.quantized(Q4::BLOCK);
            multiply_integers::<V, Q4>(&[a.tile(i), b.tile(j)], x, rows, out);
        }
        WeightFormat::Ggml(ggml) => {
            let x = x.quantized(ggml.activation_block());
            ggml.run(Products::<V> { tiles: [(a, i), (b, j)], x, rows, out, lanes: PhantomData });
        }
        WeightFormat::F32 => {
            float::multiply::<V, [f32; LANES]>(&[a.columns(i), b.columns(j)], x.float(), rows, out);
        }
        WeightFormat::F16 => {
            float::multiply::<V, F16Unit>(&[a.columns(i), b.columns(j)], x.float(), rows, out);
        }
        WeightFormat::Bf16 => {
            float::multiply::<V, Bf16Unit>(&[a.columns(i), b.columns(j)], x.float(), rows, out);
        }
    }
}

/// Rows times a pair of tiles in a block type.
struct Products<'a, V> {
    tiles: [(&'a PackedMatrix, usize); 2],
    x: &'a QuantizedRows,
    rows: Range<usize>,
    out: &'a mut [[[f32; LANES]; 2]],
    lanes: PhantomData<V>,
}

impl<V: Lanes> ForBlocks for Products<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run<F: BlockFormat>(self) {
        let Self { tiles: [(a, i), (b, j)], x, rows, out, .. } = self;
        V::call(blocks::Products::<F> { tiles: [a.records(i), b.records(j)], x, rows, out });
    }
}

/// Multiplies the rows by a pair of tiles in an integer format.
#[inline(always)]
fn multiply_integers<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    if V::PANELS && rows.len() > FEW_ROWS {
        panels::multiply::<V, F>(tiles, x, rows, out);
    } else {
        integer::multiply::<V, F>(tiles, x, rows, out);
    }
}
