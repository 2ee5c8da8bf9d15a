//! Repair of JSON text that models write: control characters, backslashes and single quotes of strings,
//! comments, trailing commas, Python's constants.

use std::borrow::Cow;
use std::fmt::Write;

use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::json_scan::{JsonPlace, JsonScan, JsonStep};
use super::recovery::{Departure, Tolerance};
use crate::marker_guard::unguarded;

/// Python's constants and their JSON names.
const CONSTANTS: [(&str, &str); 3] = [("True", "true"), ("False", "false"), ("None", "null")];

/// Repair of one JSON text that arrives in pieces. Valid JSON is unchanged, all else that has no repair too.
///
/// - Control characters in strings are escaped, and backslashes that escape nothing, as in `^\d+$`. `\'`
///   becomes `'`.
/// - Strings in single quotes get double quotes.
/// - Comments, `//` and `/* */`, are removed. A blank replaces the latter.
/// - `True`, `False` and `None` become `true`, `false` and `null`.
/// - A comma before a closing bracket is removed.
#[derive(Debug, Clone)]
pub(crate) struct JsonMend {
    tolerance: Tolerance,
    scan: JsonScan,
    /// Beginning of a constant, which is not written yet.
    word: String,
    /// True inside a number or a word.
    in_word: bool,
    /// Comma and the layout after it, which are not written yet.
    comma: String,
}

impl JsonMend {
    /// Creates a repair of text that may be invalid JSON; if it must be valid, nothing is changed.
    pub(crate) fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance,
            scan: JsonScan::new(Tolerance::ALL),
            word: String::new(),
            in_word: false,
            comma: String::new(),
        }
    }

    /// Returns the repaired piece. A character whose repair depends on the next piece is part of that one's.
    pub(crate) fn push<'t>(&mut self, piece: &'t str) -> Cow<'t, str> {
        if !self.tolerance.accepts(Departure::InvalidJson) {
            return piece.into();
        }
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            let before = self.scan.place();
            let mut step = JsonStep::Layout;
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                step = self.scan.step(byte);
            }
            match (before, self.scan.place()) {
                (JsonPlace::Outside, _) => self.outside(c, step, &mut out),
                (JsonPlace::String { quote, escaped, .. }, _) => in_string(c, quote, escaped, &mut out),
                (JsonPlace::Slash, JsonPlace::Outside) => out.extend(['/', c]),
                (JsonPlace::LineComment, JsonPlace::Outside) => out.push(c),
                (JsonPlace::BlockComment { .. }, JsonPlace::Outside) => out.push(' '),
                (JsonPlace::Slash | JsonPlace::LineComment | JsonPlace::BlockComment { .. }, _) => {}
            }
        }
        out.into()
    }

    fn outside(&mut self, c: char, step: JsonStep, out: &mut String) {
        if step != JsonStep::Layout {
            let comma = std::mem::take(&mut self.comma);
            out.push_str(comma.strip_prefix(',').filter(|_| step == JsonStep::Close).unwrap_or(&comma));
        }
        if step == JsonStep::Inside && (!self.in_word || !self.word.is_empty()) {
            self.in_word = true;
            self.word.push(c);
            if CONSTANTS.iter().any(|(constant, _)| constant.starts_with(&self.word)) {
                return;
            }
            out.push_str(&std::mem::take(&mut self.word));
            return;
        }
        if step != JsonStep::Inside {
            self.in_word = false;
            let word = std::mem::take(&mut self.word);
            let constant = CONSTANTS.iter().find(|(constant, _)| *constant == word);
            out.push_str(constant.map_or(&word, |(_, json)| json));
        }
        match self.scan.place() {
            JsonPlace::Slash => {}
            _ if step == JsonStep::Comma || !self.comma.is_empty() => self.comma.push(c),
            JsonPlace::String { .. } => out.push('"'),
            _ => out.push(c),
        }
    }
}

/// Reads JSON as the model wrote it, with its defects repaired if they are accepted.
///
/// # Errors
/// If it is not valid JSON, or of another type.
pub(crate) fn read_json<T: DeserializeOwned>(text: &str, tolerance: Tolerance) -> Result<T, Fault> {
    let text = unguarded(text);
    let read = serde_json::from_str(&text);
    let read = match tolerance.accepts(Departure::InvalidJson) {
        true => read.or_else(|_| serde_json::from_str(&JsonMend::new(tolerance).push(&text))),
        false => read,
    };
    read.map_err(|error| Fault::malformed(error.to_string()))
}

/// Writes a character of a string, or its closing quote. A backslash is written with the character after it.
fn in_string(c: char, quote: u8, escaped: bool, out: &mut String) {
    match c {
        '\\' if !escaped => return,
        '"' if quote == b'\'' => out.push('\\'),
        '\'' if quote == b'\'' => {
            out.push(if escaped { '\'' } else { '"' });
            return;
        }
        // The escape of other languages.
        '\'' if escaped => {}
        // A backslash before any other character escapes nothing.
        c if escaped => out.push_str(if r#""\/bfnrtu"#.contains(c) { "\\" } else { "\\\\" }),
        _ => {}
    }
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..' ' => write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes any text"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_are_repaired_and_json_is_unchanged() {
        for (text, expected) in [
            (r#"{"a": [1, 2 , 3], "b\",]": ",}"}"#, r#"{"a": [1, 2 , 3], "b\",]": ",}"}"#),
            ("{\"a\":\n\"x\n\ty\r\u{1}\"\n}", "{\"a\":\n\"x\\n\\ty\\r\\u0001\"\n}"),
            ("{\"a\\\\\":\n\"\\\"\n\",}", "{\"a\\\\\":\n\"\\\"\\n\"}"),
            ("{\"a\\\n\": 1}", r#"{"a\\\n": 1}"#),
            (
                r#"["^\d+\.txt$", "C:\Users\é", "it\'s", "\/\b\u00e9\\d"]"#,
                r#"["^\\d+\\.txt$", "C:\\Users\\é", "it's", "\/\b\u00e9\\d"]"#,
            ),
            (r#"{"a": "//'é' /* */ None"}"#, r#"{"a": "//'é' /* */ None"}"#),
            ("{ // é, 'it', \"\r\n\"a\": 1}", "{ \n\"a\": 1}"),
            ("[1/**/2, 3/* ' * / **/]", "[1 2, 3 ]"),
            (r#"{'a': 'x"y\"\'\\\n', "b": ''}"#, r#"{"a": "x\"y\"'\\\n", "b": ""}"#),
            ("{\"a\": [True,False,\nNone], \"b\": None}", "{\"a\": [true,false,\nnull], \"b\": null}"),
            ("[Tru, Truest, xNone, -None, true, 1e5]", "[Tru, Truest, xNone, -None, true, 1e5]"),
            ("[True/**/, None//\n]", "[true , null\n]"),
            ("[1/2]", "[1/2]"),
            ("[1, [2,], {\"a\": None, \n} ,]", "[1, [2], {\"a\": null \n} ]"),
            ("[1,/**/ ]", "[1  ]"),
            ("[1,,]", "[1,]"),
            ("[\",]\"]", "[\",]\"]"),
        ] {
            assert_eq!(JsonMend::new(Tolerance::ALL).push(text), expected);
            let mut mend = JsonMend::new(Tolerance::ALL);
            let pieces: String = text.split_inclusive(|_| true).map(|piece| mend.push(piece)).collect();
            assert_eq!(pieces, expected, "by character");
        }
    }
}
