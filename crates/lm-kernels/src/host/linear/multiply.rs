//! Which kernel multiplies rows with a pair of tiles: by the weights' format and the number of rows.

use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::super::pack::{Bf16Unit, F16Unit, PackedMatrix, Q4, Q8, Tile, WeightFormat};
use super::activations::QuantizedRows;
use super::integer::IntegerWeights;
use super::{Rows, float, integer, panels};

/// Rows up to which integer quants are used as they are stored, where a path has a kernel for more.
const FEW_ROWS: usize = 16;

/// Multiplies the rows with a pair of tiles. A gate and an up weight of unlike formats, which are rare, take two passes.
#[inline(always)]
pub(super) fn multiply_pair<V: Lanes>(
    tiles: [(&PackedMatrix, usize); 2],
    x: &Rows<'_>,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    let unlike = tiles[0].0.format() != tiles[1].0.format();
    let mut firsts = Vec::new();
    for pass in 0..=usize::from(unlike) {
        multiply::<V>(if unlike { [tiles[pass]; 2] } else { tiles }, x, rows.clone(), out);
        if unlike && pass == 0 {
            firsts.extend(out.iter().map(|pair| pair[0]));
        }
    }
    for (pair, first) in out.iter_mut().zip(firsts) {
        pair[0] = first;
    }
}

/// Multiplies the rows with a pair of tiles of one format.
#[inline(always)]
pub(super) fn multiply<V: Lanes>(
    tiles: [(&PackedMatrix, usize); 2],
    x: &Rows<'_>,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    match (tiles[0].0.format(), &x.q8, &x.q4) {
        (WeightFormat::Q8, Some(x), _) => {
            multiply_integers::<V, Q8>(&tiles.map(|(w, i)| w.tile(i)), x, rows, out)
        }
        (WeightFormat::Q4, _, Some(x)) => {
            multiply_integers::<V, Q4>(&tiles.map(|(w, i)| w.tile(i)), x, rows, out)
        }
        (WeightFormat::F32, ..) => {
            float::multiply::<V, [f32; LANES]>(&tiles.map(|(w, i)| w.columns(i)), x.float(), rows, out);
        }
        (WeightFormat::F16, ..) => {
            float::multiply::<V, F16Unit>(&tiles.map(|(w, i)| w.columns(i)), x.float(), rows, out);
        }
        (WeightFormat::Bf16, ..) => {
            float::multiply::<V, Bf16Unit>(&tiles.map(|(w, i)| w.columns(i)), x.float(), rows, out);
        }
        (WeightFormat::Q8 | WeightFormat::Q4, ..) => {
            unreachable!("rows are made for the weights of the call")
        }
    }
}

/// Multiplies the rows with a pair of tiles in an integer format.
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
