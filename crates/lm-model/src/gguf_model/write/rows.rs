//! Bytes of a tensor, in the order and form of GGUF files.

use lm_formats::GgufTensorType;
use lm_kernels::{GgmlType, Source};

use super::tensors::{Contents, NewTensor, float};
use crate::checkpoint::{Checkpoint, StoredRows, StoredTensor, TensorLocation};
use crate::error::{Error, Result};
use crate::loader::dequantize;

/// Maximum bytes of a checkpoint in memory at once.
const PIECE_BYTES: usize = 16 << 20;

/// Writes the bytes of a tensor whose stored form is `stored`.
pub(super) fn write_tensor(
    checkpoint: &Checkpoint,
    tensor: &NewTensor,
    stored: &StoredTensor,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let Contents::Stored(location) = &tensor.contents else { return Ok(()) };
    match tensor.cols {
        None => write_vector(checkpoint, location, stored, write),
        Some(cols) => {
            let rows = checkpoint.rows(location)?;
            let count = tensor.shape[..tensor.shape.len() - 1].iter().product();
            Matrix { rows: &rows, count, cols, ty: tensor.ty, stored }.write(location.name(), write)
        }
    }
}

fn write_vector(
    checkpoint: &Checkpoint,
    location: &TensorLocation,
    stored: &StoredTensor,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut values = checkpoint.vector(location)?;
    if let Some(order) = stored.order.model_rows(values.len()) {
        values = order.into_iter().map(|row| values[row]).collect();
    }
    stored.values.store(&mut values);
    write(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

/// Matrix being copied from a checkpoint to a file.
struct Matrix<'a> {
    rows: &'a StoredRows<'a>,
    count: usize,
    cols: usize,
    ty: GgufTensorType,
    stored: &'a StoredTensor,
}

impl Matrix<'_> {
    fn write(&self, name: &str, write: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let order = self.stored.order.model_rows(self.count);
        let piece = (PIECE_BYTES / (4 * self.cols.max(1))).max(1);
        for first in (0..self.count).step_by(piece) {
            let rows = first..(first + piece).min(self.count);
            let failed = |source: lm_kernels::Error| Error::Weight {
                tensor: name.to_owned(),
                source: source.after_rows(first),
            };
            self.rows.check_files().map_err(failed)?;
            match &order {
                None => {
                    write(&self.encode(&self.rows.read(rows.clone())).map_err(failed)?)?;
                    self.rows.release(rows);
                }
                Some(order) => {
                    let read = |&row: &usize| self.rows.read(row..row + 1).into_owned();
                    let bytes: Vec<u8> = order[rows].iter().flat_map(read).collect();
                    write(&self.encode(&bytes).map_err(failed)?)?;
                }
            }
        }
        self.rows.release_all();
        Ok(())
    }

    /// Converts rows of the checkpoint to the tensor's type. Blocks of another type are dequantised.
    fn encode(&self, bytes: &[u8]) -> lm_kernels::Result<Vec<u8>> {
        let (stored, dequantized) = (self.rows.ty(), self.dequantized(bytes)?);
        let source = match (&dequantized, stored.float()) {
            (Some(floats), _) => Source::F32(floats),
            (None, Some(dtype)) => Source::from_le_bytes(dtype, bytes)?,
            (None, None) => return Ok(bytes.to_vec()),
        };
        match float(self.ty) {
            Some(ty) => ty.encode(self.cols, source),
            None => self.block_type()?.quantize(self.cols, source),
        }
    }

    /// Dequantises rows of blocks; `None` for floats, and for blocks of the tensor's type.
    fn dequantized(&self, bytes: &[u8]) -> lm_kernels::Result<Option<Vec<f32>>> {
        let Some(blocks) = self.rows.ty().blocks() else { return Ok(None) };
        if float(self.ty).is_none() && self.block_type()? == blocks {
            return Ok(None);
        }
        let rows = bytes.len().checked_div(blocks.row_bytes(self.cols).unwrap_or(0)).unwrap_or(0);
        dequantize(blocks, rows, self.cols, bytes).map(Some)
    }

    fn block_type(&self) -> lm_kernels::Result<GgmlType> {
        self.ty.name().to_lowercase().parse()
    }
}
