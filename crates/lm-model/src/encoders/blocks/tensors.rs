//! Tensors of a tower and its projector, by their names in the checkpoint; each is checked when it is loaded.
//!
//! Matrices keep the float format of the file, independent of the decoder's format; vectors are f32.

use burn::tensor::Tensor;
use lm_formats::Error as FormatError;
use lm_kernels::{Weight, from_host};

use crate::checkpoint::TensorLocation;
use crate::error::{Error, Result};
use crate::loader::TensorReader;

impl TensorReader<'_> {
    /// Returns the first of several prefixes with a tensor `name`: published checkpoints and those of later
    /// releases of transformers spell the same module in different ways.
    ///
    /// # Errors
    /// When no tensor is found.
    pub(crate) fn prefix(&self, prefixes: &[&'static str], name: &str) -> Result<&'static str> {
        let found = prefixes.iter().find(|prefix| self.checkpoint().contains(&format!("{prefix}{name}")));
        let missing = || FormatError::MissingTensor {
            location: self.checkpoint().location().to_owned(),
            tensor: format!("{}{name}", prefixes.first().copied().unwrap_or_default()),
        };
        Ok(found.copied().ok_or_else(missing)?)
    }

    /// Loads a matrix `[rows, cols]`. The dimensions of a stored convolution after the first are its columns.
    pub(crate) fn matrix(&mut self, name: &str, [rows, cols]: [usize; 2]) -> Result<Weight> {
        let checkpoint = self.checkpoint();
        let stored = checkpoint.shape(name).unwrap_or_default();
        let elements = |shape: &[usize]| shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let is_flat = stored.first() == Some(&rows) && elements(&stored[1..]) == Some(cols);
        let shape = if is_flat && stored.len() > 2 { stored.to_vec() } else { vec![rows, cols] };
        let location = checkpoint.locate(name);
        checkpoint.check(&location, &shape)?;
        let stored = checkpoint.rows_of(&location, cols)?;
        self.read_rows(&location, &stored, None, [rows, cols])
    }

    /// Loads the transpose of a stored matrix `[cols, rows]`.
    pub(crate) fn transposed(&mut self, name: &str, [rows, cols]: [usize; 2]) -> Result<Weight> {
        let checkpoint = self.checkpoint();
        checkpoint.check(&TensorLocation::whole(name), &[cols, rows])?;
        let location = TensorLocation::columns(name, [1, cols, rows], 1, 0);
        let stored = checkpoint.rows(&location)?;
        self.read_rows(&location, &stored, None, [rows, cols])
    }

    /// Loads a vector.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Result<Tensor<1>> {
        let values = self.values(name, len)?;
        Ok(from_host(values, [len], self.burn_device()))
    }

    /// Loads the elements of a vector to host memory.
    pub(crate) fn values(&mut self, name: &str, len: usize) -> Result<Vec<f32>> {
        self.array(name, &[len])
    }

    /// Loads the elements of a tensor to host memory.
    pub(crate) fn array(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let location = self.checkpoint().locate(name);
        self.checkpoint().check(&location, shape)?;
        self.read_values(&location)
    }

    /// Error for a value of a tensor.
    pub(crate) fn invalid_value(&self, tensor: &str, value: f32, expected: String) -> Error {
        let (file, tensor) = (self.checkpoint().location().to_owned(), tensor.to_owned());
        Error::TensorValue { file, tensor, value, expected }
    }
}
