//! Writing a model as one GGUF file: the tables that files are read by, the other way round.
//!
//! The description of the file is made first and read back as any file's is. What it says must be what the folder says; where
//! rows or values have another form in files, its reader tells which.

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
use super::model::Part;
use super::{DEFAULT_ALIGNMENT, GgufFile, GgufModel, architectures};
use crate::architectures::Architecture;
use crate::config::{CONFIG_FILE, ModelConfig};
use crate::model_folder::{FileBytes, LoadPhase, LoadProgress, io_error, parse_json, read_required};
use crate::spec::DecoderSpec;
use crate::weights::Checkpoint;
use crate::{Error, Result, Tokenizer, WeightFormat};

/// Version of the format that is written.
const VERSION: u32 = 3;
const ALIGNMENT: &str = "general.alignment";
const ARCHITECTURE: &str = "general.architecture";
const FILE_TYPE: &str = "general.file_type";
const QUANTIZATION: &str = "general.quantization_version";
/// Version of the block types, under [`QUANTIZATION`].
const QUANTIZATION_VERSION: u32 = 2;
/// Numbers of formats under [`FILE_TYPE`]: what most matrices are.
///
/// # Source
/// `LlamaFileType` of the package `gguf` 0.19.
const FILE_TYPES: &[(&str, u32)] = &[("bf16", 32), ("f16", 1), ("f32", 0), ("q4_0", 2), ("q8_0", 7)];

/// The same of a model of floats with experts in MXFP4.
const MXFP4_EXPERTS: u32 = 38;

/// A model that becomes a file.
pub(crate) struct NewFile<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) architecture: &'static Architecture,
    pub(crate) spec: &'a DecoderSpec,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) tokenizer: &'a Tokenizer,
    /// What its matrices become.
    pub(crate) format: WeightFormat,
}

/// The beginning of a file, up to the last of the tensors that are settings.
struct Head {
    bytes: Vec<u8>,
    /// Bytes of the whole file.
    len: usize,
}

/// What a file says of a model beside its weights.
pub(crate) struct NewHead {
    pub(super) keys: Entries,
    /// Tensors that are settings.
    pub(super) vectors: Vec<(String, Vec<f32>)>,
}

impl NewHead {
    /// Keys that say how a file is written, or where its parts are.
    const OWN: [&str; 4] = [ALIGNMENT, ARCHITECTURE, FILE_TYPE, QUANTIZATION];

    /// Says the architecture, which goes first.
    pub(super) fn new(architecture: &str) -> Self {
        let mut keys = Entries::default();
        keys.put(ARCHITECTURE, Written::Text(architecture.to_owned()));
        Self { keys, vectors: Vec::new() }
    }

    /// Whether a key is set for each file anew.
    pub(super) fn has_own(key: &str) -> bool {
        Self::OWN.contains(&key) || key.starts_with("split.")
    }
}

impl NewFile<'_> {
    /// What a file says of a model in a folder.
    pub(crate) fn head(&self, texts: &Texts<'_>) -> Result<NewHead> {
        let architecture = architectures::of_model_type(&self.config.model_type)?;
        let Settings { entries, vectors, .. } = settings(self.config, self.spec, architecture)?;
        let mut head = NewHead { vectors, ..NewHead::new(architecture.name) };
        head.keys.extend(texts.general());
        head.keys.extend(entries);
        head.keys.extend(texts.tokenizer(architecture.name, self.spec.vocab_size, self.tokenizer)?);
        Ok(head)
    }

    /// Writes the file to `out`; `path` is where that is, for errors. No more than a piece of a tensor is in memory;
    /// `progress` is called after each tensor.
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

    /// The number under [`FILE_TYPE`].
    fn file_type(&self, tensors: &[NewTensor]) -> Result<u32> {
        let name = self.format.to_string();
        let row =
            FILE_TYPES.iter().find(|row| row.0 == name).ok_or_else(|| unsupported_format(self.format))?;
        let has_mxfp4 = tensors.iter().any(|tensor| tensor.ty.name() == "MXFP4");
        let is_float = !matches!(self.format, WeightFormat::Ggml(_));
        Ok(if has_mxfp4 && is_float { MXFP4_EXPERTS } else { row.1 })
    }

    /// Reads the description as any file's is read, and compares what it says of the model.
    fn read_back(&self, head: &Head, name: &str) -> Result<GgufModel> {
        let bytes = FileBytes::Owned(head.bytes.as_slice().into());
        let file = GgufFile::describe(name, bytes.clone(), head.len)?;
        let model = GgufModel::of_part(Part { name: name.to_owned(), bytes, file });
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

    /// Blocks stay what they are: a model that has nothing else does not become what is asked for.
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

/// An error about a format that is not written.
fn unsupported_format(format: WeightFormat) -> Error {
    let known = FILE_TYPES.iter().map(|row| row.0).collect::<Vec<_>>().join(", ");
    crate::config::unsupported("quantization", format, known)
}
