//! Brings the tensors of a checkpoint to a device, one after another.

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{Arena, PackedMatrix, Weight, from_host};

use super::names::Param;
use super::pack::{pack_dense, pack_stored};
use super::{Blocks, Checkpoint};
use crate::architectures::Architecture;
use crate::model_folder::{LoadPhase, LoadProgress};
use crate::spec::{DecoderSpec, OutputHead};
use crate::{Device, Error, FloatDtype, Result, WeightFormat};

/// How the matrices stand in the files.
#[derive(Clone, Copy)]
pub(crate) enum Storage {
    /// As floats, to be packed in this format; `None` keeps the file's.
    Dense(Option<WeightFormat>),
    /// As quants and scales of this format.
    Blocks(WeightFormat),
}

/// Hands out the parameters of one decoder. All are checked before the first is loaded.
pub(crate) struct WeightLoader<'a> {
    checkpoint: &'a Checkpoint,
    weight_name: fn(Param) -> String,
    device: Device,
    burn_device: BurnDevice,
    storage: Storage,
    /// Where the matrices of CPU devices lie. Those of a GPU are there only until they are uploaded.
    arena: Arena,
    progress: &'a mut dyn FnMut(LoadProgress),
    done_bytes: u64,
    total_bytes: u64,
    /// Elements handed out.
    pub(crate) parameters: u64,
    /// Bytes that they take on the device.
    pub(crate) weight_bytes: u64,
}

impl<'a> WeightLoader<'a> {
    /// Checks that the checkpoint holds exactly the parameters of `spec` (and what the architecture ignores).
    pub(crate) fn new(
        checkpoint: &'a Checkpoint,
        architecture: &Architecture,
        spec: &DecoderSpec,
        device: Device,
        storage: Storage,
        progress: &'a mut dyn FnMut(LoadProgress),
    ) -> Result<Self> {
        let weight_name = architecture.weight_name;
        let mut names = std::collections::HashSet::new();
        for (param, shape) in spec.params() {
            let name = weight_name(param);
            match storage.blocks(&name, &shape) {
                Some(blocks) => {
                    blocks.check(checkpoint)?;
                    names.extend([blocks.quants.0, blocks.scales.0]);
                }
                None => {
                    checkpoint.check(&name, &shape)?;
                    names.insert(name);
                }
            }
        }
        let total_bytes = names.iter().map(|name| checkpoint.tensor_bytes(name) as u64).sum();
        let tied_head = (spec.output_head == OutputHead::Tied).then(|| weight_name(Param::OutputHead));
        checkpoint.check_no_others(architecture.model_types[0], |name| {
            names.contains(name)
                || tied_head.as_deref() == Some(name)
                || architecture.ignored_suffixes.iter().any(|suffix| name.ends_with(suffix))
        })?;
        let burn_device = device.burn()?;
        let (done_bytes, parameters, weight_bytes) = (0, 0, 0);
        Ok(Self {
            checkpoint,
            weight_name,
            device,
            burn_device,
            storage,
            arena: Arena::default(),
            progress,
            done_bytes,
            total_bytes,
            parameters,
            weight_bytes,
        })
    }

    /// The device of the weights, as burn knows it.
    pub(crate) fn burn_device(&self) -> &BurnDevice {
        &self.burn_device
    }

    /// A matrix `[rows, cols]` in the format that was asked for, packed straight from the file's bytes.
    pub(crate) fn matrix(&mut self, param: Param, rows: usize, cols: usize) -> Result<Weight> {
        let name = (self.weight_name)(param);
        let packed = match (self.storage, self.storage.blocks(&name, &[rows, cols])) {
            (Storage::Blocks(format), Some(blocks)) => {
                let packed = pack_stored(self.checkpoint, &blocks, (format, rows, cols), &self.arena)?;
                self.account(&blocks.scales.0, 0, 0);
                packed
            }
            (Storage::Dense(Some(format)) | Storage::Blocks(format), _) => {
                self.dense(&name, format, rows, cols)?
            }
            (Storage::Dense(None), _) => {
                let format = match self.checkpoint.float_dtype(&name)? {
                    FloatDtype::F32 => WeightFormat::F32,
                    FloatDtype::F16 => WeightFormat::F16,
                    FloatDtype::Bf16 => WeightFormat::Bf16,
                };
                self.dense(&name, format, rows, cols)?
            }
        };
        let weight = Weight::place(self.device, packed)
            .map_err(|source| Error::Weight { tensor: name.clone(), source })?;
        if self.device == Device::Gpu {
            self.arena = Arena::default();
        }
        self.account(&name, rows * cols, weight.bytes());
        Ok(weight)
    }

    fn dense(&self, name: &str, format: WeightFormat, rows: usize, cols: usize) -> Result<PackedMatrix> {
        pack_dense(self.checkpoint, name, (format, rows, cols), &self.arena)
    }

    /// A vector in f32: a norm's weight or a bias.
    pub(crate) fn vector(&mut self, param: Param, len: usize) -> Result<Tensor<1>> {
        let values = self.values(param, len)?;
        Ok(from_host(values, [len], &self.burn_device))
    }

    /// The elements of a vector, in host memory.
    pub(crate) fn values(&mut self, param: Param, len: usize) -> Result<Vec<f32>> {
        let name = (self.weight_name)(param);
        let mut values = vec![0.0; len];
        self.checkpoint.source(&name)?.read(0, &mut values);
        self.account(&name, len, size_of_val(values.as_slice()));
        Ok(values)
    }

    fn account(&mut self, name: &str, elements: usize, bytes: usize) {
        self.checkpoint.release(name);
        self.parameters += elements as u64;
        self.weight_bytes += bytes as u64;
        self.done_bytes += self.checkpoint.tensor_bytes(name) as u64;
        let (done_bytes, total_bytes) = (self.done_bytes, self.total_bytes);
        (self.progress)(LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes });
    }
}

impl Storage {
    /// The two tensors in place of a matrix, where it is stored so.
    fn blocks(self, name: &str, shape: &[usize]) -> Option<Blocks> {
        match (self, shape) {
            (Self::Blocks(format), &[rows, cols]) => Blocks::of(name, format, rows, cols),
            _ => None,
        }
    }
}
