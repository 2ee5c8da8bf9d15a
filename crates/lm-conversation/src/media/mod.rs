//! Images and audio in messages: their files, and their places in a rendered prompt.

use lm_session::ImageOptions;
use lm_template::Message;

use crate::error::Error;
use crate::media_part::medium;

mod prompt;
mod reader;

pub(crate) use prompt::MediaPrompt;
pub(crate) use reader::{MediaBounds, MediaReader};

/// Images and audio of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MediaSettings {
    /// Permission of parts with a `path` to open that file.
    pub files: MediaFiles,
    /// Options for showing images to the model.
    pub images: ImageOptions,
}

/// Permission of an image or audio part to open a file of this machine by its `path`. Parts with a `blob`
/// need no permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MediaFiles {
    /// Refused, as foreign messages may name any file.
    #[default]
    Refused,
    /// Opened, except in tool results, for messages of the local user. The file is read whenever the
    /// conversation is rendered.
    Opened,
}

/// Names the message in a processor's error about an image or an audio clip.
pub(crate) fn unread(error: lm_processors::Error, content: &Message, message: usize) -> Error {
    if let lm_processors::Error::UnsupportedPart { index: part, .. } = error
        && let Some((kind, _)) = content.content.parts().get(part).and_then(medium)
    {
        return Error::UnreadMedium { kind, message, part };
    }
    error.into()
}
