//! A model in one GGUF file or several shards: its metadata as the files of a Hugging Face folder, its
//! tensors under the names of the model; and writing.

mod config;
mod names;
mod texts;
mod tokenizer_difference;
mod unused;
mod write;

pub(crate) use self::tokenizer_difference::{Difference, ids_difference, tokenizer_difference};
pub(crate) use self::write::{MatrixTypes, NewFile, NewHead, Texts, matrix_name};

use lm_formats::{
    Error as FormatError, FileBytes, GgufEntry, GgufMetadata, GgufShard, ModelFiles, file_names,
    is_later_shard,
};
use serde_json::{Map, Value};

use self::config::config;
use crate::architectures;
use crate::checkpoint::{Checkpoint, StoredTensor};
use crate::error::{Error, Result};
use crate::gguf::{Description, GgufArchitecture};
use crate::gguf_projector::is_projector;

/// GGUF model that serves the files of a Hugging Face folder.
#[derive(Debug)]
pub(crate) struct GgufModel {
    location: String,
    /// The first one has the metadata.
    shards: Vec<GgufShard>,
}

impl GgufModel {
    /// Returns the file name of the GGUF model in a folder without config.json: its first shard, ignoring
    /// image encoders (`mmproj`).
    ///
    /// # Errors
    /// When there are several models.
    pub(crate) fn find(files: &dyn ModelFiles) -> Result<Option<String>> {
        let mut names = files.list("")?;
        if names.iter().any(|name| name == file_names::CONFIG) {
            return Ok(None);
        }
        let is_model =
            |name: &str| !is_later_shard(name) && !is_projector(name) && !is_importance_matrix(name);
        names.retain(|name| name.ends_with(".gguf") && is_model(name));
        if names.len() > 1 {
            return Err(Error::SeveralModels { location: files.location(), names });
        }
        Ok(names.pop())
    }

    /// Maps the file, and the other shards if it is one of several.
    pub(crate) fn open(files: &dyn ModelFiles, name: &str) -> Result<Self> {
        let shards = GgufShard::read_all(files, name)?;
        Ok(Self { location: format!("{}/{name}", files.location()), shards })
    }

    /// Wraps a model in one file.
    pub(super) fn of_shard(shard: GgufShard) -> Self {
        Self { location: shard.name.clone(), shards: vec![shard] }
    }

    /// Returns the metadata as stored, with everything but the weights.
    pub(crate) fn head(&self) -> Result<NewHead> {
        let (model, architecture) = self.description()?;
        let mut head = NewHead::new(architecture.name);
        for (key, _) in model.metadata.keys().filter(|(key, _)| !NewHead::has_own(key)) {
            if let Some((ty, bytes)) = model.metadata.raw(key)? {
                head.keys.put(key, GgufEntry::Copied(ty, bytes.to_vec()));
            }
        }
        for name in names::METADATA_TENSORS {
            head.vectors.extend(model.vector(name)?.map(|values| (name.to_owned(), values)));
        }
        Ok(head)
    }

    /// Returns the stored form of a tensor.
    pub(super) fn stored(&self, name: &str) -> Result<StoredTensor> {
        let (model, architecture) = self.description()?;
        let missing =
            || FormatError::MissingTensor { location: self.location.clone(), tensor: name.to_owned() };
        let (_, tensor) = model.tensor(name).ok_or_else(missing)?;
        Ok(names::stored(architecture, &model, tensor)?)
    }

    /// File name without its extension.
    pub(crate) fn name(&self) -> &str {
        let name = &self.shards[0].name;
        name.strip_suffix(".gguf").unwrap_or(name)
    }

    /// Name of the model in its metadata.
    pub(crate) fn stored_name(&self) -> Result<Option<&str>> {
        Ok(self.metadata().str("general.name")?.filter(|name| !name.trim().is_empty()))
    }

    /// Id of the file's format.
    pub(crate) fn file_type(&self) -> Result<Option<u32>> {
        let id = self.metadata().size(write::FILE_TYPE)?;
        Ok(id.and_then(|id| u32::try_from(id).ok()))
    }

    /// Metadata of the model.
    pub(crate) fn metadata(&self) -> &GgufMetadata {
        self.shards[0].file.metadata()
    }

    /// Returns the tensors under their names in the model.
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint> {
        let (model, architecture) = self.description()?;
        let num_layers = model.num_layers()?;
        let mut checkpoint = Checkpoint::new(self.location.clone());
        for shard in &self.shards {
            let mut tensors = Vec::new();
            for tensor in shard.file.tensors() {
                if let Some(name) = names::model_name(architecture, num_layers, &tensor.name) {
                    tensors.push((name, names::stored(architecture, &model, tensor)?));
                }
            }
            checkpoint.add_tensors(&shard.name, shard.bytes.clone(), tensors)?;
        }
        Ok(checkpoint)
    }

    fn description(&self) -> Result<(Description<'_>, &'static GgufArchitecture), FormatError> {
        let model = Description::new(self.metadata(), &self.shards)?;
        let architecture = architectures::of_gguf(&model)?;
        Ok((model, architecture))
    }

    fn config(&self) -> Result<Map<String, Value>, FormatError> {
        let (model, architecture) = self.description()?;
        config(&model, architecture)
    }
}

impl ModelFiles for GgufModel {
    fn read(&self, name: &str) -> Result<Option<FileBytes>, FormatError> {
        let text = match name {
            file_names::CONFIG => Some(Value::Object(self.config()?).to_string()),
            _ => texts::file(self.metadata(), name)?,
        };
        Ok(text.map(|text| FileBytes::Owned(text.into_bytes().into())))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, FormatError> {
        texts::list(self.metadata(), folder)
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}

/// True for the name of an importance matrix, as llama.cpp's users name them.
fn is_importance_matrix(name: &str) -> bool {
    name.to_ascii_lowercase().contains("imatrix")
}
