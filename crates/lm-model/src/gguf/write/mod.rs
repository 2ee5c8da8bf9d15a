//! Writing of a model as one GGUF file: the inverse of the reading tables.
//!
//! The header is built first and read back like any file. Its spec must equal the folder's; for tensors whose row order or values
//! differ in files, the reader determines the transformation.

mod check;
mod key_types;
mod metadata;
mod rows;
mod settings;
mod tensors;
mod texts;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

#[cfg(test)]
pub(super) use self::key_types::is_known;
pub(crate) use self::metadata::{Entries, Written};
use self::rows::write_tensor;
pub(super) use self::settings::Settings;
use self::settings::settings;
use self::tensors::{Contents, NewTensor, plan};
pub(crate) use self::texts::Texts;
use super::model::Shard;
use super::{DEFAULT_ALIGNMENT, GgufFile, GgufModel, architectures};
use crate::architectures::Architecture;
use crate::config::{CONFIG_FILE, ModelConfig};
use crate::model_folder::{FileBytes, LoadPhase, LoadProgress, io_error, parse_json, read_required};
use crate::spec::DecoderSpec;
use crate::weights::Checkpoint;
use crate::{Error, Result, Tokenizer, WeightFormat};

/// GGUF version that is written.
const VERSION: u32 = 3;
const ALIGNMENT: &str = "general.alignment";
const ARCHITECTURE: &str = "general.architecture";
const FILE_TYPE: &str = "general.file_type";
const QUANTIZATION: &str = "general.quantization_version";
/// Version of the block types, under [`QUANTIZATION`].
const QUANTIZATION_VERSION: u32 = 2;
/// Ids of formats under [`FILE_TYPE`]: the format of most matrices.
///
/// # Source
/// `LlamaFileType` of the package `gguf` 0.19.
const FILE_TYPES: &[(&str, u32)] = &[("bf16", 32), ("f16", 1), ("f32", 0), ("q4_0", 2), ("q8_0", 7)];

/// File type id of a float model with MXFP4 experts.
const MXFP4_EXPERTS: u32 = 38;

/// Model to write as a file.
pub(crate) struct NewFile<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) architecture: &'static Architecture,
    pub(crate) spec: &'a DecoderSpec,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) tokenizer: &'a Tokenizer,
    /// Target format of its matrices.
    pub(crate) format: WeightFormat,
}

/// Header of a file, up to the last tensor that holds metadata.
struct Head {
    bytes: Vec<u8>,
    /// Size of the whole file in bytes.
    len: usize,
}

/// Everything in a file but the weights.
pub(crate) struct NewHead {
    pub(super) keys: Entries,
    /// Tensors that hold metadata.
    pub(super) vectors: Vec<(String, Vec<f32>)>,
}

impl NewHead {
    /// Keys that describe the file's format or its shards.
    const OWN: [&str; 4] = [ALIGNMENT, ARCHITECTURE, FILE_TYPE, QUANTIZATION];

    /// Creates the entries, with the architecture first.
    pub(super) fn new(architecture: &str) -> Self {
        let mut keys = Entries::default();
        keys.put(ARCHITECTURE, Written::Text(architecture.to_owned()));
        Self { keys, vectors: Vec::new() }
    }

    /// Returns true if a key is set anew for each file.
    pub(super) fn has_own(key: &str) -> bool {
        Self::OWN.contains(&key) || key.starts_with("split.")
    }
}

impl NewFile<'_> {
    /// Builds the metadata of a model in a folder.
    pub(crate) fn head(&self, texts: &Texts<'_>) -> Result<NewHead> {
        let architecture = architectures::of_model_type(&self.config.model_type)?;
        let Settings { entries, vectors, .. } = settings(self.config, self.spec, architecture)?;
        let mut head = NewHead { vectors, ..NewHead::new(architecture.name) };
        head.keys.extend(texts.general());
        head.keys.extend(entries);
        head.keys.extend(texts.tokenizer(architecture.name, self.spec.vocab_size, self.tokenizer)?);
        Ok(head)
    }

    /// Writes the file to `out`; `path` is its path in errors. At most a piece of a tensor is in memory. Calls `progress` after
    /// each tensor.
    pub(crate) fn write(
        &self,
        head: NewHead,
        out: &mut File,
        path: &Path,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let architecture = architectures::of_model_type(&self.config.model_type)?;
        let NewHead { mut keys, vectors } = head;
        let f32 = tensors::of_format(WeightFormat::F32)?;
        let vector = |(name, values): (String, Vec<f32>)| NewTensor {
            name,
            ty: f32,
            shape: vec![values.len()],
            cols: None,
            contents: Contents::Values(values),
        };
        let mut tensors: Vec<_> = vectors.into_iter().map(vector).collect();
        tensors.extend(plan(self, architecture)?);
        self.refuse_quantized(&tensors)?;
        keys.put(QUANTIZATION, Written::Size(QUANTIZATION_VERSION));
        keys.put(FILE_TYPE, Written::Size(self.file_type(&tensors)?));
        let head = Head::new(&keys, &tensors)?;
        let model = self.read_back(&head, &path.display().to_string())?;
        self.write_bytes(&head, &tensors, &model, out, path, progress)
    }

    /// Id of the format under [`FILE_TYPE`].
    fn file_type(&self, tensors: &[NewTensor]) -> Result<u32> {
        let name = self.format.to_string();
        let row =
            FILE_TYPES.iter().find(|row| row.0 == name).ok_or_else(|| unsupported_format(self.format))?;
        let has_mxfp4 = tensors.iter().any(|tensor| tensor.ty.name() == "MXFP4");
        let is_float = !matches!(self.format, WeightFormat::Ggml(_));
        Ok(if has_mxfp4 && is_float { MXFP4_EXPERTS } else { row.1 })
    }

    /// Reads the header back like any file, and compares the model it describes.
    fn read_back(&self, head: &Head, name: &str) -> Result<GgufModel> {
        let bytes = FileBytes::Owned(head.bytes.as_slice().into());
        let file = GgufFile::describe(name, bytes.clone(), head.len)?;
        let model = GgufModel::of_shard(Shard { name: name.to_owned(), bytes, file });
        let config = ModelConfig::from_keys(parse_json(CONFIG_FILE, &read_required(&model, CONFIG_FILE)?)?)?;
        let spec = (crate::architectures::find(&config.model_type)?.spec)(&config)?;
        let architecture = model.metadata().architecture()?;
        check::check(architecture, self.spec, &spec)?;
        check::check_tokenizer(architecture, self.tokenizer, &Tokenizer::from_gguf(model.metadata())?)?;
        Ok(model)
    }

    fn write_bytes(
        &self,
        head: &Head,
        tensors: &[NewTensor],
        model: &GgufModel,
        out: &mut File,
        path: &Path,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let failed = |source| io_error(path, source);
        let mut out = BufWriter::with_capacity(1 << 20, out);
        out.write_all(&head.bytes).map_err(failed)?;
        let mut done = head.bytes.len();
        for tensor in tensors.iter().filter(|tensor| matches!(tensor.contents, Contents::Stored(_))) {
            let padding = done.next_multiple_of(DEFAULT_ALIGNMENT) - done;
            out.write_all(&[0; DEFAULT_ALIGNMENT][..padding]).map_err(failed)?;
            let stored = model.stored(&tensor.name)?;
            let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(failed);
            let written = write_tensor(self.checkpoint, tensor, &stored, &mut write)?;
            done += padding + written;
            let (done_bytes, total_bytes) = (done as u64, head.len as u64);
            progress(LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes });
        }
        out.flush().map_err(failed)
    }

    /// Quantised blocks keep their type: refuses a model that would have no tensor of the requested format.
    fn refuse_quantized(&self, tensors: &[NewTensor]) -> Result<()> {
        let wanted = tensors::of_format(self.format)?;
        let kept = tensors.iter().find(|tensor| tensor.ty != wanted && tensors::float(tensor.ty).is_none());
        match kept {
            Some(tensor) if tensors.iter().all(|tensor| tensor.shape.len() < 2 || tensor.ty != wanted) => {
                let stored = tensor.ty.name().to_lowercase().parse()?;
                Err(Error::AlreadyQuantized { stored, requested: self.format })
            }
            _ => Ok(()),
        }
    }
}

impl Head {
    fn new(keys: &Entries, tensors: &[NewTensor]) -> Result<Self> {
        let mut bytes = GgufFile::MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((tensors.len() as u64).to_le_bytes());
        bytes.extend((keys.len() as u64).to_le_bytes());
        keys.encode(&mut bytes);
        let mut end = 0_usize;
        for tensor in tensors {
            let start = end.next_multiple_of(DEFAULT_ALIGNMENT);
            tensor.describe(start, &mut bytes);
            end = start + tensor.bytes()?;
        }
        let data = bytes.len().next_multiple_of(DEFAULT_ALIGNMENT);
        for tensor in tensors {
            if let Contents::Values(values) = &tensor.contents {
                bytes.resize(bytes.len().next_multiple_of(DEFAULT_ALIGNMENT), 0);
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        bytes.resize(bytes.len().max(data), 0);
        Ok(Self { bytes, len: data + end })
    }
}

/// Error for a format that is not written.
fn unsupported_format(format: WeightFormat) -> Error {
    let known = FILE_TYPES.iter().map(|row| row.0).collect::<Vec<_>>().join(", ");
    crate::config::unsupported("quantization", format, known)
}
