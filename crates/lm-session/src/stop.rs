//! Stop strings in streamed text.

use crate::{Error, Result};

/// Finds the first stop string in a text that arrives in pieces of any size.
///
/// Text that may be the start of a stop string is held back until it is decided. The stop string that ends first
/// wins, the longest of those that end together; so the answer does not depend on how the text is cut.
#[derive(Clone, Debug)]
pub(crate) struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

/// What a piece of text led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    /// Text that no stop string can swallow any more.
    pub text: String,
    /// The stop string that was found; nothing may be pushed after it.
    pub stop: Option<String>,
}

impl StopMatcher {
    pub fn new(stops: Vec<String>) -> Result<Self> {
        match stops.iter().position(String::is_empty) {
            Some(index) => Err(Error::EmptyStopString { index }),
            None => Ok(Self { stops, held: String::new() }),
        }
    }

    pub fn push(&mut self, piece: &str) -> Matched {
        self.held.push_str(piece);
        if let Some((start, stop)) = self.first_stop() {
            let stop = stop.to_owned();
            self.held.truncate(start);
            return Matched { text: std::mem::take(&mut self.held), stop: Some(stop) };
        }
        let certain = self.held.len() - self.open_len();
        let rest = self.held.split_off(certain);
        Matched { text: std::mem::replace(&mut self.held, rest), stop: None }
    }

    /// The text still held back, when nothing more can come.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Start of the stop string that ends first, and the string.
    fn first_stop(&self) -> Option<(usize, &str)> {
        let found =
            self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop.as_str())));
        found.min_by_key(|(start, stop)| (start + stop.len(), *start))
    }

    /// Length of the longest end of the held text that a stop string begins with.
    fn open_len(&self) -> usize {
        let held = self.held.as_bytes();
        let open = |stop: &String| {
            let longest = held.len().min(stop.len() - 1);
            (1..=longest).rev().find(|&len| held.ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
        };
        self.stops.iter().map(open).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matcher(stops: &[&str]) -> StopMatcher {
        StopMatcher::new(stops.iter().map(|s| s.to_string()).collect()).unwrap()
    }

    /// Feeds `pieces` and returns all emitted text and the stop string.
    fn run<'a>(stops: &[&str], pieces: impl IntoIterator<Item = &'a str>) -> (String, Option<String>) {
        let mut matcher = matcher(stops);
        let mut text = String::new();
        for piece in pieces {
            let matched = matcher.push(piece);
            text += &matched.text;
            if matched.stop.is_some() {
                return (text, matched.stop);
            }
        }
        text += &matcher.finish();
        (text, None)
    }

    #[test]
    fn text_is_cut_before_the_stop_that_ends_first() {
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
    fn text_that_may_begin_a_stop_is_held_back() {
        let mut matcher = matcher(&["</s>"]);
        assert_eq!(matcher.push("a<").text, "a");
        assert_eq!(matcher.push("/").text, "");
        assert_eq!(matcher.push("b").text, "</b");
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        let stops = vec!["a".to_owned(), String::new()];
        assert!(matches!(StopMatcher::new(stops), Err(Error::EmptyStopString { index: 1 })));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_answer(
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
