//! Encoders of a model, and media as they take them.

use crate::media_kind::MediaKind;
use std::sync::Arc;

use lm_media::{DecodeLimits, Picture, PictureSize, SAMPLE_RATE, Sound, SoundLimits};
use lm_model::{AudioEncoder, EncodedMedia, LoadedModel, MediaLayout, PictureOptions, VisionEncoder};

use crate::error::{Error, Result};

/// Kind of a medium, the options that change its rows, and the limits of its decoding.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MediaForm {
    Picture { options: PictureOptions, limits: DecodeLimits },
    Sound { limits: SoundLimits },
}

impl MediaForm {
    pub fn kind(&self) -> MediaKind {
        match self {
            Self::Picture { .. } => MediaKind::Picture,
            Self::Sound { .. } => MediaKind::Sound,
        }
    }

    /// Kind and options as text, for hashes.
    pub fn tag(&self) -> String {
        match self {
            Self::Picture { options: PictureOptions { token_budget }, .. } => {
                format!("picture {token_budget:?}\n")
            }
            Self::Sound { .. } => "sound\n".to_owned(),
        }
    }

    /// Decodes a file.
    pub fn decode(&self, bytes: &[u8]) -> Result<Decoded> {
        Ok(match self {
            Self::Picture { options, limits } => Decoded::Picture(Picture::decode(bytes, limits)?, *options),
            Self::Sound { limits } => Decoded::Sound(Sound::decode(bytes, limits)?),
        })
    }
}

/// A decoded medium.
pub(crate) enum Decoded {
    Picture(Picture, PictureOptions),
    Sound(Sound),
}

/// Size of a decoded medium, which its rows follow from.
pub(crate) enum Extent {
    Picture(PictureSize, PictureOptions),
    /// Number of samples.
    Sound(usize),
}

impl Decoded {
    pub fn extent(&self) -> Extent {
        match self {
            Self::Picture(picture, options) => Extent::Picture(picture.size(), *options),
            Self::Sound(sound) => Extent::Sound(sound.samples().len()),
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
            MediaKind::Picture => self.vision.as_ref().map(|vision| [vision.placeholder(), vision.token()]),
            MediaKind::Sound => self.audio.as_ref().map(|audio| [audio.placeholder(), audio.token()]),
        }
    }

    /// Texts and rows of a medium in a prompt.
    pub fn layout(&self, extent: &Extent) -> Result<MediaLayout> {
        Ok(match extent {
            Extent::Picture(size, options) => self.vision()?.layout(*size, options)?,
            Extent::Sound(samples) => {
                let audio = self.audio()?;
                check_length(*samples, audio.max_samples())?;
                audio.layout(*samples)?
            }
        })
    }

    /// Runs the encoder of the medium's kind.
    pub fn encode(&self, decoded: &Decoded) -> Result<EncodedMedia> {
        Ok(match decoded {
            Decoded::Picture(picture, options) => self.vision()?.encode(picture, options)?,
            Decoded::Sound(sound) => self.audio()?.encode(sound)?,
        })
    }

    fn vision(&self) -> Result<&dyn VisionEncoder> {
        self.vision.as_deref().ok_or(Error::NoVision)
    }

    fn audio(&self) -> Result<&dyn AudioEncoder> {
        self.audio.as_deref().ok_or(Error::NoAudio)
    }
}

/// Refuses a sound of which the model would hear the beginning only.
fn check_length(samples: usize, max_samples: Option<usize>) -> Result<()> {
    match max_samples.filter(|&limit| samples > limit) {
        Some(limit) => Err(lm_media::Error::TooLong { limit: (limit / SAMPLE_RATE) as u32 }.into()),
        None => Ok(()),
    }
}
