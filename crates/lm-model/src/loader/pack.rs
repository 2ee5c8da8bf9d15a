//! Packing of a checkpoint's matrices in pieces, so that at most one piece of the file is in memory in
//! addition.

use std::ops::Range;

use lm_kernels::{Arena, GgmlType, Importance, PackedMatrix, Packing, Source, WeightFormat};

use crate::checkpoint::{Blocks, Checkpoint, StoredRows, TensorLocation};
use crate::error::{Error, Result};

/// Maximum bytes of a file that are packed before their memory is released.
const PIECE_BYTES: usize = 16 << 20;

/// Packs a matrix from rows of a loadable type: floats, or quantised blocks. Blocks in the requested format
/// are kept as they are; for another format they are dequantised and packed like a file's floats.
pub(crate) fn pack_dense(
    rows: &StoredRows<'_>,
    name: &str,
    shape: (WeightFormat, usize, usize),
    arena: &Arena,
) -> Result<PackedMatrix> {
    pack_weighted(rows, name, shape, arena, None)
}

/// [`pack_dense`] with the importance of the columns, if known.
pub(crate) fn pack_weighted(
    rows: &StoredRows<'_>,
    name: &str,
    shape: (WeightFormat, usize, usize),
    arena: &Arena,
    importance: Option<&Importance>,
) -> Result<PackedMatrix> {
    let (format, _, cols) = shape;
    let packed = pack(name, shape, arena, importance, |packing, range| {
        rows.check_files()?;
        let (count, bytes) = (range.len(), rows.read(range.clone()));
        match (rows.ty().float(), rows.ty().blocks()) {
            (Some(dtype), _) => packing.push(count, Source::from_le_bytes(dtype, &bytes)?)?,
            (None, Some(blocks)) if format == WeightFormat::Ggml(blocks) => {
                packing.push_blocks(count, &bytes)?;
            }
            (None, Some(blocks)) => {
                packing.push(count, Source::F32(&dequantize(blocks, count, cols, &bytes)?))?;
            }
            (None, None) => unreachable!("types that are not loaded were rejected before"),
        }
        rows.release(range);
        Ok(())
    })?;
    rows.release_all();
    Ok(packed)
}

/// Dequantises rows of blocks.
pub(crate) fn dequantize(
    ty: GgmlType,
    rows: usize,
    cols: usize,
    bytes: &[u8],
) -> lm_kernels::Result<Vec<f32>> {
    let packed = PackedMatrix::from_blocks(ty, rows, cols, bytes)?;
    let mut floats = vec![0.0; rows * cols];
    for (row, out) in floats.chunks_exact_mut(cols).enumerate() {
        packed.dequantize_row(row, out);
    }
    Ok(floats)
}

/// Packs a matrix that is stored quantised.
pub(crate) fn pack_stored(
    checkpoint: &Checkpoint,
    blocks: &Blocks,
    shape: (WeightFormat, usize, usize),
    arena: &Arena,
) -> Result<PackedMatrix> {
    let rows = |name: &str| checkpoint.rows(&TensorLocation::whole(name));
    let [quants, scales] = [rows(&blocks.quants.0)?, rows(&blocks.scales.0)?];
    pack(&blocks.quants.0, shape, arena, None, |packing, range| {
        quants.check_files()?;
        scales.check_files()?;
        packing.push_stored(range.len(), &quants.read(range.clone()), &scales.read(range.clone()))?;
        quants.release(range.clone());
        scales.release(range);
        Ok(())
    })
}

fn pack(
    name: &str,
    (format, rows, cols): (WeightFormat, usize, usize),
    arena: &Arena,
    importance: Option<&Importance>,
    mut push: impl FnMut(&mut Packing, Range<usize>) -> lm_kernels::Result<()>,
) -> Result<PackedMatrix> {
    let failed = |source| Error::Weight { tensor: name.to_owned(), source };
    let mut packing = Packing::new(arena, format, rows, cols).map_err(failed)?;
    if let Some(importance) = importance {
        packing = packing.with_importance(importance.clone());
    }
    // No file has more than four bytes per weight.
    let piece = (PIECE_BYTES / (4 * cols.max(1))).next_multiple_of(Packing::ROWS).max(Packing::ROWS);
    for first in (0..rows).step_by(piece) {
        push(&mut packing, first..(first + piece).min(rows)).map_err(failed)?;
    }
    Ok(packing.finish())
}
