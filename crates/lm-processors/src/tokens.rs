//! Added tokens in a family's markers.

use std::ops::Range;
use std::sync::Arc;

/// The texts in a family's markers that are added tokens of a tokenizer.
///
/// Only the token counts as a marker: the same text spelled by ordinary tokens is text. The empty set (the
/// default) means an unknown tokenizer: markers are then recognized in any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkerTokens(Arc<[String]>);

impl MarkerTokens {
    /// Collects the added tokens in `markers`; `added` returns the length of the longest one at the start of
    /// a text.
    ///
    /// Tokens of a single character or of whitespace only are omitted: their text is always a marker.
    ///
    /// ```
    /// use lm_processors::MarkerTokens;
    ///
    /// let added = |text: &str| ["<|open|>", "<|sep|>"].into_iter().find(|token| text.starts_with(token)).map(str::len);
    /// let tokens = MarkerTokens::in_markers(["<|open|>think<|sep|>", "</s>"], added);
    /// assert_eq!(tokens.iter().collect::<Vec<_>>(), ["<|open|>", "<|sep|>"]);
    /// ```
    pub fn in_markers<'a>(
        markers: impl IntoIterator<Item = &'a str>,
        added: impl Fn(&str) -> Option<usize>,
    ) -> Self {
        let mut found: Vec<String> = Vec::new();
        for mut rest in markers {
            while let Some(first) = rest.chars().next() {
                let len = added(rest).filter(|len| *len > 0).unwrap_or(first.len_utf8());
                let token = &rest[..len];
                if len > first.len_utf8() && !token.trim().is_empty() {
                    found.push(token.to_owned());
                }
                rest = &rest[len..];
            }
        }
        found.sort_unstable();
        found.dedup();
        Self(found.into())
    }

    /// The texts, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        self.0.binary_search_by(|token| token.as_str().cmp(text)).is_ok()
    }

    /// Position of the first token in `marker`.
    pub(crate) fn first_in(&self, marker: &str) -> Option<Range<usize>> {
        let longest = |start: usize| {
            self.iter().filter(|token| marker[start..].starts_with(*token)).map(str::len).max()
        };
        marker.char_indices().find_map(|(start, _)| Some(start..start + longest(start)?))
    }

    /// Returns true if text cannot spell `marker`, because a part of it is a token.
    pub(crate) fn protect(&self, marker: &str) -> bool {
        self.first_in(marker).is_some()
    }
}
