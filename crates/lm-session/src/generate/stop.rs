//! Stop strings in streamed text.

use std::ops::Range;

use crate::error::{Error, Result};

/// Finds the first stop string in a text in pieces of any size.
///
/// Text that may be the start of a stop string is held back until this is decided. The stop string that ends
/// first wins, the longest of those that end together, so that the result does not depend on how the text is
/// split. The text of an added token is never split: it is held back as a whole.
#[derive(Clone, Debug)]
pub(crate) struct StopMatcher {
    stops: Vec<String>,
    held: String,
    /// Byte ranges of added tokens in `held`, in order.
    added: Vec<Range<usize>>,
}

/// Result of a piece of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matched {
    /// Text that can no longer be part of a stop string.
    pub text: String,
    /// Byte ranges of added tokens in it, in order.
    pub added: Vec<Range<usize>>,
    /// The found stop string; no text may be pushed after it.
    pub stop: Option<String>,
}

impl Matched {
    /// Appends the text that follows.
    pub fn append(&mut self, next: Self) {
        let before = self.text.len();
        self.text += &next.text;
        self.added.extend(next.added.into_iter().map(|token| token.start + before..token.end + before));
    }
}

impl StopMatcher {
    pub fn new(stops: Vec<String>) -> Result<Self> {
        match stops.iter().position(String::is_empty) {
            Some(index) => Err(Error::EmptyStopString { index }),
            None => Ok(Self { stops, held: String::new(), added: Vec::new() }),
        }
    }

    /// Pushes a piece of text whose last `added` bytes are the text of an added token.
    pub fn push(&mut self, piece: &str, added: usize) -> Matched {
        self.held.push_str(piece);
        if added > 0 {
            self.added.push(self.held.len() - added..self.held.len());
        }
        if let Some((start, stop)) = self.first_stop() {
            let stop = stop.to_owned();
            let (text, added) = self.take(start);
            self.finish();
            return Matched { text, added, stop: Some(stop) };
        }
        let mut certain = self.held.len() - self.partial_match_len();
        if let Some(cut) = self.added.iter().find(|token| token.start < certain && certain < token.end) {
            certain = cut.start;
        }
        let (text, added) = self.take(certain);
        Matched { text, added, stop: None }
    }

    /// Returns the text still held back at the end.
    pub fn finish(&mut self) -> Matched {
        let (text, added) = self.take(self.held.len());
        Matched { text, added, stop: None }
    }

    /// Takes the first `len` bytes, and the added tokens that are completely in them.
    fn take(&mut self, len: usize) -> (String, Vec<Range<usize>>) {
        let rest = self.held.split_off(len);
        let whole = self.added.partition_point(|token| token.end <= len);
        let later = self.added.split_off(whole);
        let later = later.into_iter().filter(|token| token.start >= len);
        let later = later.map(|token| token.start - len..token.end - len).collect();
        (std::mem::replace(&mut self.held, rest), std::mem::replace(&mut self.added, later))
    }

    /// Start of the stop string that ends first, and the string.
    fn first_stop(&self) -> Option<(usize, &str)> {
        let found =
            self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop.as_str())));
        found.min_by_key(|(start, stop)| (start + stop.len(), *start))
    }

    /// Length of the longest suffix of the held text that is a prefix of a stop string.
    fn partial_match_len(&self) -> usize {
        let held = self.held.as_bytes();
        let longest_prefix = |stop: &String| {
            let longest = held.len().min(stop.len() - 1);
            (1..=longest).rev().find(|&len| held.ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
        };
        self.stops.iter().map(longest_prefix).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matcher(stops: &[&str]) -> StopMatcher {
        StopMatcher::new(stops.iter().map(|s| s.to_string()).collect()).unwrap()
    }

    /// Pushes `pieces` and returns the emitted text and the stop string.
    fn run<'a>(stops: &[&str], pieces: impl IntoIterator<Item = &'a str>) -> (String, Option<String>) {
        let mut matcher = matcher(stops);
        let mut text = String::new();
        for piece in pieces {
            let matched = matcher.push(piece, 0);
            text += &matched.text;
            if matched.stop.is_some() {
                return (text, matched.stop);
            }
        }
        text += &matcher.finish().text;
        (text, None)
    }

    #[test]
    fn text_is_cut_before_the_earliest_stop() {
        for (stops, text, expected, stop) in [
            (&["END"][..], "one END two", "one ", Some("END")),
            (&["END"], "one EN", "one EN", None),
            (&["ab", "xabc"], "xabc", "x", Some("ab")),
            (&["bc", "abc"], "zabc", "z", Some("abc")),
            (&["aab"], "aaab", "a", Some("aab")),
            (&["é!"], "è é?é!", "è é?", Some("é!")),
            (&[], "all", "all", None),
        ] {
            assert_eq!(
                run(stops, [text]),
                (expected.to_owned(), stop.map(str::to_owned)),
                "{stops:?} in {text}"
            );
        }
    }

    #[test]
    fn possible_start_of_a_stop_is_held_back() {
        let mut matcher = matcher(&["</s>"]);
        assert_eq!(matcher.push("a<", 0).text, "a");
        assert_eq!(matcher.push("/", 0).text, "");
        assert_eq!(matcher.push("b", 0).text, "</b");
    }

    #[test]
    fn added_tokens_match_only_as_a_whole() {
        let mut matcher = matcher(&["k>x", "no"]);
        let matched = matcher.push("a<think>", 7);
        assert_eq!((matched.text.as_str(), matched.added), ("a", vec![]));
        let matched = matcher.push("y", 0);
        assert_eq!(
            (matched.text.as_str(), matched.added.as_slice()),
            ("<think>y", std::slice::from_ref(&(0..7)))
        );
        let matched = matcher.push("<think>", 7);
        assert_eq!((matched.text.as_str(), matched.added), ("", vec![]));
        let matched = matcher.push("x", 0);
        assert_eq!((matched.text.as_str(), matched.added), ("<thin", vec![]));
        assert_eq!(matched.stop.as_deref(), Some("k>x"));
    }

    #[test]
    fn empty_stop_string_is_rejected() {
        let stops = vec!["a".to_owned(), String::new()];
        assert!(matches!(StopMatcher::new(stops), Err(Error::EmptyStopString { index: 1 })));
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same_result(
            text in "[abé]{0,12}",
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            cut in 0usize..12,
        ) {
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let whole = run(&stops, [text.as_str()]);
            let chars: Vec<String> = text.chars().map(String::from).collect();
            prop_assert_eq!(&run(&stops, chars.iter().map(String::as_str)), &whole);
            let cut = (0..=cut.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            prop_assert_eq!(&run(&stops, [&text[..cut], &text[cut..]]), &whole);
            match whole.1 {
                Some(stop) => prop_assert!(text.starts_with(&(whole.0 + &stop))),
                None => prop_assert!(whole.0 == text && stops.iter().all(|stop| !text.contains(stop))),
            }
        }
    }
}
