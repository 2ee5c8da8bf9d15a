//! Writing a quantised copy of a model folder.

use std::fs::{self, File};
use std::path::Path;

use lm_formats::{file_names, parse_json, read_required};
use lm_kernels::WeightFormat;
use serde_json::{Map, Value};

use super::quantized_file::QuantizedFile;
use super::temp_output::TempOutput;
use super::{ChatTemplateSource, ModelFolder};
use crate::config::describe;
use crate::embedding_config;
use crate::error::{Error, Result, io_error};
use crate::imatrix::ImportanceMatrix;
use crate::loader::LoadProgress;

/// Files of a copy besides the config, the weights, the chat template and the settings of embeddings, where
/// the original has them: preprocessing of images and audio clips, and the adapter for audio.
const COPIED: [&str; 6] = [
    file_names::GENERATION_CONFIG,
    file_names::TOKENIZER,
    "preprocessor_config.json",
    "processor_config.json",
    "adapter_config.json",
    "adapter_model.safetensors",
];
/// Prefixes of the licence files that `lm pull` downloads.
const TERMS: [&str; 4] = ["LICENCE", "LICENSE", "NOTICE", "USE_POLICY"];

impl ModelFolder {
    /// Checks that the model can be converted to `format`: to a folder in q8 or q4
    /// ([`convert`](Self::convert)), or to a GGUF file in another format or, with `None`, as stored
    /// ([`convert_to_gguf`](Self::convert_to_gguf)). Reads everything but the weights, and writes nothing.
    ///
    /// # Errors
    /// The errors of the conversion that do not depend on the output or on values of weights.
    pub fn check_conversion(&self, format: impl Into<Option<WeightFormat>>) -> Result<()> {
        let wanted = format.into();
        let Some(format) = wanted.filter(|format| format.stored_row_bytes(1).is_some()) else {
            return self.check_conversion_to_gguf(wanted);
        };
        self.texts_of_gguf()?;
        let config = self.config_to_quantize(Some(format))?;
        let (architecture, spec, checkpoint) = self.decoder_and_weights(&config)?;
        QuantizedFile::plan(&checkpoint, architecture, &spec, format, None).map(drop)
    }

    /// Writes a quantised copy of the model to a new folder, with 8-bit or 4-bit matrices. Loading the copy
    /// gives weights that are bit-identical to quantising the original on load. Encoders of images and audio
    /// are copied as they are stored.
    ///
    /// The settings, the tokenizer and the chat template of a GGUF model become the files of a folder; its
    /// `tokenizer.json` is read back and compared before any weight is written. The encoder in an `mmproj`
    /// file is not part of the copy.
    ///
    /// The folder is created only once it is complete. `progress` is called after each tensor.
    ///
    /// # Errors
    /// When the model cannot be read (as for [`ModelFolder::load`]) or is quantised already, `format` is a
    /// float format, `output` exists, or it cannot be written; [`Error::NoTokenizerJson`] when a
    /// `tokenizer.json` cannot represent the tokenizer of a GGUF file.
    pub fn convert(
        &self,
        output: impl AsRef<Path>,
        format: WeightFormat,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        self.write_folder(output.as_ref(), format, None, progress).map(drop)
    }

    /// Writes a quantised copy; returns the names of the matrices without an importance, except tables whose
    /// rows are only looked up.
    pub(super) fn write_folder(
        &self,
        output: &Path,
        format: WeightFormat,
        importance: Option<&ImportanceMatrix>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Vec<String>> {
        let texts = self.texts_of_gguf()?;
        let config = self.config_to_quantize(Some(format))?;
        let (architecture, spec, checkpoint) = self.decoder_and_weights(&config)?;
        let weights = QuantizedFile::plan(&checkpoint, architecture, &spec, format, importance)?
            .with_stored(&self.encoder_prefixes(&config, &checkpoint)?);
        if let Some(importance) = importance.filter(|_| !weights.has_importance()) {
            let (file, model) = (importance.file().to_owned(), self.name.clone());
            return Err(Error::NoImportance { file, model });
        }
        let folder = TempOutput::folder(output)?;
        self.copy_texts(&folder.path, &texts, format)?;
        let path = folder.path.join(file_names::WEIGHTS);
        let failed = |source| io_error(output, source);
        let mut file = File::create_new(&path).map_err(failed)?;
        weights.write(&mut file, output, &[], progress)?;
        file.sync_all().map_err(failed)?;
        folder.finish(output)?;
        Ok(weights.without_importance)
    }

    /// Writes everything except the weights; `texts` are files that replace those of the model.
    fn copy_texts(&self, folder: &Path, texts: &[(&str, String)], format: WeightFormat) -> Result<()> {
        let of_embeddings = embedding_config::files(&*self.files)?;
        for name in COPIED.iter().copied().chain(of_embeddings.iter().map(String::as_str)) {
            if let Some(bytes) = self.files.read(name)? {
                write_file(&folder.join(name), &bytes)?;
            }
        }
        self.copy_card_and_terms(folder)?;
        for (name, text) in texts {
            write_file(&folder.join(name), text.as_bytes())?;
        }
        for (name, bytes) in ChatTemplateSource::read(&*self.files)?.iter() {
            write_file(&folder.join(name), bytes)?;
        }
        let mut config: Map<String, Value> =
            parse_json(file_names::CONFIG, &read_required(&*self.files, file_names::CONFIG)?)?;
        config.insert("quantization_config".to_owned(), describe(format));
        write_file(&folder.join(file_names::CONFIG), format!("{:#}\n", Value::Object(config)).as_bytes())
    }

    /// Copies the model card and the licence; unreadable ones are omitted with a warning.
    fn copy_card_and_terms(&self, folder: &Path) -> Result<()> {
        for name in self.files.list("")?.into_iter().filter(|name| is_card_or_terms(name)) {
            match self.files.read(&name) {
                Ok(Some(bytes)) => write_file(&folder.join(name), &bytes)?,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the copy has no such file"),
            }
        }
        Ok(())
    }
}

/// Returns true for the model card and for licence files, in any case.
fn is_card_or_terms(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.eq_ignore_ascii_case(file_names::MODEL_CARD) || TERMS.iter().any(|terms| name.starts_with(terms))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|source| io_error(path, source))
}
