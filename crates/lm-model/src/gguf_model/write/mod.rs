//! Writing of a model as one GGUF file: the inverse of the reading tables.
//!
//! The header is built first and read back like any file. Its spec must equal the folder's; for tensors whose
//! row order or values differ in files, the reader determines the transformation.

mod check;
mod key_types;
mod rows;
mod settings;
mod tensors;
mod texts;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use lm_formats::{
    FileBytes, GgufEntries, GgufEntry, GgufFile, GgufHeader, GgufShard, GgufTensor, GgufTensorType,
    file_names, parse_json, read_required,
};
use lm_kernels::WeightFormat;
use lm_tokenizer::Tokenizer;

use self::rows::write_tensor;
use self::settings::settings;
use self::tensors::{Contents, NewTensor, plan};
use super::GgufModel;
use crate::architectures::{self, Architecture};
use crate::checkpoint::Checkpoint;
use crate::config::{ModelConfig, unsupported};
use crate::error::{Error, Result, io_error};
use crate::gguf::Settings;
use crate::loader::{LoadPhase, LoadProgress};
use crate::spec::DecoderSpec;
use crate::spec::ModelOutput;

pub(crate) use self::tensors::matrix_name;
pub(crate) use self::texts::Texts;

const ALIGNMENT: &str = "general.alignment";
const ARCHITECTURE: &str = "general.architecture";
pub(super) const FILE_TYPE: &str = "general.file_type";
const QUANTIZATION: &str = "general.quantization_version";
/// Version of the block types, under [`QUANTIZATION`].
const QUANTIZATION_VERSION: u32 = 2;
/// Ids of formats under [`FILE_TYPE`]: the format of most matrices.
///
/// # Source
/// `LlamaFileType` of the package `gguf` 0.19.
const FILE_TYPES: &[(&str, u32)] = &[
    ("bf16", 32),
    ("f16", 1),
    ("f32", 0),
    ("mxfp4", MXFP4_EXPERTS),
    ("q4_0", 2),
    ("q4_1", 3),
    ("q5_0", 8),
    ("q5_1", 9),
    ("q8_0", 7),
];
/// Formats that can be requested.
const WRITTEN: [&str; 5] = ["bf16", "f16", "f32", "q4_0", "q8_0"];

/// File type id of a float model with MXFP4 experts.
const MXFP4_EXPERTS: u32 = 38;

/// Types of the matrices of a new file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MatrixTypes {
    /// Those of the checkpoint; `file_type` is the id of its own file, if it is one.
    Stored { file_type: Option<u32> },
    /// This format for floats; blocks keep their type.
    Floats(WeightFormat),
    /// This format for floats and blocks.
    All(WeightFormat),
}

/// Model to write as a file.
pub(crate) struct NewFile<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) architecture: &'static Architecture,
    pub(crate) spec: &'a DecoderSpec,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) types: MatrixTypes,
}

/// Everything in a file except the weights.
pub(crate) struct NewHead {
    pub(super) keys: GgufEntries,
    /// Tensors that hold metadata.
    pub(super) vectors: Vec<(String, Vec<f32>)>,
}

impl NewHead {
    /// Keys that describe the file's format or its shards.
    const OWN: [&str; 4] = [ALIGNMENT, ARCHITECTURE, FILE_TYPE, QUANTIZATION];

    /// Creates the entries, with the architecture first.
    pub(super) fn new(architecture: &str) -> Self {
        let mut keys = GgufEntries::default();
        keys.put(ARCHITECTURE, GgufEntry::Text(architecture.to_owned()));
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
        if self.spec.output() != ModelOutput::Tokens {
            let value = format!("{:?}", self.spec.output());
            return Err(unsupported("architectures", value, "models that generate text").into());
        }
        let architecture = architectures::gguf_of(&self.config.model_type)?;
        let Settings { entries, vectors, .. } = settings(self.config, self.spec, architecture)?;
        let mut head = NewHead { vectors, ..NewHead::new(architecture.name) };
        head.keys.extend(texts.general());
        head.keys.extend(entries);
        head.keys.extend(texts.tokenizer(architecture.name, self.spec.vocab_size, self.tokenizer)?);
        Ok(head)
    }

    /// Writes the file to `out`; `path` is its path in errors. At most a piece of a tensor is in memory.
    /// Calls `progress` after each tensor.
    pub(crate) fn write(
        &self,
        head: NewHead,
        out: &mut File,
        path: &Path,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let (head, tensors, model) = self.prepare(head, &path.display().to_string())?;
        self.write_bytes(&head, &tensors, &model, out, path, progress)
    }

    /// Checks that the file can be written; `name` is its name in errors.
    pub(crate) fn check(&self, head: NewHead, name: &str) -> Result<()> {
        self.prepare(head, name).map(drop)
    }

    /// Plans the tensors and builds the header; returns them with the model that the header describes.
    fn prepare(&self, head: NewHead, name: &str) -> Result<(GgufHeader, Vec<NewTensor>, GgufModel)> {
        let architecture = architectures::gguf_of(&self.config.model_type)?;
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
        keys.put(QUANTIZATION, GgufEntry::Size(QUANTIZATION_VERSION));
        if let Some(id) = self.file_type(&tensors)? {
            keys.put(FILE_TYPE, GgufEntry::Size(id));
        }
        let head = header(&keys, &tensors)?;
        let model = self.read_back(&head, name)?;
        Ok((head, tensors, model))
    }

    /// Id of the format under [`FILE_TYPE`], if it has one.
    fn file_type(&self, tensors: &[NewTensor]) -> Result<Option<u32>> {
        let id = |name: &str| FILE_TYPES.iter().find(|row| row.0 == name).map(|row| row.1);
        match self.types {
            MatrixTypes::Stored { file_type: Some(id) } => Ok(Some(id)),
            MatrixTypes::Stored { file_type: None } => {
                Ok(main_type(tensors).and_then(|ty| id(&ty.name().to_lowercase())))
            }
            MatrixTypes::Floats(format) | MatrixTypes::All(format) => {
                let id = id(&format.to_string()).filter(|_| WRITTEN.contains(&&*format.to_string()));
                let id = id.ok_or_else(|| unsupported_format(format))?;
                let has_mxfp4 = tensors.iter().any(|tensor| tensor.ty.name() == "MXFP4");
                let is_float = !matches!(format, WeightFormat::Ggml(_));
                Ok(Some(if has_mxfp4 && is_float { MXFP4_EXPERTS } else { id }))
            }
        }
    }

    /// Reads the header back like any file, and compares the model it describes.
    fn read_back(&self, head: &GgufHeader, name: &str) -> Result<GgufModel> {
        let bytes = FileBytes::Owned(head.bytes.as_slice().into());
        let file = GgufFile::read_header(name, bytes.clone(), head.len)?;
        let model = GgufModel::of_shard(GgufShard { name: name.to_owned(), bytes, file });
        let config = architectures::config(parse_json(
            file_names::CONFIG,
            &read_required(&model, file_names::CONFIG)?,
        )?)?;
        let spec = (architectures::find(&config.model_type)?.spec)(&config)?;
        let architecture = model.metadata().architecture()?;
        check::check(architecture, self.spec, &spec)?;
        check::check_tokenizer(architecture, self.tokenizer, &Tokenizer::from_gguf(model.metadata())?)?;
        Ok(model)
    }

    fn write_bytes(
        &self,
        head: &GgufHeader,
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
        let stored = |(tensor, _): &(&NewTensor, _)| matches!(tensor.contents, Contents::Stored(_));
        for (tensor, GgufTensor { range, .. }) in tensors.iter().zip(&head.tensors).filter(stored) {
            out.write_all(&vec![0; range.start - done]).map_err(failed)?;
            let stored = model.stored(&tensor.name)?;
            let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(failed);
            write_tensor(self.checkpoint, tensor, &stored, &mut write)?;
            done = range.end;
            let (done_bytes, total_bytes) = (done as u64, head.len as u64);
            progress(LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes });
        }
        out.flush().map_err(failed)
    }

    /// Rejects a model whose blocks keep their type, without any tensor of the requested format.
    fn refuse_quantized(&self, tensors: &[NewTensor]) -> Result<()> {
        let MatrixTypes::Floats(format) = self.types else { return Ok(()) };
        let wanted = tensors::of_format(format)?;
        let kept = tensors.iter().find(|tensor| tensor.ty != wanted && tensors::float(tensor.ty).is_none());
        match kept {
            Some(tensor) if tensors.iter().all(|tensor| tensor.shape.len() < 2 || tensor.ty != wanted) => {
                let stored = tensor.ty.name().to_lowercase().parse()?;
                Err(Error::AlreadyQuantized { stored, requested: format })
            }
            _ => Ok(()),
        }
    }
}

/// Builds the header, up to the last tensor that holds metadata.
fn header(keys: &GgufEntries, tensors: &[NewTensor]) -> Result<GgufHeader> {
    let described: Vec<_> = tensors.iter().map(NewTensor::description).collect();
    let mut header = GgufHeader::new(keys, &described)?;
    for (tensor, GgufTensor { range, .. }) in tensors.iter().zip(&header.tensors) {
        if let Contents::Values(values) = &tensor.contents {
            header.bytes.resize(range.start, 0);
            header.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
    }
    Ok(header)
}

/// Type of most elements of the matrices.
fn main_type(tensors: &[NewTensor]) -> Option<GgufTensorType> {
    let matrices = || tensors.iter().filter(|tensor| tensor.cols.is_some());
    let elements = |ty: &GgufTensorType| -> usize {
        matrices().filter(|other| other.ty == *ty).map(|other| other.shape.iter().product::<usize>()).sum()
    };
    matrices().map(|tensor| tensor.ty).max_by_key(elements)
}

/// Error for a format that is not written.
fn unsupported_format(format: WeightFormat) -> Error {
    unsupported("quantization", format, WRITTEN.join(", ")).into()
}
