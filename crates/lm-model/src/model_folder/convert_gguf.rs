//! Writing a model as a GGUF file.

use std::path::Path;

use lm_kernels::WeightFormat;

use super::ModelFolder;
use super::temp_output::TempOutput;
use crate::error::{Result, io_error};
use crate::gguf_model::{MatrixTypes, NewFile, NewHead, Texts};
use crate::loader::LoadProgress;

impl ModelFolder {
    /// Writes the model as one GGUF file (version 3) as llama.cpp's converter does, with matrices in
    /// `format`: F32, F16, Bf16, or ggml's Q8_0 or Q4_0; `None` keeps the stored types. Vectors and norms are
    /// F32. Matrices whose rows are not whole blocks become F16.
    ///
    /// Blocks of a GGUF model are dequantised, and encoded in `format`. Weights of a folder that convert to
    /// ggml blocks without loss (MXFP4, AWQ, GPTQ) become those blocks, whatever the format.
    ///
    /// A GGUF model is written with its own keys, in one file even if it was in several shards.
    ///
    /// Loading the file gives weights that are bit-identical to loading the model with the same format. The
    /// metadata and the tokenizer in the file are read back and compared before any weight is written.
    ///
    /// The file appears when it is complete; at most 16 MiB of a tensor are in memory. `progress` is called
    /// after each tensor.
    ///
    /// # Errors
    /// - [`lm_formats::Error::UnsupportedValue`] for an architecture without a GGUF name here, or another
    ///   format
    /// - [`crate::Error::NoGgufForm`] when a file cannot represent the model's settings or its tokenizer
    /// - [`crate::Error::Tokenizer`] for a tokenizer without a GGUF name
    /// - [`crate::Error::AlreadyQuantized`] when none of a folder's matrices can be converted to `format`
    /// - [`crate::Error::Weight`] names a value that is too large for `format`
    /// - when the model cannot be read (as for [`ModelFolder::load`]), `output` exists, or it cannot be
    ///   written
    pub fn convert_to_gguf(
        &self,
        output: impl AsRef<Path>,
        format: impl Into<Option<WeightFormat>>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let output = output.as_ref();
        self.with_new_file(format.into(), |model, head| {
            let (temp, mut file) = TempOutput::file(output)?;
            model.write(head, &mut file, output, progress)?;
            file.sync_all().map_err(|source| io_error(output, source))?;
            temp.finish(output)
        })
    }

    /// [`convert_to_gguf`](Self::convert_to_gguf) up to the weights, without an output.
    pub(super) fn check_conversion_to_gguf(&self, format: Option<WeightFormat>) -> Result<()> {
        self.with_new_file(format, |model, head| model.check(head, &self.name))
    }

    /// Calls `then` with the model as a file in `format`, and its metadata.
    fn with_new_file(
        &self,
        format: Option<WeightFormat>,
        then: impl FnOnce(&NewFile<'_>, NewHead) -> Result<()>,
    ) -> Result<()> {
        let config = self.config_to_quantize(format)?;
        let (architecture, spec, checkpoint) = self.decoder_and_weights(&config)?;
        let tokenizer = self.tokenizer()?;
        let types = match (format, &self.gguf) {
            (None, None) => MatrixTypes::Stored { file_type: None },
            (None, Some(gguf)) => MatrixTypes::Stored { file_type: gguf.file_type()? },
            (Some(format), None) => MatrixTypes::Floats(format),
            (Some(format), Some(_)) => MatrixTypes::All(format),
        };
        let model = NewFile {
            config: &config,
            architecture,
            spec: &spec,
            checkpoint: &checkpoint,
            tokenizer: &tokenizer,
            types,
        };
        let head = match &self.gguf {
            Some(gguf) => gguf.head()?,
            None => model.head(&self.texts_for_gguf()?)?,
        };
        then(&model, head)
    }

    fn texts_for_gguf(&self) -> Result<Texts<'_>> {
        let (licence, generation) = (self.licence()?, self.generation_config()?);
        Ok(Texts { files: &*self.files, name: &self.name, licence, generation })
    }
}
