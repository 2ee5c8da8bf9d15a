//! Encoders of images and audio: common code of the families. A family is a row of `ALL_VISION_FAMILIES` or
//! `ALL_AUDIO_FAMILIES`.

pub(crate) mod blocks;
mod projector;
pub(crate) mod settings;

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;
use lm_formats::ModelFiles;
use lm_kernels::Device;

use self::blocks::TensorReader;
use self::settings::{EncoderSettings, SettingsKeys};
use crate::batch::{Embeddings, EncodedMedia};
use crate::checkpoint::Checkpoint;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::gguf::GgufProjector;
use crate::loader::LoadProgress;

/// Encoder of a model family: preprocessing, tower and projector. `E` is its interface,
/// [`VisionEncoder`](crate::VisionEncoder) or [`AudioEncoder`](crate::AudioEncoder).
pub struct EncoderFamily<E: ?Sized + 'static> {
    /// `model_type` values of the outer config.json.
    pub model_types: &'static [&'static str],
    /// Folders under `testdata/vision/` or `testdata/audio/`, each with a checkpoint and results of the
    /// reference implementation.
    pub goldens: &'static [&'static str],
    /// Prefixes of the names of its tensors.
    pub(crate) prefixes: &'static [&'static str],
    /// Names of its first layer's weight, as checkpoints spell it: a checkpoint without it has no encoder.
    pub(crate) first_weights: &'static [&'static str],
    /// Rules for its `mmproj` files; `None` without such files, or if another family has the rules of its
    /// projector.
    pub(crate) gguf: Option<&'static GgufProjector>,
    /// Loads the encoder.
    pub(crate) load: fn(&EncoderSettings, &mut TensorReader<'_>) -> Result<Arc<E>>,
}

impl<E: ?Sized> fmt::Debug for EncoderFamily<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncoderFamily")
            .field("model_types", &self.model_types)
            .field("goldens", &self.goldens)
            .finish_non_exhaustive()
    }
}

/// Kind of media of an encoder interface.
pub(crate) struct Modality<E: ?Sized + 'static> {
    /// Adjective for messages: `vision`.
    pub(crate) name: &'static str,
    /// Keys of the settings in files.
    pub(crate) keys: SettingsKeys,
    /// Families with such an encoder.
    pub(crate) families: &'static [&'static EncoderFamily<E>],
}

/// Encoder of a model folder before loading.
pub(crate) struct EncoderPart<E: ?Sized + 'static> {
    family: &'static EncoderFamily<E>,
    settings: EncoderSettings,
    /// Bytes of its tensors in the files.
    pub(crate) stored_bytes: u64,
    /// Tensors that are not among the model's: those of an `mmproj` file, and the rules for it.
    own: Option<(Checkpoint, &'static GgufProjector)>,
}

impl<E: ?Sized> EncoderPart<E> {
    /// Finds a model's encoder of a modality; `None` if the family is unknown or the files lack the tensors:
    /// the model then has no encoder, which is logged.
    pub(crate) fn find(
        modality: &Modality<E>,
        files: &dyn ModelFiles,
        config: &ModelConfig,
        checkpoint: &Checkpoint,
    ) -> Result<Option<Self>> {
        let Some(settings) = EncoderSettings::read(files, config, modality.keys)? else { return Ok(None) };
        let (model_type, part) = (&*settings.model_type, modality.name);
        let Some(family) = modality.families.iter().find(|family| family.model_types.contains(&model_type))
        else {
            tracing::info!(model_type, part, "an encoder of an unknown family is skipped");
            return Ok(None);
        };
        if !family.first_weights.iter().any(|name| checkpoint.contains(name)) {
            tracing::info!(model_type, part, "the files lack the tensors of an encoder, which is skipped");
            return Ok(None);
        }
        let settings = settings.with_preprocessor(files, modality.keys)?;
        let stored_bytes = checkpoint.bytes_under(family.prefixes);
        Ok(Some(Self { family, settings, stored_bytes, own: None }))
    }

    /// Prefixes of the names of its tensors.
    pub(crate) fn prefixes(&self) -> &'static [&'static str] {
        self.family.prefixes
    }

    /// The encoder's tensors, given those of the model.
    pub(crate) fn checkpoint<'a>(&'a self, of_model: &'a Checkpoint) -> &'a Checkpoint {
        self.own.as_ref().map_or(of_model, |(own, _)| own)
    }

    /// Bytes of its tensors that are not among the model's.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.own.as_ref().map_or(0, |_| self.stored_bytes)
    }

    /// Samples of these tensors, for the model's fingerprint.
    pub(crate) fn own_samples(&self) -> Vec<u8> {
        self.own.as_ref().map_or_else(Vec::new, |(own, _)| own.samples())
    }

    /// Loads the encoder after `done_bytes` of other tensors; returns it with its size in memory in bytes.
    pub(crate) fn load(
        &self,
        checkpoint: &Checkpoint,
        device: Device,
        done_bytes: u64,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<(Arc<E>, u64)> {
        let bytes = [done_bytes, done_bytes + self.stored_bytes];
        let mut tensors = TensorReader::new(self.checkpoint(checkpoint), device, bytes, progress)?;
        let encoder = (self.family.load)(&self.settings, &mut tensors);
        let encoder = encoder.map_err(|error| match &self.own {
            Some((own, rules)) => projector::of_file(error, own.location(), rules),
            None => error,
        })?;
        Ok((encoder, tensors.weight_bytes))
    }
}

/// Copies the rows of an encoded media item, `[rows, hidden]`, to the host.
pub(crate) fn encoded(rows: Tensor<2>) -> Result<EncodedMedia> {
    let [_, hidden_size] = rows.dims();
    let rows = Embeddings { values: lm_kernels::to_host(rows)?, hidden_size };
    Ok(EncodedMedia { rows, deep: Vec::new() })
}
