//! Packing the matrices of a checkpoint piece by piece, so that no more than a piece of the file is in memory beside them.

use std::ops::Range;

use lm_kernels::{Arena, PackedMatrix, Packing, Source};

use super::{Blocks, Checkpoint};
use crate::{Error, Result, WeightFormat};

/// Most bytes of a file that are packed before their memory is let go of.
const PIECE_BYTES: usize = 16 << 20;

/// Packs a matrix of floats.
pub(crate) fn pack_dense(
    checkpoint: &Checkpoint,
    name: &str,
    (format, rows, cols): (WeightFormat, usize, usize),
    arena: &Arena,
) -> Result<PackedMatrix> {
    let tensor = checkpoint.tensor(name)?;
    let dtype = checkpoint.float_dtype(name)?;
    pack(name, (format, rows, cols), arena, |packing, rows| {
        packing.push(rows.len(), Source::from_le_bytes(dtype, tensor.rows(rows.clone()))?)?;
        tensor.release(rows);
        Ok(())
    })
}

/// Lays out a matrix that was quantised before it was written.
pub(crate) fn pack_stored(
    checkpoint: &Checkpoint,
    blocks: &Blocks,
    shape: (WeightFormat, usize, usize),
    arena: &Arena,
) -> Result<PackedMatrix> {
    let [quants, scales] = [checkpoint.tensor(&blocks.quants.0)?, checkpoint.tensor(&blocks.scales.0)?];
    pack(&blocks.quants.0, shape, arena, |packing, rows| {
        packing.push_stored(rows.len(), quants.rows(rows.clone()), scales.rows(rows.clone()))?;
        quants.release(rows.clone());
        scales.release(rows);
        Ok(())
    })
}

fn pack(
    name: &str,
    (format, rows, cols): (WeightFormat, usize, usize),
    arena: &Arena,
    mut push: impl FnMut(&mut Packing, Range<usize>) -> lm_kernels::Result<()>,
) -> Result<PackedMatrix> {
    let failed = |source| Error::Weight { tensor: name.to_owned(), source };
    let mut packing = Packing::new(arena, format, rows, cols).map_err(failed)?;
    // No file has more than four bytes a weight.
    let piece = (PIECE_BYTES / (4 * cols.max(1))).next_multiple_of(Packing::ROWS).max(Packing::ROWS);
    for first in (0..rows).step_by(piece) {
        push(&mut packing, first..(first + piece).min(rows)).map_err(failed)?;
    }
    Ok(packing.finish())
}
