//! Reading of a checkpoint's tensors to a device, one after another.

use burn::tensor::Device as BurnDevice;
use lm_formats::Error as FormatError;
use lm_kernels::{Arena, Device, PackedMatrix, Weight, WeightFormat};

use super::pack::{pack_dense, pack_stored};
use super::{LoadPhase, LoadProgress};
use crate::checkpoint::{Blocks, Checkpoint, LOADABLE, StoredRows, TensorLocation};
use crate::error::{Error, Result};

/// Reader of a checkpoint's tensors to a device, which reports its progress.
pub(crate) struct TensorReader<'a> {
    checkpoint: &'a Checkpoint,
    device: Device,
    burn_device: BurnDevice,
    /// Memory of the matrices of CPU devices. Matrices of a GPU are in it only until they are uploaded.
    arena: Arena,
    report: &'a mut dyn FnMut(LoadProgress),
    progress: LoadProgress,
    /// Number of elements read.
    pub(crate) parameters: u64,
    /// Their size on the device in bytes.
    pub(crate) weight_bytes: u64,
}

impl<'a> TensorReader<'a> {
    /// Creates a reader; `done_bytes` of `total_bytes` have been read before.
    pub(crate) fn new(
        checkpoint: &'a Checkpoint,
        device: Device,
        [done_bytes, total_bytes]: [u64; 2],
        report: &'a mut dyn FnMut(LoadProgress),
    ) -> Result<Self> {
        let progress = LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes };
        let (arena, burn_device) = (Arena::default(), device.burn()?);
        Ok(Self { checkpoint, device, burn_device, arena, report, progress, parameters: 0, weight_bytes: 0 })
    }

    pub(crate) fn checkpoint(&self) -> &'a Checkpoint {
        self.checkpoint
    }

    /// The device of the weights.
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// The device of the weights, as a burn device.
    pub(crate) fn burn_device(&self) -> &BurnDevice {
        &self.burn_device
    }

    /// Reads a matrix `[rows, cols]` of floats or of ggml's blocks; without a `format`, in that of the file.
    pub(crate) fn read_rows(
        &mut self,
        location: &TensorLocation,
        stored: &StoredRows<'_>,
        format: Option<WeightFormat>,
        [rows, cols]: [usize; 2],
    ) -> Result<Weight> {
        let format = format.or(stored.ty().format()).ok_or_else(|| FormatError::TensorDtype {
            file: self.checkpoint.location().to_owned(),
            tensor: location.name().to_owned(),
            got: stored.ty().to_string(),
            supported: LOADABLE.to_owned(),
        })?;
        let shape = (format.for_rows_of(cols), rows, cols);
        let packed = pack_dense(stored, location.name(), shape, &self.arena)?;
        self.place(location.name(), packed, stored.bytes())
    }

    /// Reads a matrix that is stored as quants and scales of the format.
    pub(super) fn read_blocks(
        &mut self,
        blocks: &Blocks,
        format: WeightFormat,
        [rows, cols]: [usize; 2],
    ) -> Result<Weight> {
        let packed = pack_stored(self.checkpoint, blocks, (format, rows, cols), &self.arena)?;
        let [quants, scales] = [&blocks.quants.0, &blocks.scales.0];
        let stored_bytes = self.checkpoint.tensor_bytes(quants) + self.checkpoint.tensor_bytes(scales);
        self.place(quants, packed, stored_bytes)
    }

    /// Reads the elements of a tensor to host memory.
    pub(crate) fn read_values(&mut self, location: &TensorLocation) -> Result<Vec<f32>> {
        let values = self.checkpoint.vector(location)?;
        let stored_bytes = self.checkpoint.elements(location)?.bytes();
        self.count(values.len(), size_of_val(values.as_slice()), stored_bytes);
        Ok(values)
    }

    /// Counts a tensor that is not needed as read.
    pub(crate) fn skip(&mut self, name: &str) {
        self.count(0, 0, self.checkpoint.tensor_bytes(name));
    }

    /// Moves a packed matrix to the device.
    fn place(&mut self, name: &str, packed: PackedMatrix, stored_bytes: usize) -> Result<Weight> {
        let elements = packed.rows() * packed.cols();
        let weight = Weight::place(self.device, packed)
            .map_err(|source| Error::Weight { tensor: name.to_owned(), source })?;
        if self.device == Device::Gpu {
            self.arena = Arena::default();
        }
        self.count(elements, weight.bytes(), stored_bytes);
        Ok(weight)
    }

    fn count(&mut self, elements: usize, bytes: usize, stored_bytes: usize) {
        self.parameters += elements as u64;
        self.weight_bytes += bytes as u64;
        self.progress.done_bytes += stored_bytes as u64;
        (self.report)(self.progress);
    }
}
