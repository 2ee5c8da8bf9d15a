//! Checks of tensors: that they exist, and in a shape and a type that can be loaded.

use lm_formats::Error as FormatError;

use super::{Checkpoint, LOADABLE, SliceRows, StoredTensor, TensorLocation, TensorType};
use crate::error::{Error, Result};

impl Checkpoint {
    /// Checks that a parameter of this shape exists, in a loadable type.
    pub(crate) fn check(&self, location: &TensorLocation, shape: &[usize]) -> Result<()> {
        for slice in location.slices() {
            let stored = self.stored(&slice.tensor)?;
            let loads =
                if shape.len() == 1 { stored.ty.float().is_some() } else { stored.ty.format().is_some() };
            if !loads {
                return Err(self.unsupported_type(&slice.tensor, stored, LOADABLE));
            }
        }
        self.check_shape_of(location, shape)
    }

    /// Checks that the tensors of a location form a parameter of this shape.
    pub(super) fn check_shape_of(&self, location: &TensorLocation, shape: &[usize]) -> Result<()> {
        for slice in location.slices() {
            let Some((all, others)) = shape.split_first() else {
                // A number, which has no dimension.
                self.check_shape(&slice.tensor, self.stored(&slice.tensor)?, shape)?;
                continue;
            };
            let rows = match slice.rows {
                SliceRows::All => vec![all / location.slices().len()],
                SliceRows::Range(rows) => vec![rows.of],
                SliceRows::Columns(rows) => {
                    let expected = match rows.is_flat {
                        true => vec![rows.matrices * rows.height, rows.columns.of],
                        false => vec![rows.matrices, rows.height, rows.columns.of],
                    };
                    self.check_shape(&slice.tensor, self.stored(&slice.tensor)?, &expected)?;
                    continue;
                }
            };
            self.check_shape(&slice.tensor, self.stored(&slice.tensor)?, &[&rows, others].concat())?;
        }
        Ok(())
    }

    /// Checks that the tensor exists and has this shape and type.
    pub(crate) fn check_stored(&self, name: &str, dtype: safetensors::Dtype, shape: &[usize]) -> Result<()> {
        let stored = self.stored(name)?;
        self.check_shape(name, stored, shape)?;
        if stored.ty == TensorType::Plain(dtype) {
            return Ok(());
        }
        Err(self.unsupported_type(name, stored, &dtype.to_string()))
    }

    /// Values of a float tensor of this shape.
    pub(crate) fn values_of_shape(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        self.check_shape(name, self.stored(name)?, shape)?;
        self.vector(&TensorLocation::whole(name))
    }

    /// Fails on a tensor that `is_known` rejects.
    pub(crate) fn check_no_others(&self, architecture: &str, is_known: impl Fn(&str) -> bool) -> Result<()> {
        match self.tensors.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((tensor, stored)) => Err(Error::UnexpectedTensor {
                file: self.files[stored.file].0.clone(),
                tensor: tensor.clone(),
                architecture: architecture.into(),
            }),
        }
    }

    pub(super) fn check_shape(&self, name: &str, stored: &StoredTensor, expected: &[usize]) -> Result<()> {
        let elements = |shape: &[usize]| shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let is_vector = expected.len() == 1 && elements(&stored.shape) == elements(expected);
        // Some GGUF files have a matrix of one row as a vector.
        let is_row = expected.split_first() == Some((&1, &stored.shape[..]));
        if stored.shape == expected
            || is_vector
            || is_row
            || flattened(&stored.shape) == Some(expected.to_vec())
        {
            return Ok(());
        }
        Err(self.wrong_shape(name, stored, expected.to_vec()))
    }

    pub(super) fn wrong_shape(&self, name: &str, stored: &StoredTensor, expected: Vec<usize>) -> Error {
        FormatError::TensorShape {
            file: self.file_of(stored),
            tensor: name.into(),
            expected,
            got: stored.shape.clone(),
        }
        .into()
    }
}

/// Flattens the shape of a tensor of three or more dimensions to that of a matrix: all dimensions but the
/// last become rows.
fn flattened(shape: &[usize]) -> Option<Vec<usize>> {
    let (cols, rows) = shape.split_last().filter(|(_, rows)| rows.len() > 1)?;
    Some(vec![rows.iter().product(), *cols])
}
