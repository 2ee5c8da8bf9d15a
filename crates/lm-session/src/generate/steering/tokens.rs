//! Tokens that close texts.

use std::cmp::Reverse;
use std::collections::HashMap;

use lm_tokenizer::{TokenKind, Tokenizer};

use crate::constraint::TokenMask;
use lm_tokenizer::TokenId;

/// Closing characters of texts, values and calls in JSON, Python and XML syntax.
pub(super) const CLOSING: &[u8] = b"\"')]}>";
/// Punctuation between their parts.
const JOINING: &[u8] = b"\"'()[]{}<>:,=";
/// A mask that allows more than one of this many tokens is of free text.
const FREE_TEXT: usize = 8;
/// Maximum length of a filler token, in bytes.
const MAX_FILLER: usize = 16;

/// Tokens of a vocabulary that are tried when a text must end.
#[derive(Debug)]
pub(crate) struct ClosingTokens {
    /// Tokens of closing characters only, the longest first, each with its first character.
    closing: Vec<(u8, TokenId)>,
    /// Tokens of punctuation between parts, the longest first.
    joining: Vec<TokenId>,
    /// Added tokens: a grammar allows one only by naming it.
    added: Vec<TokenId>,
    /// Tokens of whole characters.
    text: TokenMask,
    /// Tokens of letters or digits to fill a value: one of each kind for each length, the longest first.
    fillers: Vec<TokenId>,
}

impl ClosingTokens {
    pub fn new(tokenizer: &Tokenizer, width: usize) -> Self {
        let (mut closing, mut joining, mut added) = (Vec::new(), Vec::new(), Vec::new());
        let (mut fillers, mut text) = (HashMap::new(), TokenMask::new(width));
        for id in 0..tokenizer.vocab_size().min(width) as TokenId {
            let bytes = tokenizer.token_bytes(id);
            let all = |class: fn(&u8) -> bool| bytes.iter().all(class);
            if tokenizer.token_kind(id) == TokenKind::Text && std::str::from_utf8(bytes).is_ok() {
                text.allow(id);
            }
            if bytes.is_empty() {
            } else if tokenizer.token_kind(id) != TokenKind::Text {
                added.push(id);
            } else if all(|byte| CLOSING.contains(byte)) {
                closing.push((bytes[0], id));
            } else if all(|byte| JOINING.contains(byte)) {
                joining.push(id);
            } else if bytes.len() <= MAX_FILLER && (all(u8::is_ascii_lowercase) || all(u8::is_ascii_digit)) {
                fillers.entry((Reverse(bytes.len()), bytes[0].is_ascii_digit())).or_insert(id);
            }
        }
        let longest_first = |id: TokenId| Reverse(tokenizer.token_bytes(id).len());
        closing.sort_by_key(|&(_, id)| longest_first(id));
        joining.sort_by_key(|&id| longest_first(id));
        let mut fillers: Vec<_> = fillers.into_iter().collect();
        fillers.sort_unstable();
        Self { closing, joining, added, text, fillers: fillers.into_iter().map(|(_, id)| id).collect() }
    }

    /// Returns true if a mask allows more than 1/8 of the tokens of whole characters: nearly any text may go
    /// on somehow, and the mask only steers it.
    pub fn is_free_text(&self, mask: &TokenMask) -> bool {
        let words = self.text.words().iter().zip(mask.words());
        let allowed: usize = words.map(|(text, mask)| (text & mask).count_ones() as usize).sum();
        allowed > self.text.count() / FREE_TEXT
    }

    /// Allowed tokens of closing characters that begin with `first`, the longest first.
    pub fn closing<'a>(&'a self, first: u8, mask: &'a TokenMask) -> impl Iterator<Item = TokenId> + 'a {
        let all = self.closing.iter().filter(move |(byte, _)| *byte == first);
        all.map(|&(_, id)| id).filter(|&id| mask.allows(id))
    }

    /// Allowed tokens of punctuation.
    pub fn joining<'a>(&'a self, mask: &'a TokenMask) -> impl Iterator<Item = TokenId> + 'a {
        self.joining.iter().copied().filter(|&id| mask.allows(id))
    }

    /// Allowed added tokens.
    pub fn added<'a>(&'a self, mask: &'a TokenMask) -> impl Iterator<Item = TokenId> + 'a {
        self.added.iter().copied().filter(|&id| mask.allows(id))
    }

    /// Allowed fillers.
    pub fn fillers<'a>(&'a self, mask: &'a TokenMask) -> impl Iterator<Item = TokenId> + 'a {
        self.fillers.iter().copied().filter(|&id| mask.allows(id))
    }
}
