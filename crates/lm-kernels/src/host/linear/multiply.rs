//! Selects the kernel for rows and a pair of tiles, by the weights' format and the number of rows.

use std::marker::PhantomData;
use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::super::matrix_unit::{MatrixUnit, SIDE};
use super::super::pack::{
    Bf16Unit, BlockFormat, F16Unit, ForBlocks, IntegerLayout, PackedMatrix, Q4, Q8, Tile, WeightFormat,
};
use super::activations::QuantizedRows;
use super::integer::IntegerWeights;
use super::{Rows, block_tiles, blocks, float, integer, panels};

/// Multiplies the rows by two tiles of a weight.
#[inline(always)]
pub(super) fn multiply<V: Lanes>(
    w: &PackedMatrix,
    [i, j]: [usize; 2],
    x: &Rows<'_>,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    match w.format() {
        WeightFormat::Q8 => {
            let x = x.quantized(Q8::BLOCK);
            multiply_integers::<V, Q8>(&[w.tile(i), w.tile(j)], x, rows, out);
        }
        WeightFormat::Q4 => {
            let x = x.quantized(Q4::BLOCK);
            multiply_integers::<V, Q4>(&[w.tile(i), w.tile(j)], x, rows, out);
        }
        WeightFormat::Ggml(ggml) => {
            let x = x.quantized(ggml.activation_block());
            ggml.run(Products::<V> { w, tiles: [i, j], x, rows, out, lanes: PhantomData });
        }
        WeightFormat::F32 => {
            float::multiply::<V, [f32; LANES]>(&[w.columns(i), w.columns(j)], x.float(), rows, out);
        }
        WeightFormat::F16 => {
            float::multiply::<V, F16Unit>(&[w.columns(i), w.columns(j)], x.float(), rows, out);
        }
        WeightFormat::Bf16 => {
            float::multiply::<V, Bf16Unit>(&[w.columns(i), w.columns(j)], x.float(), rows, out);
        }
    }
}

/// Rows times a pair of tiles in a block type.
struct Products<'a, V> {
    w: &'a PackedMatrix,
    tiles: [usize; 2],
    x: &'a QuantizedRows,
    rows: Range<usize>,
    out: &'a mut [[[f32; LANES]; 2]],
    lanes: PhantomData<V>,
}

impl<V: Lanes> ForBlocks for Products<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run<F: BlockFormat>(self) {
        let Self { w, tiles: [i, j], x, rows, out, .. } = self;
        let tiles = [w.records(i), w.records(j)];
        if V::Unit::PRESENT && rows.len() > SIDE {
            V::call_with_unit(block_tiles::TileProducts::<F> { tiles, x, rows, out });
        } else {
            V::call(blocks::Products::<F> { tiles, x, rows, out });
        }
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
    if V::PANELS && rows.len() > panels::few_rows::<V, F>() {
        panels::multiply::<V, F>(tiles, x, rows, out);
    } else {
        integer::multiply::<V, F>(tiles, x, rows, out);
    }
}
