//! A model as a folder of files, on disk, in memory or embedded in the program.

mod chat_template;
mod convert;
mod convert_gguf;
mod footprint;
mod gguf_texts;
mod importance;
mod load;
mod loaded_model;
mod media;
mod pack_cache;
mod quantized_file;
mod temp_output;

use std::path::Path;
use std::sync::Arc;

use lm_formats::{
    Directory, FileBytes, GgufFile, InMemory, MAX_TABLE_BYTES, ModelFiles, check_size, file_names,
    parse_json, read_required,
};
use lm_kernels::WeightFormat;
use lm_tokenizer::{TokenId, Tokenizer};

use crate::architectures::{self, Architecture};
use crate::checkpoint::{Checkpoint, TensorInfo};
use crate::config::{GenerationConfig, ModelConfig, unsupported};
use crate::embedding_config::{CrossEncoderConfig, EmbeddingConfig};
use crate::error::{Error, Result};
use crate::gguf_model::GgufModel;
use crate::gguf_projector::Projector;
use crate::spec::{DecoderSpec, Direction, ModelOutput};

pub use self::chat_template::ChatTemplateSource;
pub use self::footprint::Footprint;
pub use self::importance::InputRecorder;
pub use self::loaded_model::{LoadOptions, LoadedModel};

/// A model: a Hugging Face folder, or a GGUF model. Each part is read on demand; the headers of GGUF files
/// (metadata, tensor positions) are read on opening. Clones share the files.
#[derive(Clone, Debug)]
pub struct ModelFolder {
    name: String,
    /// For a GGUF model, generated from its metadata.
    files: Arc<dyn ModelFiles>,
    gguf: Option<Arc<GgufModel>>,
    /// The `mmproj` file of a GGUF model.
    projector: Option<Arc<Projector>>,
}

impl ModelFolder {
    /// Opens a folder on disk, a GGUF file (any file with the GGUF magic), or a folder that holds one GGUF
    /// model and no `config.json`. The model is named after the last path component. Large files are mapped,
    /// not read.
    ///
    /// For a GGUF model in several shards, `path` is any of them; the others must be in the same folder. A
    /// GGUF model reads images if its folder has exactly one file with `mmproj` in its name that belongs to
    /// it, as LM Studio and `llama-server -hf` store them; [`ModelFolder::open_with_projector`] names
    /// another.
    ///
    /// # Errors
    /// - [`lm_formats::Error::Io`] when the file or folder does not exist
    /// - [`lm_formats::Error::Gguf`] when a GGUF file cannot be read, or is incomplete
    /// - [`Error::SeveralModels`] when a folder has more than one GGUF model
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if GgufFile::has_magic(path) {
            let (directory, name) = media::place(path)?;
            let model = GgufModel::open(&directory, &name)?;
            return Ok(Self::of_gguf(model, Projector::find(&directory)?));
        }
        let directory = Directory::open(path)?;
        Self::of_files(directory.name(), directory)
    }

    /// Creates a folder of files embedded in the program; `name` is its name in messages.
    pub fn embedded(name: &'static str, files: &'static [(&'static str, &'static [u8])]) -> Self {
        let files = files.iter().map(|(file, bytes)| ((*file).to_owned(), FileBytes::Embedded(bytes)));
        let files = Arc::new(InMemory { name: name.to_owned(), files: files.collect() });
        Self { name: name.to_owned(), files, gguf: None, projector: None }
    }

    /// Creates a folder of files in memory: those of a Hugging Face folder, or one GGUF model.
    ///
    /// # Errors
    /// As [`ModelFolder::open`].
    pub fn in_memory(name: &str, files: Vec<(String, FileBytes)>) -> Result<Self> {
        Self::of_files(name.to_owned(), InMemory { name: name.to_owned(), files })
    }

    fn of_files(name: String, files: impl ModelFiles + 'static) -> Result<Self> {
        match GgufModel::find(&files)? {
            Some(file) => Ok(Self::of_gguf(GgufModel::open(&files, &file)?, Projector::find(&files)?)),
            None => Ok(Self { name, files: Arc::new(files), gguf: None, projector: None }),
        }
    }

    fn of_gguf(model: GgufModel, projector: Option<Projector>) -> Self {
        let (model, projector) = (Arc::new(model), projector.map(Arc::new));
        Self { name: model.name().to_owned(), files: model.clone(), gguf: Some(model), projector }
    }

    /// Returns the folder under another name, such as the name in a user's request.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Name of the model in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true for a GGUF model.
    pub fn is_gguf(&self) -> bool {
        self.gguf.is_some()
    }

    /// Name in the metadata of a GGUF model, `general.name`.
    ///
    /// # Errors
    /// When it is not a text.
    pub fn stored_name(&self) -> Result<Option<String>> {
        let name = self.gguf.as_deref().map(GgufModel::stored_name).transpose()?.flatten();
        Ok(name.map(plain).filter(|name| !name.is_empty()))
    }

    /// Reads and checks `config.json`.
    ///
    /// # Errors
    /// When it is missing or not valid, names an unknown architecture, or requires something that is not
    /// implemented.
    pub fn config(&self) -> Result<ModelConfig> {
        let json = read_required(&*self.files, file_names::CONFIG)?;
        Ok(architectures::config(parse_json(file_names::CONFIG, &json)?)?)
    }

    /// Reads `tokenizer.json`, with the end-of-sequence ids of [`ModelFolder::generation_config`], or the
    /// tokenizer of a GGUF file; the logits width is the config's.
    ///
    /// # Errors
    /// When a file is missing or not valid; see [`Tokenizer::from_json`] and [`Tokenizer::from_gguf`].
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        let logits_width = self.config()?.vocab_size;
        if let Some(model) = &self.gguf {
            return Ok(Tokenizer::from_gguf(model.metadata())?.with_logits_width(logits_width));
        }
        let json = read_required(&*self.files, file_names::TOKENIZER)?;
        check_size(MAX_TABLE_BYTES, file_names::TOKENIZER, &json)?;
        let tokenizer = Tokenizer::from_json(&json)?;
        let end_ids = self.end_ids(&tokenizer)?;
        Ok(tokenizer.with_end_ids(end_ids).with_logits_width(logits_width))
    }

    /// Reads the files of the chat template without parsing them; `None` if there are none.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn chat_template(&self) -> Result<Option<ChatTemplateSource>> {
        let source = ChatTemplateSource::read(&*self.files)?;
        Ok(Some(source).filter(|source| !source.files.is_empty()))
    }

    /// Reads `generation_config.json`; end-of-sequence ids that it omits are read from `config.json`. Files
    /// may be absent.
    ///
    /// # Errors
    /// When a file is not valid.
    pub fn generation_config(&self) -> Result<GenerationConfig> {
        Ok(GenerationConfig::read(&*self.files)?)
    }

    /// Reads the files of sentence-transformers (`modules.json`, `1_Pooling/config.json`,
    /// `config_sentence_transformers.json` and others), which may be absent.
    ///
    /// # Errors
    /// When a file is not valid, or names a module, a mode of pooling or an activation that is not
    /// implemented.
    pub fn embedding_config(&self) -> Result<EmbeddingConfig> {
        let config = self.config()?;
        let spec = (architectures::find(&config.model_type)?.spec)(&config)?;
        let is_encoder = spec.direction() == Direction::Bidirectional;
        EmbeddingConfig::read(&*self.files, &config, is_encoder.then_some(spec.context_len))
    }

    /// Reads the settings of a classifier as a cross-encoder; the default for a model without one.
    ///
    /// # Errors
    /// When a file is not valid, or names an activation that is not implemented.
    pub fn cross_encoder_config(&self) -> Result<CrossEncoderConfig> {
        CrossEncoderConfig::read(&*self.files, &self.config()?)
    }

    /// Output of the model beyond hidden states, of its config.
    ///
    /// # Errors
    /// As [`ModelFolder::config`].
    pub fn output(&self) -> Result<ModelOutput> {
        let config = self.config()?;
        Ok((architectures::find(&config.model_type)?.spec)(&config)?.output())
    }

    /// Licence of the model: the `license` line at the head of the model card `README.md`, or
    /// `general.license` of a GGUF file.
    ///
    /// # Errors
    /// When the card exists and cannot be read.
    pub fn licence(&self) -> Result<Option<String>> {
        if let Some(model) = &self.gguf {
            return Ok(model
                .metadata()
                .str("general.license")?
                .filter(|text| !text.trim().is_empty())
                .map(plain));
        }
        let Some(card) = self.files.read("README.md")? else { return Ok(None) };
        Ok(licence_of_card(&card))
    }

    /// Number of parameters that the config implies.
    ///
    /// # Errors
    /// As [`ModelFolder::config`].
    pub fn parameters(&self) -> Result<Parameters> {
        let config = self.config()?;
        let spec = (architectures::find(&config.model_type)?.spec)(&config)?;
        let elements =
            |shape: &[usize]| shape.iter().fold(1, |count: u64, &n| count.saturating_mul(n as u64));
        let all =
            spec.params().iter().fold(0, |count: u64, (_, shape)| count.saturating_add(elements(shape)));
        Ok(Parameters { all, of_token: all.saturating_sub(spec.inactive_parameters()) })
    }

    /// Memory needs of the model, computed from the headers of its files.
    ///
    /// # Errors
    /// As [`ModelFolder::config`], and when a tensor is missing or does not match the config.
    pub fn footprint(&self) -> Result<Footprint> {
        let config = self.config()?;
        let (architecture, spec, weights) = self.decoder_and_weights(&config)?;
        let mut footprint = Footprint::read(&weights, architecture, &spec, config.stored_format()?)?;
        if let Some(vision) = self.vision(&config, &weights)? {
            footprint.add_floats(vision.checkpoint(&weights), vision.prefixes());
        }
        if let Some(audio) = self.audio(&config, &weights)? {
            footprint.add_floats(&weights, audio.prefixes());
        }
        Ok(footprint)
    }

    /// Tensors as described by the files, by name.
    ///
    /// # Errors
    /// When a file is missing, truncated or not a safetensors file.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        Ok(self.checkpoint()?.infos().collect())
    }

    /// Returns the tensors as stored.
    fn checkpoint(&self) -> Result<Checkpoint> {
        match &self.gguf {
            Some(model) => model.checkpoint(),
            None => Checkpoint::open(&*self.files),
        }
    }

    /// Returns the config's architecture and decoder, and the tensors with the scales of its quantisation
    /// attached. The decoder has the output head of the tensors.
    fn decoder_and_weights(
        &self,
        config: &ModelConfig,
    ) -> Result<(&'static Architecture, DecoderSpec, Checkpoint)> {
        let architecture = architectures::find(&config.model_type)?;
        let mut spec = (architecture.spec)(config)?;
        let mut checkpoint = self.checkpoint()?;
        if let Some(quantization) = config.quantization()? {
            checkpoint.attach_scales(quantization)?;
        }
        architecture.choose_head(&mut spec, &checkpoint);
        Ok((architecture, spec, checkpoint))
    }

    /// Returns the config of a model that can be written in `format`; `None` is that of its tensors.
    fn config_to_quantize(&self, format: Option<WeightFormat>) -> Result<ModelConfig> {
        let config = self.config()?;
        match (config.stored_format()?, format) {
            (Some(stored), Some(requested)) => Err(Error::AlreadyQuantized { stored, requested }),
            (Some(stored), None) => {
                Err(unsupported("quantization_config.format", stored, "floats, and blocks of GGUF files")
                    .into())
            }
            (None, _) => Ok(config),
        }
    }

    /// End-of-sequence ids: those of the generation config, or else the tokenizer's `eos_token`.
    fn end_ids(&self, tokenizer: &Tokenizer) -> Result<Vec<TokenId>> {
        let ids = self.generation_config()?.eos_token_ids;
        if !ids.is_empty() {
            return Ok(ids);
        }
        let token = chat_template::eos_token(&*self.files)?;
        Ok(token.and_then(|text| tokenizer.token_id(&text)).into_iter().collect())
    }
}

/// Sanitizes a text for a terminal: removes control characters and keeps at most 100 characters.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// Returns the value of `license` in the YAML front matter (between `---` lines) of a model card.
fn licence_of_card(card: &[u8]) -> Option<String> {
    const MAX_LINES: usize = 1000;
    let head = String::from_utf8_lossy(&card[..card.len().min(1 << 16)]);
    let mut lines = head.lines();
    lines.next().filter(|line| line.trim_end() == "---")?;
    let licence = lines.take(MAX_LINES).take_while(|line| line.trim_end() != "---").find_map(|line| {
        let value = line.strip_prefix("license:")?.trim().trim_matches(['"', '\'']);
        Some(plain(value))
    });
    licence.filter(|licence| !licence.is_empty())
}

/// Numbers of parameters; shared ones count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// All parameters.
    pub all: u64,
    /// Active parameters of one token: all but those of experts that it is not routed to.
    pub of_token: u64,
}
