//! Images and audio for an engine's model.

use std::sync::{Arc, mpsc};

use lm_media::{AudioLimits, DecodeLimits};
use lm_model::{ImageOptions, LoadedModel};
use lm_tokenizer::{TextSegment, TokenId, Tokenizer};

use super::Engine;
use crate::error::{Error, Result};
use crate::media::{Encoders, Media, MediaForm, MediaKey, MediaLibrary, decoding};
use crate::media_kind::MediaKind;
use crate::params::EngineSettings;
use crate::scheduler::Command;

/// Texts and tokens that represent media of a kind in prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaTokens {
    /// Kind of the media.
    pub kind: MediaKind,
    /// Text that a chat template writes for a media item; the pieces of [`Media::pieces`] take its place.
    pub placeholder: String,
    /// Added token for each row of a media item.
    pub row: String,
    /// Its id.
    pub row_id: TokenId,
}

impl MediaTokens {
    /// Texts of all kinds that the encoders read.
    ///
    /// # Errors
    /// [`Error::MediaToken`] if the tokenizer lacks the token of an encoder's rows.
    fn of(encoders: &Encoders, tokenizer: &Tokenizer) -> Result<Vec<Self>> {
        let texts = MediaKind::ALL.into_iter().filter_map(|kind| Some((kind, encoders.texts(kind)?)));
        texts.map(|(kind, texts)| Self::new(kind, texts, tokenizer)).collect()
    }

    fn new(kind: MediaKind, texts: [&str; 2], tokenizer: &Tokenizer) -> Result<Self> {
        let [placeholder, row] = texts.map(str::to_owned);
        match tokenizer.encode_segments(&[TextSegment::Template(&row)])?[..] {
            [row_id] => Ok(Self { kind, placeholder, row, row_id }),
            _ => Err(Error::MediaToken { kind, token: row }),
        }
    }
}

/// Images and audio of an engine.
pub(super) struct EngineMedia {
    tokens: Vec<MediaTokens>,
    image_limits: DecodeLimits,
    audio_limits: AudioLimits,
    library: MediaLibrary,
}

impl EngineMedia {
    /// Describes the media that the model reads.
    ///
    /// # Errors
    /// [`Error::MediaToken`] if the tokenizer lacks the token of an encoder's rows.
    pub(super) fn new(loaded: &LoadedModel, settings: &EngineSettings) -> Result<Self> {
        let tokens = MediaTokens::of(&Encoders::of(loaded), &loaded.tokenizer)?;
        let (image_limits, audio_limits) = (settings.image_limits, settings.audio_limits);
        Ok(Self { tokens, image_limits, audio_limits, library: MediaLibrary::default() })
    }
}

impl Engine {
    /// Texts and tokens that represent media in prompts, one entry for each kind that the model reads.
    pub fn media_tokens(&self) -> &[MediaTokens] {
        &self.shared.media.tokens
    }

    /// Returns true if the model reads media of this kind.
    pub fn reads(&self, kind: MediaKind) -> bool {
        self.media_tokens().iter().any(|tokens| tokens.kind == kind)
    }

    /// Maximum file size of a media item of this kind, in bytes: that of
    /// [`EngineSettings::image_limits`](crate::EngineSettings::image_limits) or
    /// [`EngineSettings::audio_limits`](crate::EngineSettings::audio_limits).
    pub fn max_media_bytes(&self, kind: MediaKind) -> usize {
        match kind {
            MediaKind::Image => self.shared.media.image_limits.max_bytes,
            MediaKind::Audio => self.shared.media.audio_limits.max_bytes,
        }
    }

    /// Token that replaces the rows of media of this kind in the model's input.
    pub(crate) fn media_token(&self, kind: MediaKind) -> TokenId {
        self.media_tokens().iter().find(|tokens| tokens.kind == kind).map_or(0, |tokens| tokens.row_id)
    }

    /// Decodes an image and lays it out for the model. Its rows are encoded when a prompt needs them.
    ///
    /// The file may be PNG, JPEG, WebP, BMP or GIF, within
    /// [`EngineSettings::image_limits`](crate::EngineSettings::image_limits). While the result of an earlier
    /// call with the same file and options is in use, it is returned without decoding. A process decodes one
    /// file at a time.
    ///
    /// # Errors
    /// [`Error::NoVision`]; [`Error::Media`] for a file that is damaged or exceeds the limits;
    /// [`Error::Model`] for an image rejected by the model's preprocessing; [`Error::EngineStopped`], and the
    /// errors of loading an unloaded model.
    pub fn image(&self, bytes: impl Into<Arc<[u8]>>, options: &ImageOptions) -> Result<Arc<Media>> {
        let limits = self.shared.media.image_limits;
        self.read_media(bytes.into(), MediaForm::Image { options: *options, limits })
    }

    /// Decodes an audio clip and lays it out for the model, like [`Engine::image`].
    ///
    /// The file may be WAV, FLAC, MP3 or Ogg Vorbis, within
    /// [`EngineSettings::audio_limits`](crate::EngineSettings::audio_limits).
    ///
    /// # Errors
    /// [`Error::NoAudio`], and the other errors of [`Engine::image`].
    pub fn audio(&self, bytes: impl Into<Arc<[u8]>>) -> Result<Arc<Media>> {
        self.read_media(bytes.into(), MediaForm::Audio { limits: self.shared.media.audio_limits })
    }

    fn read_media(&self, bytes: Arc<[u8]>, form: MediaForm) -> Result<Arc<Media>> {
        if !self.reads(form.kind()) {
            return Err(match form.kind() {
                MediaKind::Image => Error::NoVision,
                MediaKind::Audio => Error::NoAudio,
            });
        }
        let key = MediaKey::new(&bytes, &form);
        if let Some(known) = self.shared.media.library.get(key) {
            return Ok(known);
        }
        let one_at_a_time = decoding();
        if let Some(known) = self.shared.media.library.get(key) {
            return Ok(known);
        }
        // Decodes the whole file, so that a truncated file is an error here and not in the middle of a
        // prompt.
        let extent = form.decode(&bytes)?.extent();
        drop(one_at_a_time); // The model may have to be loaded.
        let layout = self.encoders()?.layout(&extent)?;
        Ok(self.shared.media.library.add(Media::new(bytes, form, layout)))
    }

    fn encoders(&self) -> Result<Encoders> {
        let (answer, encoders) = mpsc::channel();
        self.send(Command::Encoders(answer))?;
        encoders.recv().map_err(|_| Error::EngineStopped)?
    }
}
