//! Matrices that are stored quantised, as [`ModelFolder::convert`](crate::ModelFolder::convert) writes them.
//!
//! A matrix `w` `[rows, cols]` is stored as two tensors, `w` (U8 `[rows, bytes]`, the quants) and `w_scale`
//! (U8 `[rows, bytes]`), in the layout of [`StoredMatrix`](lm_kernels::StoredMatrix). `config.json` names the
//! format under `quantization_config`.

use lm_kernels::WeightFormat;
use safetensors::Dtype;

use super::Checkpoint;
use crate::error::Result;

/// The two tensors that store a matrix: names, types, shapes.
pub(crate) struct Blocks {
    pub(crate) quants: (String, Dtype, [usize; 2]),
    pub(crate) scales: (String, Dtype, [usize; 2]),
}

impl Blocks {
    /// Returns the tensors of the matrix `name`; `None` for a format that is stored directly.
    pub(crate) fn of(name: &str, format: WeightFormat, rows: usize, cols: usize) -> Option<Self> {
        let [quants, scales] = format.stored_row_bytes(cols)?;
        Some(Self {
            quants: (name.to_owned(), Dtype::U8, [rows, quants]),
            scales: (format!("{name}_scale"), Dtype::U8, [rows, scales]),
        })
    }

    /// Checks that the checkpoint contains both.
    pub(crate) fn check(&self, checkpoint: &Checkpoint) -> Result<()> {
        for (name, dtype, shape) in [&self.quants, &self.scales] {
            checkpoint.check_stored(name, *dtype, shape)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_include_the_padding_of_the_last_block() {
        let blocks = Blocks::of("w", WeightFormat::Q4, 3, 33).unwrap();
        assert_eq!((blocks.quants.2, blocks.scales.2), ([3, 32], [3, 10]));
        assert_eq!(blocks.scales.0, "w_scale");
        assert!(Blocks::of("w", WeightFormat::F16, 3, 33).is_none());
    }
}
