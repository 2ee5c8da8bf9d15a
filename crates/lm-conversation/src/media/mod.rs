//! Pictures and sounds in messages: their files, and their places in a rendered prompt.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use lm_session::{Engine, Media, MediaKind, MediaTokens, PictureOptions, PromptPiece, TokenId};
use lm_template::{MediaSource, Message, Origin, Part, PolyfilledPrompt, Prompt, Role};
use serde_json::json;

use crate::error::{Error, Result};
use crate::rendered::{ContentTokens, RenderedPrompt, encode};

/// Pictures and sounds of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MediaSettings {
    /// Permission of parts with a `path` to open that file.
    pub files: MediaFiles,
    /// Options with which pictures are shown to the model.
    pub pictures: PictureOptions,
}

/// Permission of an image or audio part to open a file of this machine by its `path`. Parts with a `blob` need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MediaFiles {
    /// Refused, as messages of others may name any file.
    #[default]
    Refused,
    /// Opened, except for the results of tools, for messages of the local user. The file is read whenever the conversation is rendered.
    Opened,
}

/// A message whose image and audio parts have been replaced by the `{"type": "image"}` and `{"type": "audio"}` of templates.
pub(crate) struct MediaMessage<'a> {
    pub message: Cow<'a, Message>,
    pub media: Vec<Arc<Media>>,
}

impl MediaSettings {
    /// Reads the media of message `index`. Parts of a kind that the model does not read stay: its processor refuses them.
    ///
    /// # Errors
    /// [`Error::Medium`] and [`Error::MediaFile`].
    pub(crate) fn read<'a>(
        &self,
        message: &'a Message,
        index: usize,
        engine: &Engine,
    ) -> Result<MediaMessage<'a>> {
        let is_read = |part: &Part| medium(part).is_some_and(|(kind, _)| engine.reads(kind));
        let mut read = MediaMessage { message: Cow::Borrowed(message), media: Vec::new() };
        if !message.content.parts().iter().any(is_read) {
            return Ok(read);
        }
        let mut parts = message.content.parts().to_vec();
        for (part, content) in parts.iter_mut().enumerate() {
            let Some((kind, media)) = medium(content).filter(|(kind, _)| engine.reads(*kind)) else {
                continue;
            };
            let bytes = match &media.source {
                MediaSource::Blob(bytes) => bytes.clone(),
                MediaSource::Path(path) => self.open(path, kind, message, engine).map_err(|source| {
                    Error::MediaFile { kind, message: index, part, path: path.clone(), source }
                })?,
            };
            let medium = match kind {
                MediaKind::Picture => engine.picture(bytes, &self.pictures),
                MediaKind::Sound => engine.sound(bytes),
            };
            read.media.push(medium.map_err(|source| {
                let source = Box::new(source);
                Error::Medium { kind, message: index, part, source }
            })?);
            *content = Part::Other(json!({"type": part_type(kind)}));
        }
        read.message.to_mut().content = parts.into();
        Ok(read)
    }

    fn open(&self, path: &Path, kind: MediaKind, message: &Message, engine: &Engine) -> io::Result<Vec<u8>> {
        if self.files == MediaFiles::Refused || message.role == Role::Tool {
            let reason = "paths of messages are not opened; send the bytes";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        // Opening a pipe would wait for its writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        // One byte more than the limit: the decoder then refuses the file.
        let most = (engine.max_media_bytes(kind) as u64).saturating_add(1);
        let mut bytes = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The picture or the sound that a part is.
fn medium(part: &Part) -> Option<(MediaKind, &lm_template::Media)> {
    match part {
        Part::Image(media) => Some((MediaKind::Picture, media)),
        Part::Audio(media) => Some((MediaKind::Sound, media)),
        _ => None,
    }
}

/// Type of the parts of a kind.
pub(crate) const fn part_type(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Picture => "image",
        MediaKind::Sound => "audio",
    }
}

/// Names the message in a processor's error about a picture or a sound.
pub(crate) fn unread(error: lm_processors::Error, content: &Message, message: usize) -> Error {
    if let lm_processors::Error::UnsupportedPart { index: part, .. } = error
        && let Some((kind, _)) = content.content.parts().get(part).and_then(medium)
    {
        return Error::UnreadMedium { kind, message, part };
    }
    error.into()
}

/// A prompt with the pieces of media in place of their placeholders.
#[derive(Debug, Clone)]
pub(crate) struct MediaPrompt {
    pub rendered: PolyfilledPrompt,
    /// The media, in the order of the messages.
    pub media: Vec<Arc<Media>>,
    rows: Vec<Row>,
}

/// A row of a medium in a prompt.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Token that stands for it in the text.
    token: TokenId,
    /// Its own id.
    id: TokenId,
}

impl MediaPrompt {
    /// Replaces the i-th placeholder of a kind in the template's text by the pieces of the i-th medium of this kind.
    ///
    /// # Errors
    /// [`Error::Placeholders`] if there are more or fewer of them than media.
    pub(crate) fn new(
        mut rendered: PolyfilledPrompt,
        media: Vec<Arc<Media>>,
        tokens: &[MediaTokens],
    ) -> Result<Self> {
        for tokens in tokens {
            let expected = media.iter().filter(|medium| medium.kind() == tokens.kind).count();
            let found = placeholders(&rendered.prompt, tokens);
            if found != expected {
                let (kind, placeholder) = (tokens.kind, tokens.placeholder.clone());
                return Err(Error::Placeholders { kind, placeholder, found, expected });
            }
        }
        let mut rows = Vec::new();
        let mut left = media.clone();
        let mut next = |tokens: &MediaTokens| {
            let index = left.iter().position(|medium| medium.kind() == tokens.kind)?;
            Some(text_of(&left.remove(index), tokens, &mut rows))
        };
        replace_placeholders(&mut rendered.prompt, tokens, &mut next);
        Ok(Self { rendered, media, rows })
    }

    /// Encodes the prompt; rows of media have their own ids.
    ///
    /// # Errors
    /// [`Error::Tokenizer`]; see [`MediaPrompt::set_rows`].
    pub(crate) fn encode(&self, engine: &Engine, content: ContentTokens) -> Result<Vec<TokenId>> {
        let mut ids = encode(&self.rendered.prompt, engine.tokenizer(), content)?;
        self.set_rows(&mut ids, engine.media_tokens())?;
        Ok(ids)
    }

    /// Text, ids and masks of the prompt.
    ///
    /// # Errors
    /// As [`MediaPrompt::encode`].
    pub(crate) fn to_rendered(&self, engine: &Engine, content: ContentTokens) -> Result<RenderedPrompt> {
        let mut rendered = RenderedPrompt::new(&self.rendered, engine.tokenizer(), content)?;
        self.set_rows(&mut rendered.ids, engine.media_tokens())?;
        Ok(rendered)
    }

    /// Replaces the tokens of rows among the ids of the prompt by the ids of the rows.
    ///
    /// # Errors
    /// [`Error::MediaRows`] if the prompt's content spells such tokens, too
    /// ([`ContentTokens::Recognized`](crate::ContentTokens::Recognized)).
    fn set_rows(&self, ids: &mut [TokenId], tokens: &[MediaTokens]) -> Result<()> {
        let expected = |token| self.rows.iter().filter(|row| row.token == token).count();
        let used: Vec<&MediaTokens> = tokens.iter().filter(|tokens| expected(tokens.row_id) > 0).collect();
        for tokens in &used {
            let (found, expected) =
                (ids.iter().filter(|&&id| id == tokens.row_id).count(), expected(tokens.row_id));
            if found != expected {
                let (kind, token) = (tokens.kind, tokens.row.clone());
                return Err(Error::MediaRows { kind, token, found, expected });
            }
        }
        let places = ids.iter_mut().filter(|id| used.iter().any(|tokens| tokens.row_id == **id));
        places.zip(&self.rows).for_each(|(id, row)| *id = row.id);
        Ok(())
    }
}

/// Number of placeholders of a kind in the template's text.
fn placeholders(prompt: &Prompt, tokens: &MediaTokens) -> usize {
    let template = prompt.segments.iter().filter(|segment| segment.origin == Origin::Template);
    template.map(|segment| segment.text.matches(&*tokens.placeholder).count()).sum()
}

/// Text of the pieces of a medium; adds its rows to `rows`.
fn text_of(medium: &Media, tokens: &MediaTokens, rows: &mut Vec<Row>) -> String {
    let text = medium.pieces().map(|piece| match piece {
        PromptPiece::Text(text) => Cow::Borrowed(text),
        PromptPiece::Rows(ids) => {
            rows.extend(ids.iter().map(|&id| Row { token: tokens.row_id, id }));
            tokens.row.repeat(ids.len()).into()
        }
    });
    text.collect()
}

/// Replaces the placeholders in the template's text, one after another, by the texts that `next` has for their kinds, and moves the ranges
/// after them.
fn replace_placeholders(
    prompt: &mut Prompt,
    tokens: &[MediaTokens],
    next: &mut dyn FnMut(&MediaTokens) -> Option<String>,
) {
    let mut start = 0;
    for segment in &mut prompt.segments {
        let mut from = 0;
        while segment.origin == Origin::Template
            && let Some((found, tokens)) = first_placeholder(&segment.text[from..], tokens)
            && let Some(text) = next(tokens)
        {
            let (at, len) = (from + found, tokens.placeholder.len());
            segment.text.replace_range(at..at + len, &text);
            from = at + text.len();
            let moved = |end: &mut usize| {
                if *end > start + at {
                    *end = *end + text.len() - len;
                }
            };
            prompt.generation.iter_mut().flat_map(|range| [&mut range.start, &mut range.end]).for_each(moved);
        }
        start += segment.text.len();
    }
}

/// The first placeholder of any kind, and its place.
fn first_placeholder<'a>(text: &str, tokens: &'a [MediaTokens]) -> Option<(usize, &'a MediaTokens)> {
    let found = tokens.iter().filter_map(|tokens| Some((text.find(&*tokens.placeholder)?, tokens)));
    found.min_by_key(|(at, _)| *at)
}
