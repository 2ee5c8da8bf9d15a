//! Pictures for an engine's model.

use std::sync::{Arc, mpsc};

use lm_media::{DecodeLimits, Picture};
use lm_model::{PictureOptions, VisionEncoder};
use lm_tokenizer::{TextSegment, TokenId, Tokenizer};

use super::Engine;
use crate::media::MediaKey;
use crate::request::Command;
use crate::{Error, Media, Result};

/// Texts that stand for pictures in prompts of a model that reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureTokens {
    /// Text that a chat template writes for a picture; the pieces of [`Media::pieces`] take its place.
    pub placeholder: String,
    /// Added token that stands for a row of a picture.
    pub row: String,
    /// Its id.
    pub row_id: TokenId,
}

impl PictureTokens {
    /// # Errors
    /// [`Error::PictureToken`] if the tokenizer lacks the token of the encoder's rows.
    pub(super) fn new(vision: &dyn VisionEncoder, tokenizer: &Tokenizer) -> Result<Self> {
        let ids = tokenizer.encode_segments(&[TextSegment::Template(vision.token())])?;
        match ids[..] {
            [row_id] => {
                let (placeholder, row) = (vision.placeholder().to_owned(), vision.token().to_owned());
                Ok(Self { placeholder, row, row_id })
            }
            _ => Err(Error::PictureToken { token: vision.token().to_owned() }),
        }
    }
}

impl Engine {
    /// Texts that stand for pictures in prompts; `None` for a model that reads text only.
    pub fn picture_tokens(&self) -> Option<&PictureTokens> {
        self.shared.pictures.as_ref()
    }

    /// Limits of the pictures that are decoded.
    pub fn picture_limits(&self) -> &DecodeLimits {
        &self.shared.picture_limits
    }

    /// Token that the model gets in place of the rows of media.
    pub(crate) fn media_token(&self) -> TokenId {
        self.shared.pictures.as_ref().map_or(0, |tokens| tokens.row_id)
    }

    /// Decodes a picture and lays it out for the model. Its rows are encoded when a prompt needs them.
    ///
    /// The file may be PNG, JPEG, WebP, BMP or GIF, within [`EngineSettings::picture_limits`](crate::EngineSettings::picture_limits). While
    /// the result of an earlier call with the same file and options is in use, it is returned, and nothing is decoded. Files are decoded one at a
    /// time.
    ///
    /// # Errors
    /// [`Error::NoVision`]; [`Error::Media`] for a file that is damaged or exceeds the limits; [`Error::Model`] for a picture that the
    /// model's preprocessing refuses; [`Error::EngineStopped`], and the errors of loading a model that was unloaded.
    pub fn picture(&self, bytes: impl Into<Arc<[u8]>>, options: &PictureOptions) -> Result<Arc<Media>> {
        if self.shared.pictures.is_none() {
            return Err(Error::NoVision);
        }
        let bytes = bytes.into();
        let key = MediaKey::of_picture(&bytes, options);
        if let Some(known) = self.shared.media.get(key) {
            return Ok(known);
        }
        let _one_at_a_time = self.shared.media.decoding();
        if let Some(known) = self.shared.media.get(key) {
            return Ok(known);
        }
        // Decoded whole, so that a truncated file is an error here and not in the middle of a prompt.
        let limits = self.shared.picture_limits;
        let size = Picture::decode(&bytes, &limits)?.size();
        let layout = self.vision()?.layout(size, options)?;
        Ok(self.shared.media.add(Media::picture(bytes, *options, limits, layout)))
    }

    fn vision(&self) -> Result<Arc<dyn VisionEncoder>> {
        let (answer, vision) = mpsc::channel();
        self.send(Command::Vision(answer))?;
        vision.recv().map_err(|_| Error::EngineStopped)?
    }
}
