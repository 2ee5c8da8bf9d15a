//! A model in one GGUF file, or in several parts of one.

use serde_json::{Map, Value};

use super::architectures::{self, GgufArchitecture};
use super::config::config;
use super::description::Description;
use super::{GgufFile, GgufMetadata, NewHead, Written, is_later_part, names, split, texts};
use crate::config::CONFIG_FILE;
use crate::model_folder::{FileBytes, ModelFiles, read_required};
use crate::weights::{Checkpoint, StoredTensor};
use crate::{Error, Result};

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
    pub(super) fn read(files: &dyn ModelFiles, name: &str) -> Result<Self> {
        let bytes = read_required(files, name)?;
        let file = GgufFile::read(name, bytes.clone())?;
        Ok(Self { name: name.to_owned(), bytes, file })
    }
}

impl GgufModel {
    /// The file of the one model in a folder, where that is how it is kept: the first of several parts, and none of an encoder
    /// for images.
    ///
    /// # Errors
    /// When there are several.
    pub(crate) fn find(files: &dyn ModelFiles) -> Result<Option<String>> {
        let mut names = files.list("")?;
        if names.iter().any(|name| name == CONFIG_FILE) {
            return Ok(None);
        }
        names.retain(|name| name.ends_with(".gguf") && !is_later_part(name) && !name.contains("mmproj"));
        if names.len() > 1 {
            return Err(Error::SeveralModels { location: files.location(), names });
        }
        Ok(names.pop())
    }

    /// Maps the file, and its other parts where it is one of several.
    pub(crate) fn open(files: &dyn ModelFiles, name: &str) -> Result<Self> {
        let parts = split::all_parts(files, Part::read(files, name)?)?;
        Ok(Self { location: format!("{}/{name}", files.location()), parts })
    }

    /// A model in one file.
    pub(super) fn of_part(part: Part) -> Self {
        Self { location: part.name.clone(), parts: vec![part] }
    }

    /// What the file says of the model beside its weights, as it says it.
    pub(crate) fn head(&self) -> Result<NewHead> {
        let (model, architecture) = self.description()?;
        let mut head = NewHead::new(architecture.name);
        for (key, _) in model.metadata.keys().filter(|(key, _)| !NewHead::has_own(key)) {
            if let Some((ty, bytes)) = model.metadata.raw(key)? {
                head.keys.put(key, Written::Copied(ty, bytes.to_vec()));
            }
        }
        for name in names::SETTINGS {
            head.vectors.extend(model.vector(name)?.map(|values| (name.to_owned(), values)));
        }
        Ok(head)
    }

    /// How a tensor of the file is stored.
    pub(super) fn stored(&self, name: &str) -> Result<StoredTensor> {
        let (model, architecture) = self.description()?;
        let missing = || Error::MissingTensor { location: self.location.clone(), tensor: name.to_owned() };
        let (_, tensor) = model.tensor(name).ok_or_else(missing)?;
        names::stored(architecture, &model, tensor)
    }

    /// Name of the file without its ending.
    pub(crate) fn name(&self) -> &str {
        let name = &self.parts[0].name;
        name.strip_suffix(".gguf").unwrap_or(name)
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
        let model = Description::new(self.metadata(), &self.parts)?;
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
