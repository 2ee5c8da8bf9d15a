//! Loading of a checkpoint's tensors to a device, one after another.

mod adapter;
mod checksum;
mod inputs;
mod lora;
mod lora_config;
mod low_rank;
mod pack;
mod progress;
mod tensor_reader;

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
use lm_kernels::{Device, Weight, WeightFormat, from_host};

use crate::architectures::Architecture;
use crate::checkpoint::{Blocks, Checkpoint, Param, TensorLocation};
use crate::error::Result;
use crate::spec::DecoderSpec;

pub(crate) use self::pack::{dequantize, pack_dense, pack_weighted};
pub use self::progress::{LoadPhase, LoadProgress};
pub(crate) use self::tensor_reader::TensorReader;

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
    reader: TensorReader<'a>,
    /// Location of each parameter; for one that is stored as quants and scales, the name of the quants.
    locations: HashMap<Param, TensorLocation>,
    storage: Storage,
    /// Locations of the layers' matrices in a float checkpoint, as adapters name them.
    float_locations: HashMap<Param, TensorLocation>,
    /// Projections loaded so far that adapters may update.
    linears: Vec<AdaptedLinear>,
    /// Formats of the matrices loaded so far, each with its number of elements, without matrices that keep
    /// floats in every format.
    formats: Vec<(WeightFormat, usize)>,
    /// Records of the inputs of the matrices, if requested.
    inputs: Option<&'a mut InputRecords>,
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
            names.contains(name) || unused.contains(name) || architecture.ignores(name, spec.layers.len())
        })?;
        let matrices = matrices(spec, architecture);
        for adapter in adapters {
            let of_layers = matrices.iter().map(|(_, location, shape)| (location, *shape));
            adapter.check(architecture.model_types[0], of_layers)?;
        }
        let float_locations = matrices.into_iter().map(|(param, location, _)| (param, location)).collect();
        let reader = TensorReader::new(checkpoint, device, [0, total_bytes], progress)?;
        let (linears, formats) = (Vec::new(), Vec::new());
        Ok(Self { reader, locations, storage, float_locations, linears, formats, inputs: None })
    }

    /// Records the inputs of all further matrices, except those that keep floats in every format.
    pub(crate) fn record_inputs(&mut self, records: &'a mut InputRecords) {
        self.inputs = Some(records);
    }

    /// The weights' device, as a burn device.
    pub(crate) fn burn_device(&self) -> &BurnDevice {
        self.reader.burn_device()
    }

    /// Number of elements loaded.
    pub(crate) fn parameters(&self) -> u64 {
        self.reader.parameters
    }

    /// Their size on the device in bytes.
    pub(crate) fn weight_bytes(&self) -> u64 {
        self.reader.weight_bytes
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
        let weight = self.stored_matrix(param, [count * rows, cols])?;
        self.count_format(weight.format(), count * rows * cols);
        Ok(match &mut self.inputs {
            None => weight,
            Some(records) => weight.with_inputs(records.add(param, count, cols)),
        })
    }

    fn count_format(&mut self, format: WeightFormat, elements: usize) {
        match self.formats.iter_mut().find(|row| row.0 == format) {
            Some(row) => row.1 += elements,
            None => self.formats.push((format, elements)),
        }
    }

    /// Formats of the matrices loaded so far, that of most weights first.
    pub(crate) fn formats(&self) -> Vec<WeightFormat> {
        let mut formats = self.formats.clone();
        formats.sort_by_key(|row| std::cmp::Reverse(row.1));
        formats.into_iter().map(|row| row.0).collect()
    }

    fn stored_matrix(&mut self, param: Param, shape: [usize; 2]) -> Result<Weight> {
        let location = self.location(param).clone();
        let format = match (self.storage, self.storage.blocks(param, location.name(), &shape)) {
            (Storage::Blocks(format), Some(blocks)) => {
                return self.reader.read_blocks(&blocks, format, shape);
            }
            (Storage::Dense(format), _) => format,
            (Storage::Blocks(format), _) => Some(format),
        };
        let stored = self.reader.checkpoint().rows(&location)?;
        self.reader.read_rows(&location, &stored, format, shape)
    }

    /// Loads a matrix `[rows, cols]` in the float format of the file, or the nearest lossless one.
    pub(crate) fn float_matrix(&mut self, param: Param, rows: usize, cols: usize) -> Result<Weight> {
        let location = self.location(param).clone();
        let stored = self.reader.checkpoint().rows_of(&location, cols)?;
        let ty = stored.ty();
        let format = ty.format().filter(|_| ty.float().is_some()).unwrap_or(WeightFormat::F32);
        self.reader.read_rows(&location, &stored, Some(format), [rows, cols])
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
        AdapterLoader::new(architecture, self.reader.device(), std::mem::take(&mut self.linears))
    }

    /// Loads a vector in f32: a norm's weight or a bias.
    pub(crate) fn vector(&mut self, param: Param, len: usize) -> Result<Tensor<1>> {
        let values = self.values(param, len)?;
        Ok(from_host(values, [len], self.burn_device()))
    }

    /// Loads the elements of a vector to host memory.
    pub(crate) fn values(&mut self, param: Param, len: usize) -> Result<Vec<f32>> {
        let location = self.location(param).clone();
        let values = self.reader.read_values(&location)?;
        debug_assert_eq!(values.len(), len, "the spec has the shape of each parameter");
        Ok(values)
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
