//! Images and audio in prompts: their identity, their rows, and the prompts that hold them.
//!
//! A row of a media item has a *virtual id* in the tokens of a session: the top bit, and 31 bits of SHA-256
//! of the media item's key and the row's number. So every comparison of tokens distinguishes media: prefix
//! tree, rewinding, forks and saved pages. The model gets the id of the placeholder token of the media item's
//! kind and the rows of its encoder.

use crate::media_kind::MediaKind;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use lm_model::{AttentionKind, MediaLayout, MediaPiece, MediaPositions};
use lm_tokenizer::TokenId;
use sha2::{Digest, Sha256};

use crate::error::Result;

mod encoded;
mod encoders;
mod library;
mod prompt;
mod span;

pub(crate) use encoded::Encoded;
pub(crate) use encoders::{Decoded, Encoders, MediaForm};
pub(crate) use library::{MediaLibrary, decoding};
pub use prompt::Prompt;
pub(crate) use prompt::ResolvedPrompt;
pub(crate) use span::{MediaSpan, positions, whole_spans};

/// Bit of ids that are rows of media.
const VIRTUAL: TokenId = 1 << 31;

/// Returns true for the id of a row of a media item, which is outside every vocabulary.
pub(crate) fn is_virtual(id: TokenId) -> bool {
    id & VIRTUAL != 0
}

/// SHA-256 of a media item's kind, its options and the file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MediaKey([u8; 32]);

impl MediaKey {
    pub fn new(bytes: &[u8], form: &MediaForm) -> Self {
        Self(Sha256::new().chain_update(form.tag()).chain_update(bytes).finalize().into())
    }

    /// Virtual id of a row.
    fn row(&self, row: usize) -> TokenId {
        let sum = Sha256::new().chain_update(self.0).chain_update((row as u64).to_le_bytes()).finalize();
        VIRTUAL | TokenId::from_le_bytes([sum[0], sum[1], sum[2], sum[3]])
    }
}

impl fmt::Debug for MediaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::fingerprint::hex(&self.0[..8]))
    }
}

/// An image or an audio clip in the input form of the engine's model, created by
/// [`Engine::image`](crate::Engine::image) or [`Engine::audio`](crate::Engine::audio).
///
/// It holds the bytes of the file. The encoder of its kind runs when a prompt needs its rows, and does not
/// run again while they are in the engine's cache
/// ([`EngineSettings::media_cache_bytes`](crate::EngineSettings::media_cache_bytes)) or their keys and values
/// in the prefix cache.
pub struct Media {
    key: MediaKey,
    bytes: Arc<[u8]>,
    form: MediaForm,
    pieces: Vec<Piece>,
    /// Virtual id of each row.
    ids: Vec<TokenId>,
}

/// A piece of the prompt that represents a media item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptPiece<'a> {
    /// Text of the template: added tokens in it are recognised.
    Text(&'a str),
    /// Ids of rows.
    Rows(&'a [TokenId]),
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Rows { rows: Range<usize>, attention: AttentionKind, positions: MediaPositions },
}

impl Media {
    /// The media item in a file.
    pub(crate) fn new(bytes: Arc<[u8]>, form: MediaForm, layout: MediaLayout) -> Self {
        let key = MediaKey::new(&bytes, &form);
        let mut row = 0;
        let mut piece = |piece| match piece {
            MediaPiece::Text(text) => Piece::Text(text),
            MediaPiece::Rows(rows) => {
                let start = row;
                row += rows.count;
                Piece::Rows { rows: start..row, attention: rows.attention, positions: rows.positions }
            }
        };
        let pieces = layout.pieces.into_iter().map(&mut piece).collect();
        Self { key, bytes, form, pieces, ids: (0..row).map(|row| key.row(row)).collect() }
    }

    /// The text and the rows that represent the media item in a prompt, in order.
    pub fn pieces(&self) -> impl Iterator<Item = PromptPiece<'_>> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => PromptPiece::Text(text),
            Piece::Rows { rows, .. } => PromptPiece::Rows(&self.ids[rows.clone()]),
        })
    }

    /// Number of rows: its tokens in a prompt, without its texts.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Kind of the media item.
    pub fn kind(&self) -> MediaKind {
        self.form.kind()
    }

    /// Decodes the file, after waiting for other decodings.
    pub(crate) fn decode(&self) -> Result<Decoded> {
        let _one_at_a_time = decoding();
        self.form.decode(&self.bytes)
    }

    pub(crate) fn key(&self) -> MediaKey {
        self.key
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media")
            .field("kind", &self.kind())
            .field("key", &self.key)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}
