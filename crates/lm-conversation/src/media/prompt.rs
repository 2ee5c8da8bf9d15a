//! Places of images and audio in a rendered prompt.

use std::borrow::Cow;
use std::sync::Arc;

use lm_session::{Engine, Media, MediaTokens, PromptPiece, TokenId};
use lm_template::{Origin, PolyfilledPrompt, Prompt};

use crate::error::{Error, Result};
use crate::rendered::{ContentTokens, RenderedPrompt, encode};

/// A prompt with the pieces of media in place of their placeholders.
#[derive(Debug, Clone)]
pub(crate) struct MediaPrompt {
    pub rendered: PolyfilledPrompt,
    /// The media, in the order of the prompt's messages.
    pub media: Vec<Arc<Media>>,
    rows: Vec<Row>,
}

/// A row of an image or audio clip in a prompt.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Placeholder token in the text.
    token: TokenId,
    /// Its own id.
    id: TokenId,
}

impl MediaPrompt {
    /// Replaces the i-th placeholder of a kind in the template's text by the pieces of the i-th medium of
    /// this kind.
    ///
    /// # Errors
    /// [`Error::Placeholders`] if their number differs from the number of media.
    pub(crate) fn new(
        mut rendered: PolyfilledPrompt,
        mut media: Vec<Arc<Media>>,
        tokens: &[MediaTokens],
    ) -> Result<Self> {
        if let Some(order) = rendered.media_order.take() {
            media = order.iter().filter_map(|&number| media.get(number).cloned()).collect();
        }
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

/// Replaces the placeholders in the template's text, one after another, by the texts of `next` for their
/// kinds, and moves the ranges after them.
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
