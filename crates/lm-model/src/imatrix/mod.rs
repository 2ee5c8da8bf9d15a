//! Importance matrices: sums of the squared inputs of each linear layer over a text, in the GGUF files of
//! llama.cpp.
//!
//! Source: `tools/imatrix/imatrix.cpp` and `common/imatrix-loader.cpp` of llama.cpp, as in llama-cpp-python
//! 0.3.36.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use lm_formats::Error as FormatError;
use lm_kernels::{Importance, InputSum};

use crate::error::{Error, Result};
use crate::gguf::FILE_TYPE;

/// Suffix of the tensor of sums, `[matrices, cols]` in F32.
const SUMS: &str = ".in_sum2";
/// Suffix of the tensor of numbers of input rows, `[matrices, 1]` in F32.
const COUNTS: &str = ".counts";
/// Value of [`FILE_TYPE`].
const IMATRIX: &str = "imatrix";
const DATASETS: &str = "imatrix.datasets";
const CHUNK_COUNT: &str = "imatrix.chunk_count";
const CHUNK_SIZE: &str = "imatrix.chunk_size";

/// Importance matrix of a model: for each linear layer, the sum of the squares of its inputs in each column.
///
/// Layers have the names of llama.cpp's files (`blk.0.attn_q.weight`), so that its importance matrices can be
/// used, and it can use ours. The experts of a layer have sums of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportanceMatrix {
    /// Name shown in errors.
    file: String,
    layers: BTreeMap<String, LayerSums>,
    calibration: Calibration,
}

/// Origin of an importance matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calibration {
    /// Files of text.
    pub datasets: Vec<String>,
    /// Number of chunks of the text.
    pub chunk_count: u32,
    /// Tokens of a chunk.
    pub chunk_size: u32,
}

/// Sums of a linear layer: of one matrix, or of several that are stacked, such as those of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSums {
    /// Number of columns.
    pub cols: usize,
    /// Sums of the squares of the inputs, `[matrices, cols]`.
    pub squares: Vec<f32>,
    /// Number of input rows of each matrix.
    pub counts: Vec<f32>,
}

impl ImportanceMatrix {
    /// Creates the matrix of recorded sums by name; sums without rows are omitted.
    ///
    /// # Errors
    /// [`Error::TensorValue`] for a sum beyond 32 bits: the model overflowed.
    pub(crate) fn new(
        file: String,
        sums: impl IntoIterator<Item = (String, Vec<InputSum>)>,
        calibration: Calibration,
    ) -> Result<Self> {
        let mut layers = BTreeMap::new();
        for (name, sums) in sums.into_iter().filter(|(_, sums)| sums.iter().any(|sum| sum.rows > 0)) {
            let layer = LayerSums {
                cols: sums[0].squares.len(),
                squares: sums.iter().flat_map(|sum| &sum.squares).map(|&square| square as f32).collect(),
                counts: sums.iter().map(|sum| sum.rows as f32).collect(),
            };
            layer.check(&file, &name)?;
            layers.insert(name, layer);
        }
        Ok(Self { file, layers, calibration })
    }

    /// Names and sums of the layers, sorted by name.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = (&str, &LayerSums)> {
        self.layers.iter().map(|(name, sums)| (name.as_str(), sums))
    }

    /// Origin of the sums.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The file in errors.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Importance of the columns of a matrix `[rows, cols]` that stacks `count` matrices; `None` if the layer
    /// is absent or all inputs were zero. Stacked matrices may share one importance. Matrices without inputs,
    /// or with only zero inputs, get the mean of the others.
    ///
    /// # Errors
    /// [`FormatError::TensorShape`] when the layer has other columns or another number of matrices.
    pub(crate) fn importance(
        &self,
        name: &str,
        count: usize,
        [rows, cols]: [usize; 2],
    ) -> Result<Option<Importance>> {
        let Some(layer) = self.layers.get(name) else { return Ok(None) };
        if layer.cols != cols || ![1, count].contains(&layer.counts.len()) {
            let (file, tensor) = (self.file.clone(), format!("{name}{SUMS}"));
            let (expected, got) = (vec![count, cols], vec![layer.counts.len(), layer.cols]);
            return Err(FormatError::TensorShape { file, tensor, expected, got }.into());
        }
        let importance = layer.means().map(|means| Importance::new(rows, cols, &means)).transpose();
        importance.map_err(|source| Error::Weight { tensor: name.to_owned(), source })
    }
}

impl LayerSums {
    /// Checks the numbers of a layer.
    ///
    /// # Errors
    /// [`Error::TensorValue`] for a sum or a count that is negative or not finite, and for a mean that is too
    /// large.
    fn check(&self, file: &str, name: &str) -> Result<()> {
        let wrong = |suffix: &str, value: f32, expected: &str| {
            let (file, tensor) = (file.to_owned(), format!("{name}{suffix}"));
            Err(Error::TensorValue { file, tensor, value, expected: expected.to_owned() })
        };
        let is_wrong = |value: &&f32| !(value.is_finite() && **value >= 0.0);
        for (suffix, values) in [(SUMS, &self.squares), (COUNTS, &self.counts)] {
            if let Some(&value) = values.iter().find(is_wrong) {
                return wrong(suffix, value, "finite numbers from 0 on");
            }
        }
        match self.means().into_iter().flatten().find(|mean| !mean.is_finite()) {
            Some(mean) => wrong(SUMS, mean, "sums whose quotients by the counts are finite"),
            None => Ok(()),
        }
    }

    /// Mean squares, `[matrices, cols]`; `None` if all are zero.
    fn means(&self) -> Option<Vec<f32>> {
        let of_matrix = |(squares, &count): (&[f32], &f32)| {
            let means: Vec<_> = squares.iter().map(|square| square / count).collect();
            (count > 0.0 && means.iter().any(|mean| *mean > 0.0)).then_some(means)
        };
        let means: Vec<_> = self.squares.chunks_exact(self.cols).zip(&self.counts).map(of_matrix).collect();
        let mut shared = vec![0.0; self.cols];
        for mean in means.iter().flatten() {
            shared.iter_mut().zip(mean).for_each(|(sum, mean)| *sum += mean);
        }
        let any = means.iter().any(Option::is_some);
        any.then(|| means.into_iter().flat_map(|mean| mean.unwrap_or_else(|| shared.clone())).collect())
    }
}
