//! LoRA adapters: pairs of low-rank matrices parallel to a model's weights, chosen for each sequence.
//!
//! Source: LoRA: Low-Rank Adaptation of Large Language Models (arXiv 2106.09685), in the files of Hugging
//! Face PEFT.

use std::collections::HashSet;
use std::path::Path;

use lm_formats::{Directory, ModelFiles, parse_json, read_required};
use lm_kernels::{Arena, Device, Weight, WeightFormat};

use super::lora_config::{ADAPTER_CONFIG, AdapterConfig};
use super::{LowRank, checksum, pack_dense};
use crate::checkpoint::{ADAPTER_PREFIX, Checkpoint, TensorLocation};
use crate::error::{Error, Result};

const ADAPTER_WEIGHTS: &str = "adapter_model.safetensors";
const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";

/// Facts about an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    /// Name of its folder.
    pub name: String,
    /// Number of its parameters.
    pub parameters: u64,
    /// Checksum of its config and weights.
    pub checksum: u32,
}

/// Files of an adapter.
#[derive(Debug)]
pub(crate) struct AdapterFolder {
    name: String,
    config: AdapterConfig,
    checkpoint: Checkpoint,
    checksum: u32,
}

impl AdapterFolder {
    /// Reads the config and the header of a PEFT folder.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let files = Directory::open(path)?;
        Self::read(&files, files.name())
    }

    /// Reads the adapter in the folder of a model, if any.
    pub(crate) fn of_model(files: &dyn ModelFiles, name: &str) -> Result<Option<Self>> {
        let found = files.read(ADAPTER_CONFIG)?.is_some();
        found.then(|| Self::read(files, name.to_owned())).transpose()
    }

    fn read(files: &dyn ModelFiles, name: String) -> Result<Self> {
        let place = |file: &str| Path::new(&files.location()).join(file).display().to_string();
        let config_bytes = read_required(files, ADAPTER_CONFIG)?;
        let config: AdapterConfig = parse_json(&place(ADAPTER_CONFIG), &config_bytes)?;
        config.check(&place(ADAPTER_CONFIG))?;
        let bytes = read_required(files, ADAPTER_WEIGHTS)?;
        let [first, second] = [&*config_bytes, &*bytes].map(|bytes| checksum(bytes, |_| {}));
        let sum = first.rotate_left(1) ^ second;
        let checkpoint = Checkpoint::of_file(&place(ADAPTER_WEIGHTS), bytes)?;
        Ok(Self { name, config, checkpoint, checksum: (sum ^ (sum >> 32)) as u32 })
    }

    /// Checks that each tensor is half of a pair for one of `matrices`, given as location, outputs and
    /// inputs.
    pub(crate) fn check<'a>(
        &self,
        architecture: &str,
        matrices: impl IntoIterator<Item = (&'a TensorLocation, [usize; 2])>,
    ) -> Result<()> {
        let mut known = HashSet::new();
        for (location, [outputs, inputs]) in matrices {
            let Some(pair) = self.pair(location) else { continue };
            self.checkpoint.check(&pair.a, &[pair.rank, inputs])?;
            self.checkpoint.check(&pair.b, &[outputs, pair.rank])?;
            known.extend([pair.a, pair.b].map(|half| half.name().to_owned()));
        }
        self.checkpoint.check_no_others(architecture, |name| known.contains(name))
    }

    /// Returns the pair for a matrix, if any.
    pub(crate) fn low_rank(
        &self,
        location: &TensorLocation,
        [outputs, inputs]: [usize; 2],
        device: Device,
    ) -> Result<Option<LowRank>> {
        let Some(Pair { a, b, rank, scale }) = self.pair(location) else { return Ok(None) };
        let a = self.matrix(&a, [rank, inputs], device)?;
        let b = self.matrix(&b, [outputs, rank], device)?;
        Ok(Some(LowRank::new(a, b, scale)))
    }

    pub(crate) fn info(&self) -> AdapterInfo {
        let elements = |shape: &[usize]| shape.iter().map(|&n| n as u64).product::<u64>();
        let parameters = self.checkpoint.infos().map(|tensor| elements(&tensor.shape)).sum();
        AdapterInfo { name: self.name.clone(), parameters, checksum: self.checksum }
    }

    /// Returns the adapter's pair for a matrix. If the matrix is a part of a tensor, `B` has the same rows; a
    /// matrix of several tensors has no pair.
    fn pair(&self, location: &TensorLocation) -> Option<Pair> {
        let [slice] = location.slices() else { return None };
        let (module, [a, b]) = names(&slice.tensor);
        let any = self.checkpoint.contains(&a) || self.checkpoint.contains(&b);
        any.then(|| Pair {
            a: TensorLocation::whole(a),
            b: slice.clone().in_tensor(b),
            rank: self.config.rank(module),
            scale: self.config.scale(module),
        })
    }

    fn matrix(&self, location: &TensorLocation, [rows, cols]: [usize; 2], device: Device) -> Result<Weight> {
        let stored = self.checkpoint.rows(location)?;
        let format = stored.ty().format().unwrap_or(WeightFormat::F32);
        let packed = pack_dense(&stored, location.name(), (format, rows, cols), &Arena::default())?;
        Weight::place(device, packed)
            .map_err(|source| Error::Weight { tensor: location.name().to_owned(), source })
    }
}

/// Low-rank pair of a matrix.
struct Pair {
    a: TensorLocation,
    b: TensorLocation,
    rank: usize,
    scale: f32,
}

/// Returns the module that a tensor belongs to, and the names of its pair.
fn names(tensor: &str) -> (&str, [String; 2]) {
    let module = tensor.strip_suffix(".weight").unwrap_or(tensor);
    (module, [A, B].map(|half| format!("{ADAPTER_PREFIX}{module}{half}")))
}
