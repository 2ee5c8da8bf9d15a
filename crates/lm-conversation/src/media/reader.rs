//! Reading of the images and audio of messages.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lm_session::{CancelHandle, Engine, Media, MediaKind};
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

    /// Reads the media of message `index`. Parts of an unsupported kind are kept: the model's processor
    /// refuses them.
    ///
    /// # Errors
    /// [`Error::Medium`], [`Error::MediaFile`] and [`Error::TooManyMediaRows`]; [`Error::Cancelled`] and
    /// [`Error::DeadlineExceeded`].
    pub fn read<'m>(&mut self, message: &'m Message, index: usize) -> Result<MediaMessage<'m>> {
        let is_read = |part: &Part| medium(part).is_some_and(|(kind, _)| self.engine.reads(kind));
        let mut read = MediaMessage { message: Cow::Borrowed(message), media: Vec::new() };
        if !message.content.parts().iter().any(is_read) {
            return Ok(read);
        }
        let mut parts = message.content.parts().to_vec();
        for (part, content) in parts.iter_mut().enumerate() {
            let Some((kind, media)) = medium(content).filter(|(kind, _)| self.engine.reads(*kind)) else {
                continue;
            };
            let bytes = match &media.source {
                MediaSource::Blob(bytes) => bytes.clone(),
                MediaSource::Path(path) => self.open(path, kind, message).map_err(|source| {
                    Error::MediaFile { kind, message: index, part, path: path.clone(), source }
                })?,
            };
            self.bounds.check()?;
            let medium = self.decode(kind, bytes).map_err(|source| {
                let source = Box::new(source);
                Error::Medium { kind, message: index, part, source }
            })?;
            self.count(&medium)?;
            read.media.push(medium);
            *content = Part::Other(json!({"type": part_type(kind)}));
        }
        read.message.to_mut().content = parts.into();
        Ok(read)
    }

    fn decode(&self, kind: MediaKind, bytes: Vec<u8>) -> lm_session::Result<Arc<Media>> {
        match kind {
            MediaKind::Image => self.engine.image(bytes, &self.settings.images),
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

    fn open(&self, path: &Path, kind: MediaKind, message: &Message) -> io::Result<Vec<u8>> {
        if self.settings.files == MediaFiles::Refused || message.role == Role::Tool {
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
