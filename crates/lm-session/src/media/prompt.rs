//! Prompts: ids, and the media whose rows are among them.

use std::collections::HashMap;
use std::sync::Arc;

use lm_tokenizer::TokenId;

use super::{Media, MediaSpan, Piece, is_virtual};
use crate::error::{Error, Result};
use crate::media_kind::MediaKind;

/// A prompt: token ids, and the media whose rows are among them. Ids of text convert to it.
///
/// The ids of a media item ([`Media::pieces`]) determine its place. Media whose rows are already tokens of
/// the session may be omitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prompt<'a> {
    /// Ids of tokens and of rows of media.
    pub ids: &'a [TokenId],
    /// Media of the rows, in any order.
    pub media: &'a [Arc<Media>],
}

impl<'a> From<&'a [TokenId]> for Prompt<'a> {
    fn from(ids: &'a [TokenId]) -> Self {
        Self { ids, media: &[] }
    }
}

impl<'a> From<&'a Vec<TokenId>> for Prompt<'a> {
    fn from(ids: &'a Vec<TokenId>) -> Self {
        Self::from(&ids[..])
    }
}

impl<'a, const N: usize> From<&'a [TokenId; N]> for Prompt<'a> {
    fn from(ids: &'a [TokenId; N]) -> Self {
        Self::from(&ids[..])
    }
}

/// Tokens whose rows of media have been found.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResolvedPrompt {
    /// Ids of tokens and virtual ids.
    pub ids: Vec<TokenId>,
    /// Rows of media, in order.
    pub spans: Vec<MediaSpan>,
}

impl ResolvedPrompt {
    /// Finds the rows of `media` among `ids`.
    ///
    /// # Errors
    /// [`Error::UnknownMedia`] for an id of a row of another media item, and for rows that are not a whole
    /// piece of a layout.
    pub fn new<'a>(ids: Vec<TokenId>, media: impl Iterator<Item = &'a Arc<Media>>) -> Result<Self> {
        let mut spans: Vec<MediaSpan> = Vec::new();
        if ids.iter().copied().any(is_virtual) {
            let known = pieces_by_id(media);
            let mut place = 0;
            while let Some(offset) = ids[place..].iter().position(|&id| is_virtual(id)) {
                let position = place + offset;
                let pieces = known.get(&ids[position]).into_iter().flatten();
                let mut spans_here = pieces.map(|piece| MediaSpan { start: position, ..piece.clone() });
                let span = spans_here.find(|span| ids[position..].starts_with(span.ids()));
                let span = span.ok_or(Error::UnknownMedia { position })?;
                place = span.end();
                spans.push(span);
            }
        }
        Ok(Self { ids, spans })
    }

    /// Ids for the model: the `token` of their kind in place of the rows of media.
    pub fn model_ids(&self, token: impl Fn(MediaKind) -> TokenId) -> Vec<TokenId> {
        let mut ids = self.ids.clone();
        self.spans.iter().for_each(|span| ids[span.places()].fill(token(span.media.kind())));
        ids
    }
}

/// Pieces of rows by their first id, each once.
fn pieces_by_id<'a>(media: impl Iterator<Item = &'a Arc<Media>>) -> HashMap<TokenId, Vec<MediaSpan>> {
    let mut known: HashMap<TokenId, Vec<MediaSpan>> = HashMap::new();
    for media in media {
        for piece in &media.pieces {
            if let Piece::Rows { rows, attention, positions } = piece
                && !rows.is_empty()
            {
                let pieces = known.entry(media.ids[rows.start]).or_default();
                if pieces.iter().all(|piece| piece.media.key != media.key) {
                    let (media, rows) = (media.clone(), rows.clone());
                    let (attention, positions) = (*attention, *positions);
                    pieces.push(MediaSpan { start: 0, media, rows, attention, positions });
                }
            }
        }
    }
    known
}
