//! A text gives the same output wherever it is cut.

use lm_markdown::{Colours, HtmlStream, Piece, TerminalStream};
use proptest::prelude::*;

use crate::replies::REPLIES;

/// Pieces, with neighbouring lines of code as one.
pub fn joined(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (out.last_mut(), piece) {
            (Some(Piece::CodeLines(before)), Piece::CodeLines(lines)) => before.push_str(&lines),
            (_, piece) => out.push(piece),
        }
    }
    out
}

pub fn html(texts: &[&str]) -> Vec<Piece> {
    let mut stream = HtmlStream::new();
    let mut pieces = Vec::new();
    for text in texts {
        pieces.extend(stream.push(text));
        let both = pieces.iter().cloned().chain(stream.open());
        let _ = joined(both);
    }
    pieces.extend(stream.finish());
    joined(pieces)
}

pub fn terminal(texts: &[&str], width: usize, colours: Colours) -> String {
    let mut stream = TerminalStream::new(width, colours);
    let mut out: String = texts.iter().map(|text| stream.push(text)).collect();
    out.push_str(&stream.finish());
    out
}

/// Ends of characters, at most about `count`.
fn cuts(text: &str, count: usize) -> impl Iterator<Item = usize> {
    let step = text.len() / count + 1;
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).step_by(step)
}

#[test]
fn html_is_the_same_at_every_cut() {
    for (name, text) in REPLIES {
        let whole = html(&[text]);
        for at in cuts(text, 400) {
            assert_eq!(html(&[&text[..at], &text[at..]]), whole, "{name} at {at}");
        }
        let letters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
        assert_eq!(html(&letters), whole, "{name} by characters");
    }
}

#[test]
fn unfinished_html_is_that_of_the_text_so_far() {
    for (name, text) in REPLIES {
        for at in cuts(text, 60) {
            let mut stream = HtmlStream::new();
            let mut pieces = stream.push(&text[..at]);
            pieces.extend(stream.open());
            assert_eq!(joined(pieces), html(&[&text[..at]]), "{name} at {at}");
        }
    }
}

/// Replies with a heading by its underline, which comes after its text is written: the text is equal, its
/// style is not.
const UNDERLINED: [&str; 1] = ["headings"];

/// Text without escape codes.
fn unstyled(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once('m')).map(|(_, text)| text).collect::<String>()
}

#[test]
fn terminal_text_is_the_same_by_characters_and_words() {
    let mut failures = Vec::new();
    for (name, text) in REPLIES {
        let shown = |pieces: &[&str], width| {
            let shown = terminal(pieces, width, Colours::Ansi);
            if UNDERLINED.contains(&name) { unstyled(&shown) } else { shown }
        };
        for width in [30, 80] {
            let whole = shown(&[text], width);
            let halves = cuts(text, 200).map(|at| vec![&text[..at], &text[at..]]);
            let by = [text.split_inclusive(|_: char| true).collect(), text.split_inclusive(' ').collect()];
            for pieces in halves.chain(by) {
                let streamed = shown(&pieces, width);
                if streamed != whole {
                    failures.push(format!("{name}, {width} columns, {pieces:?}:\n{streamed}\n\n{whole}\n"));
                    break;
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

proptest! {
    #[test]
    fn random_markdown_is_the_same_at_every_cut(text in "([#*_`~>|$\\\\()\\[\\]!<&;:. 1a-]|\n|\n\n|```|- |\\$\\$|\\\\\\[){0,60}") {
        let whole = html(&[&text]);
        for at in cuts(&text, 60) {
            prop_assert_eq!(html(&[&text[..at], &text[at..]]), whole.clone());
        }
        let letters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
        let _ = terminal(&letters, 20, Colours::Ansi);
    }
}
