//! Quantisation of floats to blocks, for the types that round to nearest.
//!
//! The bytes are those of the reference that [`quantize`](GgmlType::quantize) names. Other types search for
//! their scales, and implementations differ in how.

use std::sync::{Mutex, PoisonError};

use half::f16;

use super::super::super::pool::Pool;
use super::super::super::split::for_each_chunk;
use super::super::Source;
use super::{BlockFormat, ForBlocks, GgmlType};
use crate::error::{Error, Result};

/// Columns per block of the types that floats can be quantised to.
pub(super) const BLOCK: usize = 32;
/// Quantises a block: fills its bytes from the values of its columns, all finite.
pub(super) type QuantizeBlock = fn(&[f32; BLOCK], &mut [u8]);

impl GgmlType {
    /// Returns true if floats can be quantised to this type.
    pub fn quantizes(self) -> bool {
        self.run(Function).is_some()
    }

    /// Quantises rows of floats to blocks in GGUF's layout, row-major, on the threads of the global pool.
    ///
    /// # Errors
    /// - [`Error::NotQuantizable`] for types other than Q8_0 and Q4_0
    /// - [`Error::PartialBlock`] when `cols` is not a multiple of the block length
    /// - [`Error::SourceLength`] when `source` is not a whole number of rows
    /// - [`Error::NotRepresentable`] for the first value that is not finite, or too large for its block's f16
    ///   scale
    ///
    /// # Source
    /// `gguf.quants.quantize` of the Python package `gguf` 0.19, whose bytes are the same.
    ///
    /// # Examples
    /// ```
    /// use lm_kernels::{GgmlType, Source};
    /// let blocks = GgmlType::Q8_0.quantize(32, Source::F32(&[127.0; 32]))?;
    /// assert_eq!(blocks, [&[0, 0x3c][..], &[127; 32]].concat()); // a step of 1, then the integers
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    pub fn quantize(self, cols: usize, source: Source<'_>) -> Result<Vec<u8>> {
        let format = self.name();
        let quantize = self.run(Function).ok_or(Error::NotQuantizable { format })?;
        let row_bytes = self.row_bytes(cols).ok_or(Error::PartialBlock { cols, block: BLOCK, format })?;
        let rows = source.len().checked_div(cols).unwrap_or(0);
        if rows * cols != source.len() {
            return Err(Error::SourceLength { rows, cols, expected: rows * cols, got: source.len() });
        }
        let mut blocks = vec![0; rows * row_bytes];
        let first_bad: Mutex<Option<(usize, usize, f32)>> = Mutex::new(None);
        for_each_chunk(Pool::global(), &mut blocks, row_bytes, |row, out| {
            if let Err((col, value)) = quantize_row(quantize, source, row * cols, self.block_bytes(), out) {
                let mut first = first_bad.lock().unwrap_or_else(PoisonError::into_inner);
                if first.is_none_or(|(first, ..)| row < first) {
                    *first = Some((row, col, value));
                }
            }
        });
        match first_bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((row, col, value)) => Err(Error::NotRepresentable { row, col, value, format }),
            None => Ok(blocks),
        }
    }
}

/// Quantises the row that starts at element `start`; returns the column and value of one that is not
/// representable.
fn quantize_row(
    quantize: QuantizeBlock,
    source: Source<'_>,
    start: usize,
    block_bytes: usize,
    out: &mut [u8],
) -> std::result::Result<(), (usize, f32)> {
    let mut values = [0.0; BLOCK];
    for (index, out) in out.chunks_exact_mut(block_bytes).enumerate() {
        source.read(start + index * BLOCK, &mut values);
        let largest = values.iter().enumerate().max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
        let (col, &value) = largest.unwrap_or((0, &0.0));
        quantize(&values, out);
        if !value.is_finite() || !f16::from_le_bytes([out[0], out[1]]).is_finite() {
            return Err((index * BLOCK + col, value));
        }
    }
    Ok(())
}

/// Selects the block quantiser of a type.
struct Function;

impl ForBlocks for Function {
    type Output = Option<QuantizeBlock>;

    fn run<F: BlockFormat>(self) -> Self::Output {
        F::QUANTIZE
    }
}

/// The reciprocal of a step, or 0 if it is not finite.
pub(super) fn reciprocal(step: f32) -> f32 {
    let reciprocal = 1.0 / step;
    if reciprocal.is_finite() { reciprocal } else { 0.0 }
}
