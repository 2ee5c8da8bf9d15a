//! Closing markers that are a part of the text which they would close.

use std::collections::{BTreeMap, BTreeSet};

use lm_template::Value;
use serde_json::Map;

use super::super::lark::{literal, sequence, text_without};
use super::super::values::{Values, enum_values, types_of};
use super::parameters::ValueTags;
use crate::dialect::ValueText;
use crate::parsers::CDATA_OPEN;
use crate::schema::escaped_regex;

/// Blanks that the parser skips before a marker.
const BLANKS: &str = r"\s\u{120}\u{10a}\u{2581}";

/// Keywords whose terminals cover the whole text, which then has no closing markers.
const WHOLE_TEXT: [&str; 4] = ["format", "maxLength", "minLength", "pattern"];

/// Returns true if any string matches the schema.
pub(super) fn is_free(schema: &Map<String, Value>) -> bool {
    enum_values(schema).is_none()
        && types_of(schema).contains(&"string")
        && !WHOLE_TEXT.iter().any(|keyword| schema.contains_key(*keyword))
}

/// Builds the beginning of a text up to the last closing marker in it. After each of them comes what no
/// marker of the syntax begins with.
pub(super) fn held_markers(values: &mut Values<'_>, tags: &ValueTags<'_>) -> String {
    let excluded: Vec<String> = values.excluded().to_vec();
    let close = tags.close.trim();
    let without: Vec<&str> = excluded.iter().map(String::as_str).chain([close]).collect();
    let cdata = match tags.call.written {
        ValueText::VerbatimOrCdata => format!(" & ~/\\s*{}(?s:.*)/", escaped_regex(CDATA_OPEN)),
        _ => String::new(),
    };
    let text = values.lark.terminal(format!("{}{cdata}", text_without(&without)));
    let text = values.lark.lazy(sequence([&*text, &literal(close)]));
    let markers = tags.markup.after_value();
    let stems: BTreeSet<&str> = markers
        .into_iter()
        .chain(excluded.iter().map(String::as_str))
        .map(stem)
        .filter(|stem| !stem.is_empty())
        .collect();
    let behind = values.lark.lazy(no_marker(&stems));
    format!("({text} {behind})*")
}

/// The start of a marker up to its first blank or punctuation mark that the parser accepts in other forms, or
/// to a further occurrence of its first character.
fn stem(marker: &str) -> &str {
    let Some(first) = marker.chars().next() else { return "" };
    let end = |&(at, c): &(usize, char)| at > 0 && (c == first || c.is_whitespace() || "=\">".contains(c));
    &marker[..marker.char_indices().find(end).map_or(marker.len(), |(at, _)| at)]
}

/// Terminal expression for blanks and the shortest text that starts none of `stems`. It ends before a
/// character that one of them begins with.
fn no_marker(stems: &BTreeSet<&str>) -> String {
    let first: BTreeSet<char> = stems.iter().filter_map(|stem| stem.chars().next()).collect();
    let mut starts: BTreeMap<&str, BTreeSet<char>> = BTreeMap::new();
    for stem in stems {
        for (at, c) in stem.char_indices() {
            starts.entry(&stem[..at]).or_default().insert(c);
        }
    }
    let branch = |(start, next): (&str, BTreeSet<char>)| {
        let others: String = next.union(&first).map(|c| escaped_regex(&c.to_string())).collect();
        let blanks = if start.is_empty() { BLANKS } else { "" };
        format!("{}[^{blanks}{others}]", escaped_regex(start))
    };
    let is_open = |(start, _): &(&str, BTreeSet<char>)| !stems.contains(start);
    let branches: Vec<String> = starts.into_iter().filter(is_open).map(branch).collect();
    format!("/[{BLANKS}]*({})/", branches.join("|"))
}
