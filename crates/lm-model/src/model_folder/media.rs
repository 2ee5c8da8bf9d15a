//! Encoders of a model folder: of images and of audio.

use std::path::Path;
use std::sync::Arc;

use lm_formats::Directory;

use super::ModelFolder;
use crate::audio::AUDIO;
use crate::checkpoint::Checkpoint;
use crate::config::ModelConfig;
use crate::encoders::EncoderPart;
use crate::error::{Error, Result};
use crate::gguf_projector::Projector;
use crate::media::{AudioEncoder, VisionEncoder};
use crate::vision::VISION;

impl ModelFolder {
    /// Opens a GGUF model with the tower and projector of its images, which llama.cpp's converter writes to a
    /// GGUF file of their own (`--mmproj`).
    ///
    /// # Errors
    /// - as [`ModelFolder::open`]
    /// - [`lm_formats::Error::UnsupportedValue`] when the second file is another kind of GGUF file
    /// - [`Error::ProjectorWithoutGguf`] when the model is a Hugging Face folder, which contains its tower
    ///
    /// That the two belong together is checked by [`ModelFolder::load`] and [`ModelFolder::footprint`].
    pub fn open_with_projector(model: impl AsRef<Path>, projector: impl AsRef<Path>) -> Result<Self> {
        let folder = Self::open(model)?;
        if folder.gguf.is_none() {
            return Err(Error::ProjectorWithoutGguf { model: folder.name });
        }
        let (directory, name) = place(projector.as_ref())?;
        let projector = Projector::open(&directory, &name)?;
        Ok(Self { projector: Some(Arc::new(projector)), ..folder })
    }

    /// Returns a GGUF model with the tower and projector of a model store, under any file name. As with a
    /// file beside the model, a foreign or unsupported file is ignored with a log message, and the model
    /// takes only text.
    ///
    /// # Errors
    /// When the folder does not exist.
    pub fn with_stored_projector(self, projector: impl AsRef<Path>) -> Result<Self> {
        let (directory, name) = place(projector.as_ref())?;
        let projector = Projector::open_unnamed(&directory, &name).map(Arc::new);
        Ok(Self { projector, ..self })
    }

    /// Name of the GGUF file with the vision encoder, beside the model or named; `None` for a model without
    /// one. It may not belong to the model: see [`ModelFolder::reads_images`].
    pub fn projector_file(&self) -> Option<&str> {
        self.projector.as_deref().map(Projector::name)
    }

    /// Returns true if the model reads images: its files have a vision tower of a known family. The tower is
    /// not loaded.
    ///
    /// # Errors
    /// As [`ModelFolder::footprint`].
    pub fn reads_images(&self) -> Result<bool> {
        Ok(self.vision(&self.config()?, &self.checkpoint()?)?.is_some())
    }

    /// Returns true if the model reads audio: its files have an audio encoder of a known family. The encoder
    /// is not loaded.
    ///
    /// # Errors
    /// As [`ModelFolder::footprint`].
    pub fn reads_audio(&self) -> Result<bool> {
        Ok(self.audio(&self.config()?, &self.checkpoint()?)?.is_some())
    }

    /// Prefixes of the names of the encoders' tensors.
    pub(super) fn encoder_prefixes(
        &self,
        config: &ModelConfig,
        weights: &Checkpoint,
    ) -> Result<Vec<&'static str>> {
        let vision = self.vision(config, weights)?.map_or(&[][..], |part| part.prefixes());
        let audio = self.audio(config, weights)?.map_or(&[][..], |part| part.prefixes());
        Ok([vision, audio].concat())
    }

    /// Finds the audio encoder.
    pub(super) fn audio(
        &self,
        config: &ModelConfig,
        weights: &Checkpoint,
    ) -> Result<Option<EncoderPart<dyn AudioEncoder>>> {
        EncoderPart::find(&AUDIO, &*self.files, config, weights)
    }

    /// Finds the vision part, among the model's tensors or in a file of its own.
    pub(super) fn vision(
        &self,
        config: &ModelConfig,
        weights: &Checkpoint,
    ) -> Result<Option<EncoderPart<dyn VisionEncoder>>> {
        match (&self.gguf, &self.projector) {
            (Some(model), Some(projector)) => {
                EncoderPart::of_projector(&VISION, projector, model.metadata().architecture()?, config)
            }
            _ => EncoderPart::find(&VISION, &*self.files, config, weights),
        }
    }
}

/// Folder and name of a file.
pub(super) fn place(path: &Path) -> Result<(Directory, String)> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((Directory::open(folder)?, path.file_name().unwrap_or_default().to_string_lossy().into_owned()))
}
