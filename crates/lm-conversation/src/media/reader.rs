//! Reading of the images and audio of messages.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lm_session::{CancelHandle, Engine, ImageOptions, Media, MediaKind};
use lm_template::{MediaSource, Message, Part, Role};
use serde_json::json;

use super::{MediaFiles, MediaSettings};
use crate::error::{Error, Result};
use crate::media_part::{medium, part_type};

/// Bounds on reading a prompt's media, which may be hundreds of large files; checked before each file.
#[derive(Debug, Clone, Default)]
pub(crate) struct MediaBounds {
    cancel: CancelHandle,
    deadline: Option<Instant>,
    /// Maximum number of rows of all media; `None` without a limit.
    max_rows: Option<usize>,
}

impl MediaBounds {
    /// Creates bounds: a cancellation, a deadline, a maximum number of rows.
    pub fn new(cancel: CancelHandle, deadline: Option<Instant>, max_rows: Option<usize>) -> Self {
        Self { cancel, deadline, max_rows }
    }

    fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        match self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            true => Err(Error::DeadlineExceeded),
            false => Ok(()),
        }
    }
}

/// A message whose image and audio parts have been replaced by the `{"type": "image"}` and
/// `{"type": "audio"}` of templates.
pub(crate) struct MediaMessage<'a> {
    pub message: Cow<'a, Message>,
    pub media: Vec<Arc<Media>>,
}

/// Place of a medium.
#[derive(Debug, Clone, Copy)]
struct Place {
    kind: MediaKind,
    message: usize,
    part: usize,
    is_result: bool,
    /// Options of its message's images.
    images: ImageOptions,
}

/// Reads the media of messages, one after another.
pub(crate) struct MediaReader<'a> {
    settings: &'a MediaSettings,
    engine: &'a Engine,
    bounds: &'a MediaBounds,
    /// Media so far, and their rows.
    count: usize,
    rows: usize,
}

impl<'a> MediaReader<'a> {
    pub fn new(settings: &'a MediaSettings, engine: &'a Engine, bounds: &'a MediaBounds) -> Self {
        Self { settings, engine, bounds, count: 0, rows: 0 }
    }

    /// Reads the media of message `index`; `images` are the options of its images, if it has its own. Parts
    /// of an unsupported kind are kept: the model's processor refuses them. In a tool result they become
    /// notes, and so do media that are damaged or too large: a tool must not end the turn.
    ///
    /// # Errors
    /// [`Error::Medium`], [`Error::MediaFile`] and [`Error::TooManyMediaRows`]; [`Error::Cancelled`] and
    /// [`Error::DeadlineExceeded`].
    pub fn read<'m>(
        &mut self,
        message: &'m Message,
        index: usize,
        images: Option<ImageOptions>,
    ) -> Result<MediaMessage<'m>> {
        let images = images.unwrap_or(self.settings.images);
        let is_result = message.role == Role::Tool;
        let (engine, mut media) = (self.engine, Vec::new());
        let is_read = |part: &Part| medium(part).is_some_and(|(kind, _)| is_result || engine.reads(kind));
        if !message.content.parts().iter().any(is_read) {
            return Ok(MediaMessage { message: Cow::Borrowed(message), media });
        }
        let mut parts = message.content.parts().to_vec();
        for (part, content) in parts.iter_mut().enumerate() {
            let Some((kind, source)) = medium(content).filter(|_| is_read(content)) else { continue };
            let place = Place { kind, message: index, part, is_result, images };
            let read = match is_result {
                true => self.of_result(source, place)?,
                false => Ok(self.of_message(source, place)?),
            };
            *content = match read {
                Ok(medium) => {
                    media.push(medium);
                    Part::Other(json!({"type": part_type(kind)}))
                }
                Err(reason) => Part::Text(content.note(reason.as_deref()).unwrap_or_default()),
            };
        }
        let mut message = message.clone();
        message.content = parts.into();
        Ok(MediaMessage { message: Cow::Owned(message), media })
    }

    /// Reads a medium of a tool result; an inner error is the reason, if any, why it is not shown.
    fn of_result(
        &mut self,
        source: &lm_template::Media,
        place: Place,
    ) -> Result<Result<Arc<Media>, Option<String>>> {
        if !self.engine.reads(place.kind) {
            return Ok(Err(None));
        }
        let medium = match self.decoded(source, place) {
            Ok(medium) => medium,
            Err(Error::Medium { source, .. }) if is_of_file(&source) => {
                return Ok(Err(Some(source.to_string())));
            }
            Err(error) => return Err(error),
        };
        let most = self.engine.context_tokens() / 4 * 3;
        let before = if self.bounds.max_rows.is_some() { self.rows } else { 0 };
        if before + medium.rows() > most {
            let rows = medium.rows();
            return Ok(Err(Some(format!("its {rows} tokens do not fit the context"))));
        }
        self.count(&medium)?;
        Ok(Ok(medium))
    }

    fn of_message(&mut self, source: &lm_template::Media, place: Place) -> Result<Arc<Media>> {
        let medium = self.decoded(source, place)?;
        self.count(&medium)?;
        Ok(medium)
    }

    fn decoded(&self, source: &lm_template::Media, place: Place) -> Result<Arc<Media>> {
        let Place { kind, message, part, images, .. } = place;
        let bytes = match &source.source {
            MediaSource::Blob(bytes) => bytes.clone(),
            MediaSource::Path(path) => self.open(path, place).map_err(|source| Error::MediaFile {
                kind,
                message,
                part,
                path: path.clone(),
                source,
            })?,
        };
        self.bounds.check()?;
        self.decode(kind, bytes, &images).map_err(|source| {
            let source = Box::new(source);
            Error::Medium { kind, message, part, source }
        })
    }

    fn decode(
        &self,
        kind: MediaKind,
        bytes: Vec<u8>,
        images: &ImageOptions,
    ) -> lm_session::Result<Arc<Media>> {
        match kind {
            MediaKind::Image => self.engine.image(bytes, images),
            MediaKind::Audio => self.engine.audio(bytes),
        }
    }

    /// Adds the rows of a medium.
    fn count(&mut self, medium: &Media) -> Result<()> {
        self.count += 1;
        self.rows += medium.rows();
        match self.bounds.max_rows.filter(|&context_tokens| self.rows > context_tokens) {
            Some(context_tokens) => {
                Err(Error::TooManyMediaRows { media: self.count, rows: self.rows, context_tokens })
            }
            None => Ok(()),
        }
    }

    fn open(&self, path: &Path, Place { kind, is_result, .. }: Place) -> io::Result<Vec<u8>> {
        if self.settings.files == MediaFiles::Refused || is_result {
            let reason = "paths of messages are not opened; send the bytes";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        // Opening a pipe would wait for its writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        // One byte more than the limit: the decoder then refuses the file.
        let most = (self.engine.max_media_bytes(kind) as u64).saturating_add(1);
        let mut bytes = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Returns true for an error of a file itself, not of the engine.
fn is_of_file(error: &lm_session::Error) -> bool {
    matches!(error, lm_session::Error::Media(_) | lm_session::Error::Model(_))
}
