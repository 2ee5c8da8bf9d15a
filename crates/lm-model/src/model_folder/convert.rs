//! Writing a quantised copy of a model folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::quantized_file::{QuantizedFile, io_error};
use super::{ChatTemplateSource, LoadProgress, ModelFolder, parse_json, read_required};
use crate::architectures;
use crate::config::CONFIG_FILE;
use crate::weights::describe;
use crate::{Error, Result, WeightFormat};

/// What a copy holds besides the config, the weights and the chat template, where the original has it.
const COPIED: [&str; 2] = ["generation_config.json", "tokenizer.json"];
const WEIGHTS_FILE: &str = "model.safetensors";

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
        let architecture = architectures::find(&config.model_type)?;
        let spec = (architecture.spec)(&config)?;
        let checkpoint = self.weights(&config)?;
        let weights = QuantizedFile::plan(&checkpoint, architecture, &spec, format)?;
        let folder = Unfinished::create(output)?;
        self.copy_texts(&folder.path, format)?;
        let path = folder.path.join(WEIGHTS_FILE);
        let failed = |source| io_error(&path, source);
        let mut file = File::create_new(&path).map_err(failed)?;
        weights.write(&mut file, &path, &[], progress)?;
        file.sync_all().map_err(failed)?;
        folder.finish(output)
    }

    fn copy_texts(&self, folder: &Path, format: WeightFormat) -> Result<()> {
        for name in COPIED {
            if let Some(bytes) = self.files.read(name)? {
                write_file(&folder.join(name), &bytes)?;
            }
        }
        for (name, bytes) in ChatTemplateSource::read(&*self.files)?.iter() {
            write_file(&folder.join(name), bytes)?;
        }
        let mut config: Map<String, Value> =
            parse_json(CONFIG_FILE, &read_required(&*self.files, CONFIG_FILE)?)?;
        config.insert("quantization_config".to_owned(), describe(format));
        write_file(&folder.join(CONFIG_FILE), format!("{:#}\n", Value::Object(config)).as_bytes())
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
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|source| io_error(path, source))
}
