//! Encoders of a model, and their input.

use crate::media_kind::MediaKind;
use std::sync::Arc;

use lm_media::{Audio, AudioLimits, DecodeLimits, Image, ImageSize, SAMPLE_RATE};
use lm_model::{AudioEncoder, EncodedMedia, ImageOptions, LoadedModel, MediaLayout, VisionEncoder};

use crate::error::{Error, Result};

/// Kind of a media item, the options that change its rows, and the limits of its decoding.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MediaForm {
    Image { options: ImageOptions, limits: DecodeLimits },
    Audio { limits: AudioLimits },
}

impl MediaForm {
    pub fn kind(&self) -> MediaKind {
        match self {
            Self::Image { .. } => MediaKind::Image,
            Self::Audio { .. } => MediaKind::Audio,
        }
    }

    /// Kind and options as text, for hashes, which saved sessions hold: the words never change.
    pub fn tag(&self) -> String {
        match self {
            Self::Image { options: ImageOptions { token_budget }, .. } => {
                format!("picture {token_budget:?}\n")
            }
            Self::Audio { .. } => "sound\n".to_owned(),
        }
    }

    /// Decodes a file.
    pub fn decode(&self, bytes: &[u8]) -> Result<Decoded> {
        Ok(match self {
            Self::Image { options, limits } => Decoded::Image(Image::decode(bytes, limits)?, *options),
            Self::Audio { limits } => Decoded::Audio(Audio::decode(bytes, limits)?),
        })
    }
}

/// A decoded media item.
pub(crate) enum Decoded {
    Image(Image, ImageOptions),
    Audio(Audio),
}

/// Size of a decoded media item, which determines its rows.
pub(crate) enum Extent {
    Image(ImageSize, ImageOptions),
    /// Number of samples.
    Audio(usize),
}

impl Decoded {
    pub fn extent(&self) -> Extent {
        match self {
            Self::Image(image, options) => Extent::Image(image.size(), *options),
            Self::Audio(audio) => Extent::Audio(audio.samples().len()),
        }
    }
}

/// Encoders of a model: one for each kind of media that it reads.
#[derive(Clone, Default)]
pub(crate) struct Encoders {
    vision: Option<Arc<dyn VisionEncoder>>,
    audio: Option<Arc<dyn AudioEncoder>>,
}

impl Encoders {
    pub fn of(loaded: &LoadedModel) -> Self {
        Self { vision: loaded.vision.clone(), audio: loaded.audio.clone() }
    }

    /// Placeholder of templates and token of rows; `None` for media that the model does not read.
    pub fn texts(&self, kind: MediaKind) -> Option<[&str; 2]> {
        match kind {
            MediaKind::Image => self.vision.as_ref().map(|vision| [vision.placeholder(), vision.token()]),
            MediaKind::Audio => self.audio.as_ref().map(|audio| [audio.placeholder(), audio.token()]),
        }
    }

    /// Texts and rows of a media item in a prompt.
    pub fn layout(&self, extent: &Extent) -> Result<MediaLayout> {
        Ok(match extent {
            Extent::Image(size, options) => self.vision()?.layout(*size, options)?,
            Extent::Audio(samples) => {
                let audio = self.audio()?;
                check_length(*samples, audio.max_samples())?;
                audio.layout(*samples)?
            }
        })
    }

    /// Runs the encoder of the media item's kind.
    pub fn encode(&self, decoded: &Decoded) -> Result<EncodedMedia> {
        Ok(match decoded {
            Decoded::Image(image, options) => self.vision()?.encode(image, options)?,
            Decoded::Audio(audio) => self.audio()?.encode(audio)?,
        })
    }

    fn vision(&self) -> Result<&dyn VisionEncoder> {
        self.vision.as_deref().ok_or(Error::NoVision)
    }

    fn audio(&self) -> Result<&dyn AudioEncoder> {
        self.audio.as_deref().ok_or(Error::NoAudio)
    }
}

/// Rejects an audio clip longer than the model's limit.
fn check_length(samples: usize, max_samples: Option<usize>) -> Result<()> {
    match max_samples.filter(|&limit| samples > limit) {
        Some(limit) => Err(lm_media::Error::TooLong { limit: (limit / SAMPLE_RATE) as u32 }.into()),
        None => Ok(()),
    }
}
