//! A model in one GGUF file, or in several parts of one.

use std::path::Path;

use serde_json::{Map, Value};

use super::architectures::{self, GgufArchitecture};
use super::config::config;
use super::description::Description;
use super::{GgufFile, GgufMetadata, names, split, texts};
use crate::Result;
use crate::config::CONFIG_FILE;
use crate::model_folder::{FileBytes, ModelFiles};
use crate::weights::Checkpoint;

/// One of the files of a model.
#[derive(Debug)]
pub(super) struct Part {
    /// The file, as messages call it.
    pub(super) name: String,
    pub(super) bytes: FileBytes,
    pub(super) file: GgufFile,
}

/// A model in GGUF, which answers for the files that a Hugging Face folder would have.
#[derive(Debug)]
pub(crate) struct GgufModel {
    location: String,
    /// The first has the settings.
    parts: Vec<Part>,
}

impl Part {
    /// Reads the description of a file.
    pub(super) fn read(name: String, bytes: FileBytes) -> Result<Self> {
        let file = GgufFile::read(&name, bytes.clone())?;
        Ok(Self { name, bytes, file })
    }
}

impl GgufModel {
    /// Maps the file, and its other parts where it is one of several.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let first = Part::read(path.display().to_string(), FileBytes::map(path)?)?;
        let parts = split::all_parts(path, first)?;
        Ok(Self { location: path.display().to_string(), parts })
    }

    /// The settings.
    pub(crate) fn metadata(&self) -> &GgufMetadata {
        self.parts[0].file.metadata()
    }

    /// The tensors under their names in the model.
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint> {
        let (model, architecture) = self.description()?;
        let num_layers = model.num_layers()?;
        let mut checkpoint = Checkpoint::new(self.location.clone());
        for part in &self.parts {
            let mut tensors = Vec::new();
            for tensor in part.file.tensors() {
                if let Some(name) = names::model_name(architecture, num_layers, &tensor.name) {
                    tensors.push((name, names::stored(architecture, &model, tensor)?));
                }
            }
            checkpoint.add_tensors(&part.name, part.bytes.clone(), tensors)?;
        }
        Ok(checkpoint)
    }

    fn description(&self) -> Result<(Description<'_>, &'static GgufArchitecture)> {
        let metadata = self.metadata();
        let model = Description { metadata, parts: &self.parts, architecture: metadata.architecture()? };
        let architecture = architectures::find(&model)?;
        Ok((model, architecture))
    }

    fn config(&self) -> Result<Map<String, Value>> {
        let (model, architecture) = self.description()?;
        config(&model, architecture)
    }
}

impl ModelFiles for GgufModel {
    fn read(&self, name: &str) -> Result<Option<FileBytes>> {
        let text = match name {
            CONFIG_FILE => Some(Value::Object(self.config()?).to_string()),
            _ => texts::file(self.metadata(), name)?,
        };
        Ok(text.map(|text| FileBytes::Owned(text.into_bytes().into())))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        texts::list(self.metadata(), folder)
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}
