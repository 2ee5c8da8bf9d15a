//! Towers and projectors of images in GGUF files of their own (`mmproj`): metadata as the settings that
//! vision families read, tensors under the names of their checkpoints.

mod names;
mod patches;

use lm_formats::{Error as FormatError, FileBytes, GgufShard, GgufTensor, ModelFiles, is_later_shard};
use serde_json::{Value, json};

use self::names::Names;
use crate::checkpoint::{Checkpoint, RowOrder, StoredCoding, StoredTensor, StoredValues, TensorType};
use crate::config::shown;
use crate::error::{Error, Result};
use crate::gguf::{Clip, GgufProjector, ProjectorConfig, decimal};

/// `general.architecture` of these files.
const ARCHITECTURE: &str = "clip";

/// An `mmproj` file.
#[derive(Debug)]
pub(crate) struct Projector {
    shard: GgufShard,
    /// True if the caller named the file; an unnamed file is ignored if it does not belong to the model.
    is_named: bool,
}

impl Projector {
    /// Opens the file that the caller names.
    ///
    /// # Errors
    /// When it is not a GGUF file of a tower or projector.
    pub(crate) fn open(files: &dyn ModelFiles, name: &str) -> Result<Self> {
        let shard = GgufShard::read(files, name)?;
        let metadata = shard.file.metadata();
        match metadata.architecture()? {
            ARCHITECTURE => Ok(Self { shard, is_named: true }),
            other => Err(metadata.unsupported("general.architecture", other, ARCHITECTURE).into()),
        }
    }

    /// Opens the file in the folder of a GGUF model, if there is exactly one. A file without a tower is
    /// ignored.
    pub(crate) fn find(files: &dyn ModelFiles) -> Result<Option<Self>> {
        let mut names = files.list("")?;
        names.retain(|name| is_projector(name));
        match &*names {
            [] => {}
            [name] => return Ok(Self::open_unnamed(files, name)),
            _ => tracing::warn!(?names, "several mmproj files are beside the model: one has to be named"),
        }
        Ok(None)
    }

    /// Opens a file that the caller did not name; `None`, with a log message, if it has no tower.
    pub(crate) fn open_unnamed(files: &dyn ModelFiles, name: &str) -> Option<Self> {
        Self::open(files, name)
            .map(|found| Self { is_named: false, ..found })
            .inspect_err(|error| tracing::warn!(%error, "the mmproj file of the model is not used"))
            .ok()
    }

    /// True if the caller named the file.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// File name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.shard.name
    }

    /// `clip.projector_type`.
    pub(crate) fn projector_type(&self) -> Result<String> {
        Ok(self.clip().projector_type()?.to_owned())
    }

    /// Error for a projector of an unknown type.
    pub(crate) fn unsupported_type(&self, kind: &str, known: String) -> FormatError {
        self.shard.file.metadata().unsupported("clip.projector_type", shown(&kind), known)
    }

    /// Metadata and tensors.
    fn clip(&self) -> Clip<'_> {
        Clip::new(&self.shard)
    }

    /// Checks that the file belongs to a text model of this architecture and width.
    ///
    /// # Errors
    /// An error about the file with the values of both.
    pub(crate) fn check_text_model(
        &self,
        rules: &GgufProjector,
        architecture: &str,
        width: usize,
    ) -> Result<()> {
        let metadata = self.shard.file.metadata();
        if !rules.text_models.contains(&architecture) {
            let known = format!("a projector for text models of {architecture}");
            return Err(metadata.unsupported("clip.projector_type", rules.projector_type, known).into());
        }
        let clip = self.clip();
        match clip.required_size("projection_dim")? {
            own if own == width => Ok(()),
            own => Err(clip
                .invalid("projection_dim", own, format!("{width}, the width of the text model"))
                .into()),
        }
    }

    /// Settings as the family reads them.
    pub(crate) fn config(&self, rules: &GgufProjector) -> Result<ProjectorConfig, FormatError> {
        let clip = self.clip();
        let mut config = ProjectorConfig::default();
        let (_, _, _) =
            (clip.projector_type()?, clip.size("projection_dim")?, clip.flag("has_vision_encoder")?);
        for (from, to) in rules.keys {
            if let Some(value) = clip.json(from)? {
                config.vision.insert((*to).to_owned(), value);
            }
        }
        for key in ["image_mean", "image_std"] {
            if let Some(numbers) = clip.channels(key)? {
                let numbers =
                    numbers.iter().map(|&number| decimal(number.into()).map_or(Value::Null, Value::Number));
                config.preprocessor.insert(key.to_owned(), numbers.collect());
            }
        }
        let activation = match (clip.flag("use_gelu")?, clip.flag("use_silu")?) {
            (true, true) => {
                return Err(self.shard.file.metadata().invalid(
                    "clip.use_silu",
                    true,
                    "false: clip.use_gelu is true",
                ));
            }
            (true, false) => "gelu_pytorch_tanh",
            (false, true) => "silu",
            (false, false) => "quick_gelu",
        };
        if let Some(key) = rules.activation {
            config.vision.insert(key.to_owned(), json!(activation));
        }
        (rules.read)(&clip, &mut config)?;
        clip.refuse_unread(rules)?;
        Ok(config)
    }

    /// Tensors under their names in the family's checkpoint.
    ///
    /// # Errors
    /// When a tensor does not belong to the family.
    pub(crate) fn checkpoint(&self, rules: &'static GgufProjector) -> Result<Checkpoint> {
        let clip = self.clip();
        let names = Names::new(rules, &clip, clip.required_size("embedding_length")?);
        let (patches_name, order) = rules.patches;
        let mut checkpoint = Checkpoint::new(self.shard.name.clone());
        let reordered = patches::reordered(&clip, order)?;
        let mut tensors = Vec::new();
        for tensor in self.shard.file.tensors() {
            let is_patches = [patches::PATCHES, patches::SECOND_FRAME].contains(&&*tensor.name);
            if names::is_of_audio(&tensor.name) || (is_patches && reordered.is_some()) {
                continue;
            }
            let own = if tensor.name == patches::PATCHES {
                Some(patches_name.to_owned())
            } else {
                names.of(&tensor.name)
            };
            let unexpected = || Error::UnexpectedTensor {
                file: self.shard.name.clone(),
                tensor: tensor.name.clone(),
                architecture: rules.projector_type.to_owned(),
            };
            let values =
                rules.values.iter().find(|row| row.0 == tensor.name).map_or(StoredValues::Same, |row| row.1);
            tensors.push((own.ok_or_else(unexpected)?, stored(tensor, values)));
        }
        checkpoint.add_tensors(&self.shard.name, self.shard.bytes.clone(), tensors)?;
        if let Some(patches::Reordered { tensor, bytes }) = reordered {
            let tensors = [(patches_name.to_owned(), stored(&tensor, StoredValues::Same))];
            checkpoint.add_tensors(&self.shard.name, FileBytes::Owned(bytes.into()), tensors)?;
        }
        checkpoint.join(names.joined());
        Ok(checkpoint)
    }
}

/// True for the name of an `mmproj` file.
pub(crate) fn is_projector(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with(".gguf") && lower.contains("mmproj") && !is_later_shard(name)
}

fn stored(tensor: &GgufTensor, values: StoredValues) -> StoredTensor {
    let (ty, shape, range) = (TensorType::of_gguf(tensor.ty), tensor.shape.clone(), tensor.range.clone());
    StoredTensor { file: 0, ty, shape, range, order: RowOrder::Same, values, coding: StoredCoding::Rows }
}
