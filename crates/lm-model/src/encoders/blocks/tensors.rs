use burn::tensor::{Device as BurnDevice, Tensor};
use lm_formats::Error as FormatError;
use lm_kernels::{Arena, Device, Weight, from_host};

use crate::checkpoint::{Checkpoint, LOADABLE, StoredRows, TensorLocation};
use crate::error::{Error, Result};
use crate::loader::{LoadPhase, LoadProgress, pack_dense};

/// Tensors of a tower and its projector, by their names in the checkpoint; each is checked when it is loaded.
///
/// Matrices keep the float format of the file, independent of the decoder's format; vectors are f32.
pub(crate) struct TowerTensors<'a> {
    checkpoint: &'a Checkpoint,
    device: Device,
    burn_device: BurnDevice,
    arena: Arena,
    report: &'a mut dyn FnMut(LoadProgress),
    progress: LoadProgress,
    /// Bytes of the loaded weights in memory.
    pub(crate) weight_bytes: u64,
}

impl<'a> TowerTensors<'a> {
    /// Creates a loader of a checkpoint's tensors for a device; `done_bytes` of `total_bytes` have been
    /// loaded before.
    pub(crate) fn new(
        checkpoint: &'a Checkpoint,
        device: Device,
        [done_bytes, total_bytes]: [u64; 2],
        report: &'a mut dyn FnMut(LoadProgress),
    ) -> Result<Self> {
        let progress = LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes };
        let (arena, burn_device) = (Arena::default(), device.burn()?);
        Ok(Self { checkpoint, device, burn_device, arena, report, progress, weight_bytes: 0 })
    }

    /// The device of the weights.
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// The device of the weights, as a burn device.
    pub(crate) fn burn_device(&self) -> &BurnDevice {
        &self.burn_device
    }

    /// Returns the first of several prefixes with a tensor `name`: published checkpoints and those of later
    /// releases of transformers spell the same module in different ways.
    ///
    /// # Errors
    /// When no tensor is found.
    pub(crate) fn prefix(&self, prefixes: &[&'static str], name: &str) -> Result<&'static str> {
        let found = prefixes.iter().find(|prefix| self.checkpoint.contains(&format!("{prefix}{name}")));
        let missing = || FormatError::MissingTensor {
            location: self.checkpoint.location().to_owned(),
            tensor: format!("{}{name}", prefixes.first().copied().unwrap_or_default()),
        };
        Ok(found.copied().ok_or_else(missing)?)
    }

    /// Loads a matrix `[rows, cols]`. The dimensions of a stored convolution after the first are its columns.
    pub(crate) fn matrix(&mut self, name: &str, [rows, cols]: [usize; 2]) -> Result<Weight> {
        let stored = self.checkpoint.shape(name).unwrap_or_default();
        let elements = |shape: &[usize]| shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let is_flat = stored.first() == Some(&rows) && elements(&stored[1..]) == Some(cols);
        let shape = if is_flat && stored.len() > 2 { stored.to_vec() } else { vec![rows, cols] };
        let location = self.checkpoint.locate(name);
        self.checkpoint.check(&location, &shape)?;
        let stored = self.checkpoint.rows_of(&location, cols)?;
        self.pack(&location, &stored, [rows, cols])
    }

    /// Loads the transpose of a stored matrix `[cols, rows]`.
    pub(crate) fn transposed(&mut self, name: &str, [rows, cols]: [usize; 2]) -> Result<Weight> {
        self.checkpoint.check(&TensorLocation::whole(name), &[cols, rows])?;
        let location = TensorLocation::columns(name, [1, cols, rows], 1, 0);
        let stored = self.checkpoint.rows(&location)?;
        self.pack(&location, &stored, [rows, cols])
    }

    /// Loads a vector.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Result<Tensor<1>> {
        let values = self.values(name, len)?;
        Ok(from_host(values, [len], &self.burn_device))
    }

    /// Loads the elements of a vector to host memory.
    pub(crate) fn values(&mut self, name: &str, len: usize) -> Result<Vec<f32>> {
        self.array(name, &[len])
    }

    /// Loads the elements of a tensor to host memory.
    pub(crate) fn array(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let location = self.checkpoint.locate(name);
        self.checkpoint.check(&location, shape)?;
        let values = self.checkpoint.vector(&location)?;
        let parts: Vec<_> = location.slices().iter().map(|slice| slice.tensor.as_str()).collect();
        self.account(&parts, size_of_val(values.as_slice()));
        Ok(values)
    }

    /// Counts an unneeded tensor as loaded.
    pub(crate) fn skip(&mut self, name: &str) {
        self.account(&[name], 0);
    }

    /// Error for a value of a tensor.
    pub(crate) fn invalid_value(&self, tensor: &str, value: f32, expected: String) -> Error {
        let (file, tensor) = (self.checkpoint.location().to_owned(), tensor.to_owned());
        Error::TensorValue { file, tensor, value, expected }
    }

    fn pack(
        &mut self,
        location: &TensorLocation,
        stored: &StoredRows<'_>,
        [rows, cols]: [usize; 2],
    ) -> Result<Weight> {
        let unsupported = || FormatError::TensorDtype {
            file: self.checkpoint.location().to_owned(),
            tensor: location.name().to_owned(),
            got: stored.ty().to_string(),
            supported: LOADABLE.to_owned(),
        };
        let format = stored.ty().format().ok_or_else(unsupported)?.for_rows_of(cols);
        let packed = pack_dense(stored, location.name(), (format, rows, cols), &self.arena)?;
        let weight = Weight::place(self.device, packed)
            .map_err(|source| Error::Weight { tensor: location.name().to_owned(), source })?;
        if self.device == Device::Gpu {
            self.arena = Arena::default();
        }
        let parts: Vec<_> = location.slices().iter().map(|slice| slice.tensor.as_str()).collect();
        self.account(&parts, weight.bytes());
        Ok(weight)
    }

    /// Counts tensors that were loaded.
    fn account(&mut self, tensors: &[&str], bytes: usize) {
        self.weight_bytes += bytes as u64;
        let stored = tensors.iter().map(|name| self.checkpoint.tensor_bytes(name) as u64);
        self.progress.done_bytes += stored.sum::<u64>();
        (self.report)(self.progress);
    }
}
