//! Incremental decoding of ids to text, in whole characters.

use std::sync::Arc;

use crate::token_table::TokenTable;
use crate::{TokenId, TokenKind};

/// Decodes ids one by one; bytes of an incomplete UTF-8 character wait for the next id.
///
/// The texts of all pushes and of [`StreamDecoder::finish`], concatenated, are [`crate::Tokenizer::decode`]
/// of the same ids without the end-of-sequence ids. Added tokens are decoded to their text; end-of-sequence
/// ids produce nothing.
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    table: Arc<TokenTable>,
    end_ids: Arc<[TokenId]>,
    text: Utf8Stream,
}

impl StreamDecoder {
    pub(crate) fn new(table: Arc<TokenTable>, end_ids: Arc<[TokenId]>) -> Self {
        let text = Utf8Stream::new(table.leading_spaces);
        Self { table, end_ids, text }
    }

    /// Returns the text that `id` completes; empty if it ends inside a character, is an end-of-sequence id or
    /// has no text.
    pub fn push(&mut self, id: TokenId) -> String {
        if self.end_ids.contains(&id) {
            return String::new();
        }
        self.text.push(self.table.bytes(id))
    }

    /// Returns the length of `id`'s own text at the end of `text`, the result of its push, if `id` is an
    /// added token; 0 otherwise.
    pub fn added_len(&self, id: TokenId, text: &str) -> usize {
        let own = self.table.bytes(id);
        let added = self.table.kind(id) != TokenKind::Text && text.as_bytes().ends_with(own);
        // A token such as `<0xA9>` may be the last byte of a character.
        if added && text.is_char_boundary(text.len() - own.len()) { own.len() } else { 0 }
    }

    /// Returns the rest: one U+FFFD for an incomplete character. Resets the decoder.
    pub fn finish(&mut self) -> String {
        let rest = if self.text.pending.is_empty() { "" } else { "\u{FFFD}" };
        self.text = Utf8Stream::new(self.table.leading_spaces);
        rest.into()
    }
}

/// Incremental UTF-8 decoder; an invalid sequence becomes one U+FFFD, as in [`String::from_utf8_lossy`].
#[derive(Clone, Debug)]
pub(crate) struct Utf8Stream {
    pending: Vec<u8>,
    /// Leading spaces of the text still to drop.
    leading_spaces: usize,
}

impl Utf8Stream {
    pub(crate) fn new(leading_spaces: usize) -> Self {
        Self { pending: Vec::new(), leading_spaces }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> String {
        while let ([b' ', rest @ ..], 1..) = (bytes, self.leading_spaces) {
            bytes = rest;
            self.leading_spaces -= 1;
        }
        if !bytes.is_empty() {
            self.leading_spaces = 0;
        }
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut used = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            used += chunk.valid().len();
            if chunk.invalid().is_empty() || is_unfinished(&self.pending[used..]) {
                break;
            }
            text.push('\u{FFFD}');
            used += chunk.invalid().len();
        }
        self.pending.drain(..used);
        text
    }
}

/// Returns true if `bytes` are an incomplete but valid prefix of a character.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every split of `bytes` in two gives the text of the whole.
    fn check(bytes: &[u8], leading_spaces: usize, expected: &str) {
        for cut in 0..=bytes.len() {
            let mut stream = Utf8Stream::new(leading_spaces);
            let mut text = stream.push(&bytes[..cut]);
            text += &stream.push(&bytes[cut..]);
            if !stream.pending.is_empty() {
                text.push('\u{FFFD}');
            }
            assert_eq!(text, expected, "cut at {cut} of {bytes:x?}");
        }
    }

    #[test]
    fn incomplete_characters_are_held_back() {
        let mut stream = Utf8Stream::new(0);
        let texts: Vec<String> = "é€".bytes().map(|byte| stream.push(&[byte])).collect();
        assert_eq!(texts, ["", "é", "", "", "€"]);
    }

    #[test]
    fn text_does_not_depend_on_the_split() {
        check("aé€😀b".as_bytes(), 0, "aé€😀b");
        check("  two".as_bytes(), 1, " two");
        check(b"", 1, "");
    }

    #[test]
    fn invalid_bytes_are_replaced_like_std() {
        for bytes in [&b"\xFFa"[..], b"\xE2\x82", b"\xE2\x82a", b"\xF0\x9F\x98\xE2\x82\xAC", b"\x80\x80"] {
            check(bytes, 0, &String::from_utf8_lossy(bytes));
        }
    }
}
