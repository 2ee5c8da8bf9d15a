//! Transfers between host memory and a device.

use burn::tensor::{Device, Tensor, TensorData};

use crate::error::{Error, Result};

/// Copies f32 values to a device.
///
/// # Panics
/// When the number of values is not the product of `shape`.
pub fn from_host<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Copies a tensor to host memory, in row-major order. Waits for the device.
///
/// # Errors
/// [`Error::Device`] when the device failed at this or at an earlier operation; GPU work is queued, so its
/// failures surface here.
pub fn to_host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    let data = tensor.try_into_data().map_err(|error| Error::Device { reason: error.to_string() })?;
    data.convert::<f32>().try_into_vec().map_err(|error| Error::Device { reason: format!("{error:?}") })
}
