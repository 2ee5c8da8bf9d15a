//! Writing a quantised copy of a model folder.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use lm_kernels::Arena;
use safetensors::Dtype;
use serde_json::{Map, Value, json};

use super::{LoadPhase, LoadProgress, ModelFolder, parse_json, read_required};
use crate::architectures;
use crate::config::{CONFIG_FILE, unsupported};
use crate::weights::{Blocks, Checkpoint, describe, pack_dense, params};
use crate::{Error, Result, WeightFormat};

/// What a copy holds besides the config and the weights, where the original has it.
const COPIED: &[&str] = &[
    "chat_template.jinja",
    "generation_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
];
const WEIGHTS_FILE: &str = "model.safetensors";

/// One tensor of the copy.
struct Planned {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
}

/// One parameter, and the tensors that it becomes.
enum Parameter {
    /// As the original has it.
    Copied(Planned),
    /// Quants and scales.
    Quantised { name: String, rows: usize, cols: usize, blocks: Blocks },
}

impl ModelFolder {
    /// Writes a copy of the model to a new folder, its matrices quantised to 8 or 4 bit. Loading the copy gives the same
    /// weights, bit by bit, as quantising the original while loading.
    ///
    /// The folder appears when it is complete. `progress` is called after each tensor.
    ///
    /// # Errors
    /// When the model cannot be read (as for [`ModelFolder::load`]) or is quantised already, `format` is a float format,
    /// `output` exists, or it cannot be written.
    pub fn convert(
        &self,
        output: impl AsRef<Path>,
        format: WeightFormat,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let output = output.as_ref();
        let config = self.config()?;
        if let Some(stored) = config.stored_format()? {
            return Err(Error::AlreadyQuantized { stored, requested: format });
        }
        if format.stored_row_bytes(1).is_none() {
            return Err(unsupported("quantization_config.format", format, "q8, q4"));
        }
        let spec = (architectures::find(&config.model_type)?.spec)(&config)?;
        let weight_name = architectures::find(&config.model_type)?.weight_name;
        let checkpoint = Checkpoint::open(&*self.files)?;
        let mut parameters = Vec::new();
        for (param, shape) in params(&spec) {
            let name = weight_name(param);
            checkpoint.check(&name, &shape)?;
            parameters.push(plan(&checkpoint, name, shape, format)?);
        }
        let folder = Unfinished::create(output)?;
        self.copy_texts(&folder.path, format)?;
        write_weights(&folder.path.join(WEIGHTS_FILE), &checkpoint, &parameters, format, progress)?;
        folder.finish(output)
    }

    fn copy_texts(&self, folder: &Path, format: WeightFormat) -> Result<()> {
        for name in COPIED {
            if let Some(bytes) = self.files.read(name)? {
                write_file(&folder.join(name), &bytes)?;
            }
        }
        let mut config: Map<String, Value> =
            parse_json(CONFIG_FILE, &read_required(&*self.files, CONFIG_FILE)?)?;
        config.insert("quantization_config".to_owned(), describe(format));
        write_file(&folder.join(CONFIG_FILE), format!("{:#}\n", Value::Object(config)).as_bytes())
    }
}

fn plan(checkpoint: &Checkpoint, name: String, shape: Vec<usize>, format: WeightFormat) -> Result<Parameter> {
    if let &[rows, cols] = shape.as_slice()
        && let Some(blocks) = Blocks::of(&name, format, rows, cols)
    {
        return Ok(Parameter::Quantised { name, rows, cols, blocks });
    }
    let dtype = checkpoint.dtype(&name)?;
    Ok(Parameter::Copied(Planned { name, dtype, shape }))
}

/// Writes the tensors one after another; no more than one is in memory.
fn write_weights(
    path: &Path,
    checkpoint: &Checkpoint,
    parameters: &[Parameter],
    format: WeightFormat,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<()> {
    let failed = |source| io_error(path, source);
    let mut out = BufWriter::new(File::create_new(path).map_err(failed)?);
    let header = header(parameters).to_string();
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
    out.write_all(header.as_bytes()).map_err(failed)?;
    let total_bytes =
        parameters.iter().map(|parameter| checkpoint.tensor_bytes(parameter.name()) as u64).sum();
    let mut done_bytes = 0;
    for parameter in parameters {
        let name = parameter.name();
        match parameter {
            Parameter::Copied(_) => out.write_all(checkpoint.bytes(name)?).map_err(failed)?,
            Parameter::Quantised { rows, cols, .. } => {
                let packed = pack_dense(checkpoint, name, (format, *rows, *cols), &Arena::default())?;
                let stored = packed.to_stored().expect("the format was found to have a form for files");
                out.write_all(&stored.quants).map_err(failed)?;
                out.write_all(&stored.scales).map_err(failed)?;
            }
        }
        checkpoint.release(name);
        done_bytes += checkpoint.tensor_bytes(name) as u64;
        progress(LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes });
    }
    out.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)
}

/// The safetensors header: every tensor with its place after the header.
fn header(parameters: &[Parameter]) -> Value {
    let mut header = Map::new();
    let mut end = 0;
    let mut add = |name: &str, dtype: Dtype, shape: &[usize]| {
        let start = end;
        end += shape.iter().product::<usize>() * dtype.bitsize() / 8;
        let entry = json!({"dtype": dtype.to_string(), "shape": shape, "data_offsets": [start, end]});
        header.insert(name.to_owned(), entry);
    };
    for parameter in parameters {
        match parameter {
            Parameter::Copied(Planned { name, dtype, shape }) => add(name, *dtype, shape),
            Parameter::Quantised { blocks, .. } => {
                for (name, dtype, shape) in [&blocks.quants, &blocks.scales] {
                    add(name, *dtype, shape);
                }
            }
        }
    }
    Value::Object(header)
}

impl Parameter {
    /// Its name in the original.
    fn name(&self) -> &str {
        match self {
            Self::Copied(planned) => &planned.name,
            Self::Quantised { name, .. } => name,
        }
    }
}

/// A folder beside the one to be written, which takes its name in the end and goes away if that does not come.
struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    fn create(output: &Path) -> Result<Self> {
        let exists = || io_error(output, io::ErrorKind::AlreadyExists.into());
        let no_name = || io_error(output, io::Error::new(io::ErrorKind::InvalidInput, "it names no folder"));
        let name = output.file_name().ok_or_else(no_name)?.to_string_lossy();
        if output.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let path = output.with_file_name(format!(".{name}.unfinished-{}", std::process::id()));
        fs::create_dir(&path).map_err(|source| io_error(&path, source))?;
        Ok(Self { path })
    }

    fn finish(self, output: &Path) -> Result<()> {
        fs::rename(&self.path, output).map_err(|source| io_error(output, source))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After `finish` it is not there any more.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|source| io_error(path, source))
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Write { file: path.display().to_string(), source }
}
