//! Loading of a checkpoint's tensors to a device, one after another.

mod adapter;
mod checksum;
mod inputs;
mod lora;
mod lora_config;
mod low_rank;
mod pack;
mod progress;

use self::adapter::AdaptedLinear;
pub(crate) use self::adapter::ModelShape;
pub use self::adapter::{Adapter, AdapterLoader};
pub(crate) use self::checksum::checksum;
pub(crate) use self::inputs::InputRecords;
pub(crate) use self::lora::AdapterFolder;
pub use self::lora::AdapterInfo;
pub(crate) use self::low_rank::{AdaptedRows, LowRank};

use std::collections::{HashMap, HashSet};

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_formats::Error as FormatError;
use lm_kernels::{Arena, Device, PackedMatrix, Weight, WeightFormat, from_host};

use self::pack::pack_stored;
use crate::architectures::Architecture;
use crate::checkpoint::{Blocks, Checkpoint, LOADABLE, Param, TensorLocation};
use crate::error::{Error, Result};
use crate::spec::DecoderSpec;

pub(crate) use self::pack::{pack_dense, pack_weighted};
pub use self::progress::{LoadPhase, LoadProgress};

/// Stored form of the matrices.
#[derive(Clone, Copy)]
pub(crate) enum Storage {
    /// Floats, to be packed in this format; `None` keeps the file's format.
    Dense(Option<WeightFormat>),
    /// Quants and scales of this format.
    Blocks(WeightFormat),
}

/// Loader of one decoder's parameters. All are checked before the first is loaded.
pub(crate) struct WeightLoader<'a> {
    checkpoint: &'a Checkpoint,
    /// Location of each parameter; for one that is stored as quants and scales, the name of the quants.
    locations: HashMap<Param, TensorLocation>,
    device: Device,
    burn_device: BurnDevice,
    storage: Storage,
    /// Locations of the layers' matrices in a float checkpoint, as adapters name them.
    float_locations: HashMap<Param, TensorLocation>,
    /// Projections loaded so far that adapters may update.
    linears: Vec<AdaptedLinear>,
    /// Memory of the matrices of CPU devices. Matrices of a GPU are in it only until they are uploaded.
    arena: Arena,
    /// Records of the inputs of the matrices, if requested.
    inputs: Option<&'a mut InputRecords>,
    progress: &'a mut dyn FnMut(LoadProgress),
    done_bytes: u64,
    total_bytes: u64,
    /// Number of elements loaded.
    pub(crate) parameters: u64,
    /// Their size on the device in bytes.
    pub(crate) weight_bytes: u64,
}

impl<'a> WeightLoader<'a> {
    /// Checks that the checkpoint contains exactly the parameters of `spec` (and tensors that the
    /// architecture ignores), and that each adapter has pairs for matrices of its layers only.
    pub(crate) fn new(
        checkpoint: &'a Checkpoint,
        architecture: &Architecture,
        spec: &DecoderSpec,
        device: Device,
        storage: Storage,
        adapters: &[AdapterFolder],
        progress: &'a mut dyn FnMut(LoadProgress),
    ) -> Result<Self> {
        let (mut locations, mut names) = (HashMap::new(), HashSet::new());
        for (param, shape) in spec.params() {
            let name = (architecture.weight_name)(param);
            let location = match storage {
                Storage::Blocks(_) => TensorLocation::whole(&name),
                Storage::Dense(_) => architecture.location(spec, param, checkpoint),
            };
            match storage.blocks(param, &name, &shape) {
                Some(blocks) => {
                    blocks.check(checkpoint)?;
                    names.extend([blocks.quants.0, blocks.scales.0]);
                }
                None => {
                    checkpoint.check(&location, &shape)?;
                    names.extend(location.slices().iter().map(|slice| slice.tensor.clone()));
                }
            }
            locations.insert(param, location);
        }
        let total_bytes = names.iter().map(|name| checkpoint.tensor_bytes(name) as u64).sum();
        let unused: HashSet<_> = spec.unused_params().into_iter().map(architecture.weight_name).collect();
        checkpoint.check_no_others(architecture.model_types[0], |name| {
            names.contains(name) || unused.contains(name) || architecture.ignores(name)
        })?;
        let matrices = matrices(spec, architecture);
        for adapter in adapters {
            let of_layers = matrices.iter().map(|(_, location, shape)| (location, *shape));
            adapter.check(architecture.model_types[0], of_layers)?;
        }
        let float_locations = matrices.into_iter().map(|(param, location, _)| (param, location)).collect();
        let burn_device = device.burn()?;
        let (done_bytes, parameters, weight_bytes) = (0, 0, 0);
        Ok(Self {
            checkpoint,
            locations,
            device,
            burn_device,
            storage,
            float_locations,
            linears: Vec::new(),
            arena: Arena::default(),
            inputs: None,
            progress,
            done_bytes,
            total_bytes,
            parameters,
            weight_bytes,
        })
    }

    /// Records the inputs of all further matrices, except those that keep floats in every format.
    pub(crate) fn record_inputs(&mut self, records: &'a mut InputRecords) {
        self.inputs = Some(records);
    }

    /// The weights' device, as a burn device.
    pub(crate) fn burn_device(&self) -> &BurnDevice {
        &self.burn_device
    }

    /// Loads a matrix `[rows, cols]` in the requested format, packed straight from the file's bytes.
    pub(crate) fn matrix(&mut self, param: Param, rows: usize, cols: usize) -> Result<Weight> {
        self.matrices(param, 1, [rows, cols])
    }

    /// [`matrix`](Self::matrix) for several matrices of one shape, stacked: `[count * rows, cols]`.
    pub(crate) fn matrices(
        &mut self,
        param: Param,
        count: usize,
        [rows, cols]: [usize; 2],
    ) -> Result<Weight> {
        let weight = self.stored_matrix(param, count * rows, cols)?;
        Ok(match &mut self.inputs {
            None => weight,
            Some(records) => weight.with_inputs(records.add(param, count, cols)),
        })
    }

    fn stored_matrix(&mut self, param: Param, rows: usize, cols: usize) -> Result<Weight> {
        let location = self.location(param).clone();
        let shape = [rows, cols];
        let (packed, stored_bytes) = match (self.storage, self.storage.blocks(param, location.name(), &shape))
        {
            (Storage::Blocks(format), Some(blocks)) => {
                let packed = pack_stored(self.checkpoint, &blocks, (format, rows, cols), &self.arena)?;
                let [quants, scales] = [&blocks.quants.0, &blocks.scales.0];
                (packed, self.checkpoint.tensor_bytes(quants) + self.checkpoint.tensor_bytes(scales))
            }
            (Storage::Dense(format), _) => self.dense(&location, format, shape)?,
            (Storage::Blocks(format), _) => self.dense(&location, Some(format), shape)?,
        };
        self.placed(&location, packed, stored_bytes)
    }

    /// Loads a matrix `[rows, cols]` in the float format of the file, or the nearest lossless one.
    pub(crate) fn float_matrix(&mut self, param: Param, rows: usize, cols: usize) -> Result<Weight> {
        let location = self.location(param).clone();
        let ty = self.checkpoint.rows(&location)?.ty();
        let format = ty.format().filter(|_| ty.float().is_some()).unwrap_or(WeightFormat::F32);
        let (packed, stored_bytes) = self.dense(&location, Some(format), [rows, cols])?;
        self.placed(&location, packed, stored_bytes)
    }

    /// Moves a packed matrix to the device.
    fn placed(
        &mut self,
        location: &TensorLocation,
        packed: PackedMatrix,
        stored_bytes: usize,
    ) -> Result<Weight> {
        let elements = packed.rows() * packed.cols();
        let weight = Weight::place(self.device, packed)
            .map_err(|source| Error::Weight { tensor: location.name().to_owned(), source })?;
        if self.device == Device::Gpu {
            self.arena = Arena::default();
        }
        self.account(elements, weight.bytes(), stored_bytes);
        Ok(weight)
    }

    /// Packs a matrix that is stored as floats; returns it with its size in the file in bytes.
    fn dense(
        &self,
        location: &TensorLocation,
        format: Option<WeightFormat>,
        [rows, cols]: [usize; 2],
    ) -> Result<(PackedMatrix, usize)> {
        let stored = self.checkpoint.rows(location)?;
        let format = format.or(stored.ty().format()).ok_or_else(|| FormatError::TensorDtype {
            file: self.checkpoint.location().to_owned(),
            tensor: location.name().to_owned(),
            got: stored.ty().to_string(),
            supported: LOADABLE.to_owned(),
        })?;
        let format = format.for_rows_of(cols);
        let packed = pack_dense(&stored, location.name(), (format, rows, cols), &self.arena)?;
        Ok((packed, stored.bytes()))
    }

    fn location(&self, param: Param) -> &TensorLocation {
        self.locations.get(&param).expect("parameters are those of the spec that the loader was made for")
    }

    /// Registers the projection of a layer for updates by adapters.
    pub(crate) fn allow_adapters(&mut self, param: Param, shape: [usize; 2]) {
        let location = self.float_locations.remove(&param);
        self.linears.extend(location.map(|location| AdaptedLinear { param, location, shape }));
    }

    /// Returns the loader of adapters for this model, once everything has been loaded.
    pub(crate) fn adapter_loader(&mut self, architecture: &str) -> AdapterLoader {
        AdapterLoader::new(architecture, self.device, std::mem::take(&mut self.linears))
    }

    /// Loads a vector in f32: a norm's weight or a bias.
    pub(crate) fn vector(&mut self, param: Param, len: usize) -> Result<Tensor<1>> {
        let values = self.values(param, len)?;
        Ok(from_host(values, [len], &self.burn_device))
    }

    /// Loads the elements of a vector to host memory.
    pub(crate) fn values(&mut self, param: Param, len: usize) -> Result<Vec<f32>> {
        let location = self.location(param);
        let values = self.checkpoint.vector(location)?;
        let stored_bytes = self.checkpoint.elements(location)?.bytes();
        self.account(len, size_of_val(values.as_slice()), stored_bytes);
        Ok(values)
    }

    fn account(&mut self, elements: usize, bytes: usize, stored_bytes: usize) {
        self.parameters += elements as u64;
        self.weight_bytes += bytes as u64;
        self.done_bytes += stored_bytes as u64;
        let (done_bytes, total_bytes) = (self.done_bytes, self.total_bytes);
        (self.progress)(LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes });
    }
}

/// Locations and shapes of the layers' matrices in a float checkpoint.
fn matrices(spec: &DecoderSpec, architecture: &Architecture) -> Vec<(Param, TensorLocation, [usize; 2])> {
    let of_layer = |(param, shape): (Param, Vec<usize>)| match (param, &shape[..]) {
        (Param::Layer(..), &[rows, cols]) => {
            Some((param, architecture.published_location(spec, param), [rows, cols]))
        }
        _ => None,
    };
    spec.params().into_iter().filter_map(of_layer).collect()
}

impl Storage {
    /// Returns the two tensors that store a matrix, if it is stored quantised.
    fn blocks(self, param: Param, name: &str, shape: &[usize]) -> Option<Blocks> {
        match (self, shape) {
            (Self::Blocks(format), &[rows, cols]) if !param.keeps_floats() => {
                Blocks::of(name, format, rows, cols)
            }
            _ => None,
        }
    }
}
