//! Pictures in messages: their files, and their places in a rendered prompt.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use lm_session::{Engine, Media, PictureOptions, PictureTokens, PromptPiece, TokenId};
use lm_template::{MediaSource, Message, Origin, Part, PolyfilledPrompt, Prompt, Role};
use serde_json::json;

use crate::error::{Error, Result};
use crate::rendered::{ContentTokens, RenderedPrompt, encode};

/// Pictures of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pictures {
    /// Permission of parts with a `path` to open that file.
    pub files: PictureFiles,
    /// Options with which pictures are shown to the model.
    pub options: PictureOptions,
}

/// Permission of an image part to open a file of this machine by its `path`. Parts with a `blob` need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PictureFiles {
    /// Refused, as messages of others may name any file.
    #[default]
    Refused,
    /// Opened, except for the results of tools, for messages of the local user. The file is read whenever the conversation is rendered.
    Opened,
}

/// Messages whose image parts have been replaced by the `{"type": "image"}` of templates.
pub(crate) struct PicturedMessage<'a> {
    pub message: Cow<'a, Message>,
    pub pictures: Vec<Arc<Media>>,
}

impl Pictures {
    /// Reads the pictures of message `index`. A model that reads text only gets the message unchanged: its processor refuses it.
    ///
    /// # Errors
    /// [`Error::Picture`] and [`Error::PictureFile`].
    pub(crate) fn read<'a>(
        &self,
        message: &'a Message,
        index: usize,
        engine: &Engine,
    ) -> Result<PicturedMessage<'a>> {
        let is_picture = |part: &Part| matches!(part, Part::Image(_));
        let mut read = PicturedMessage { message: Cow::Borrowed(message), pictures: Vec::new() };
        if engine.picture_tokens().is_none() || !message.content.parts().iter().any(is_picture) {
            return Ok(read);
        }
        let mut parts = message.content.parts().to_vec();
        for (part, content) in parts.iter_mut().enumerate() {
            let Part::Image(media) = content else { continue };
            let bytes = match &media.source {
                MediaSource::Blob(bytes) => bytes.clone(),
                MediaSource::Path(path) => self.open(path, message, engine).map_err(|source| {
                    Error::PictureFile { message: index, part, path: path.clone(), source }
                })?,
            };
            let picture = engine.picture(bytes, &self.options);
            read.pictures.push(picture.map_err(|source| {
                let source = Box::new(source);
                Error::Picture { message: index, part, source }
            })?);
            *content = Part::Other(json!({"type": "image"}));
        }
        read.message.to_mut().content = parts.into();
        Ok(read)
    }

    fn open(&self, path: &Path, message: &Message, engine: &Engine) -> io::Result<Vec<u8>> {
        if self.files == PictureFiles::Refused || message.role == Role::Tool {
            let reason = "paths of messages are not opened; send the bytes";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        // Opening a pipe would wait for its writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        // One byte more than the limit: the decoder then refuses the file.
        let most = (engine.picture_limits().max_bytes as u64).saturating_add(1);
        let mut bytes = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A prompt with the pieces of pictures in place of their placeholders.
#[derive(Debug, Clone)]
pub(crate) struct PicturedPrompt {
    pub rendered: PolyfilledPrompt,
    /// The pictures, in order.
    pub pictures: Vec<Arc<Media>>,
    /// Ids of all their rows.
    rows: Vec<TokenId>,
}

impl PicturedPrompt {
    /// Replaces the i-th placeholder in the template's text by the pieces of the i-th picture.
    ///
    /// # Errors
    /// [`Error::Placeholders`] if there are more or fewer of them than pictures.
    pub(crate) fn new(
        mut rendered: PolyfilledPrompt,
        pictures: Vec<Arc<Media>>,
        tokens: Option<&PictureTokens>,
    ) -> Result<Self> {
        let Some(tokens) = tokens else { return Ok(Self { rendered, pictures, rows: Vec::new() }) };
        let (found, expected) = (placeholders(&rendered.prompt, tokens), pictures.len());
        if found != expected {
            return Err(Error::Placeholders { placeholder: tokens.placeholder.clone(), found, expected });
        }
        let mut rows = Vec::new();
        let mut texts = pictures.iter().map(|picture| picture_text(picture, tokens, &mut rows));
        replace_placeholders(&mut rendered.prompt, &tokens.placeholder, &mut texts);
        drop(texts);
        Ok(Self { rendered, pictures, rows })
    }

    /// Encodes the prompt; rows of pictures have their own ids.
    ///
    /// # Errors
    /// [`Error::Tokenizer`]; see [`PicturedPrompt::set_rows`].
    pub(crate) fn encode(&self, engine: &Engine, content: ContentTokens) -> Result<Vec<TokenId>> {
        let mut ids = encode(&self.rendered.prompt, engine.tokenizer(), content)?;
        self.set_rows(&mut ids, engine.picture_tokens())?;
        Ok(ids)
    }

    /// Text, ids and masks of the prompt.
    ///
    /// # Errors
    /// As [`PicturedPrompt::encode`].
    pub(crate) fn to_rendered(&self, engine: &Engine, content: ContentTokens) -> Result<RenderedPrompt> {
        let mut rendered = RenderedPrompt::new(&self.rendered, engine.tokenizer(), content)?;
        self.set_rows(&mut rendered.ids, engine.picture_tokens())?;
        Ok(rendered)
    }

    /// Replaces the tokens of rows among the ids of the prompt by the ids of the rows.
    ///
    /// # Errors
    /// [`Error::PictureRows`] if the prompt's content spells such tokens, too
    /// ([`ContentTokens::Recognized`](crate::ContentTokens::Recognized)).
    fn set_rows(&self, ids: &mut [TokenId], tokens: Option<&PictureTokens>) -> Result<()> {
        let Some(tokens) = tokens.filter(|_| !self.rows.is_empty()) else { return Ok(()) };
        let (found, expected) = (ids.iter().filter(|&&id| id == tokens.row_id).count(), self.rows.len());
        if found != expected {
            return Err(Error::PictureRows { token: tokens.row.clone(), found, expected });
        }
        let places = ids.iter_mut().filter(|id| **id == tokens.row_id);
        places.zip(&self.rows).for_each(|(id, row)| *id = *row);
        Ok(())
    }
}

/// Number of placeholders in the template's text.
fn placeholders(prompt: &Prompt, tokens: &PictureTokens) -> usize {
    let template = prompt.segments.iter().filter(|segment| segment.origin == Origin::Template);
    template.map(|segment| segment.text.matches(&*tokens.placeholder).count()).sum()
}

/// Text of the pieces of a picture; adds the ids of its rows to `rows`.
fn picture_text(picture: &Media, tokens: &PictureTokens, rows: &mut Vec<TokenId>) -> String {
    let text = picture.pieces().map(|piece| match piece {
        PromptPiece::Text(text) => Cow::Borrowed(text),
        PromptPiece::Rows(ids) => {
            rows.extend(ids);
            tokens.row.repeat(ids.len()).into()
        }
    });
    text.collect()
}

/// Replaces the placeholders in the template's text by `texts`, and moves the ranges after them.
fn replace_placeholders(prompt: &mut Prompt, placeholder: &str, texts: &mut dyn Iterator<Item = String>) {
    let mut start = 0;
    for segment in &mut prompt.segments {
        let mut from = 0;
        while segment.origin == Origin::Template
            && let Some(found) = segment.text[from..].find(placeholder)
            && let Some(text) = texts.next()
        {
            let at = from + found;
            segment.text.replace_range(at..at + placeholder.len(), &text);
            from = at + text.len();
            let moved = |end: &mut usize| {
                if *end > start + at {
                    *end = *end + text.len() - placeholder.len();
                }
            };
            prompt.generation.iter_mut().flat_map(|range| [&mut range.start, &mut range.end]).for_each(moved);
        }
        start += segment.text.len();
    }
}
