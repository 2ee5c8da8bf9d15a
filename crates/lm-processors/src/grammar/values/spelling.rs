//! Table of the spellings of values in each syntax.

use lm_template::Value;

use super::super::Layout;
use super::super::lark::{literal, text_regex};
use super::super::schema::escaped_regex;
use crate::values::{BraceKey, brace_key};

/// Spelling of JSON values in a syntax.
#[derive(Debug, Clone, Copy)]
pub(in crate::grammar) struct Spelling {
    /// `null`, `true`, `false`.
    pub(in crate::grammar) constants: [&'static str; 3],
    /// Strings.
    pub(in crate::grammar) strings: Strings,
    /// Object keys.
    pub(in crate::grammar) keys: Keys,
    /// Separator of key and value.
    pub(in crate::grammar) colon: &'static str,
    /// Separator of members.
    pub(in crate::grammar) comma: &'static str,
    /// Blanks in `colon` and `comma`: required or optional.
    pub(in crate::grammar) blanks: Blanks,
}

/// Requirement of blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Blanks {
    /// Required.
    Written,
    /// Optional.
    Optional,
}

/// Form of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Strings {
    /// In double quotes, with JSON's escapes.
    Json,
    /// In this quote or the other kind, with Python's escapes.
    Python(char),
    /// Verbatim, between two of this marker.
    Fenced(&'static str),
}

/// Form of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Keys {
    /// As strings.
    Quoted,
    /// Bare, if the parser reads them back; else as strings.
    Bare,
}

/// Characters at which another lexeme begins.
const STRUCTURAL: [char; 8] = ['[', ']', '{', '}', ',', ':', '"', '\''];

/// Length of the string at the beginning of `text`, with its quotes; of the whole text if it does not end.
fn end_of_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let closing = text.char_indices().skip(1).find(|&(_, c)| {
        let closes = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    closing.map_or(text.len(), |(at, _)| at + quote.len_utf8())
}

impl Spelling {
    /// JSON in Python's spelling.
    pub(in crate::grammar) const JSON: Self = Self {
        constants: ["null", "true", "false"],
        strings: Strings::Json,
        keys: Keys::Quoted,
        colon: ": ",
        comma: ", ",
        blanks: Blanks::Written,
    };

    /// JSON with or without blanks: families do not define the form of a JSON answer.
    pub(in crate::grammar) const ANSWER: Self = Self { blanks: Blanks::Optional, ..Self::JSON };

    /// Python literals.
    pub(in crate::grammar) const fn python(quote: char) -> Self {
        Self { constants: ["None", "True", "False"], strings: Strings::Python(quote), ..Self::JSON }
    }

    /// Values in braces: bare keys, strings between two of `quote`, no blanks.
    pub(in crate::grammar) const fn braces(quote: &'static str) -> Self {
        Self { strings: Strings::Fenced(quote), keys: Keys::Bare, colon: ":", comma: ",", ..Self::JSON }
    }

    /// Splits `text` into the lexemes of arrays and objects that begin as it does: brackets, separators, strings, and what is
    /// between them.
    pub(in crate::grammar) fn lexemes<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let (colon, comma, strings) = (self.colon, self.comma, self.strings);
        let mut rest = text;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let separator = [colon, comma].into_iter().find(|separator| rest.starts_with(separator));
            let quoted = first == '"' || first == '\'' && matches!(strings, Strings::Python(_));
            let end = match separator {
                Some(separator) => separator.len(),
                None if quoted => end_of_string(rest, first),
                None if STRUCTURAL.contains(&first) => first.len_utf8(),
                None => rest.find(STRUCTURAL).unwrap_or(rest.len()),
            };
            let (lexeme, after) = rest.split_at(end);
            rest = after;
            Some(lexeme)
        })
    }

    /// Writes `value` in the syntax.
    pub(in crate::grammar) fn write(&self, value: &Value) -> String {
        let list =
            |items: Vec<String>, open: &str, close: &str| format!("{open}{}{close}", items.join(self.comma));
        match value {
            Value::Null => self.constants[0].to_owned(),
            Value::Bool(true) => self.constants[1].to_owned(),
            Value::Bool(false) => self.constants[2].to_owned(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => self.write_text(text),
            Value::Array(items) => list(items.iter().map(|item| self.write(item)).collect(), "[", "]"),
            Value::Object(map) => {
                let member = |(key, value): (&String, &Value)| {
                    format!("{}{}{}", self.write_key(key), self.colon, self.write(value))
                };
                list(map.iter().map(member).collect(), "{", "}")
            }
        }
    }

    fn write_text(&self, text: &str) -> String {
        match self.strings {
            Strings::Json => Value::from(text).to_string(),
            Strings::Python(quote) => python_text(text, quote),
            Strings::Fenced(marker) => format!("{marker}{text}{marker}"),
        }
    }

    pub(in crate::grammar) fn write_key(&self, key: &str) -> String {
        match (self.keys, self.strings) {
            (Keys::Bare, Strings::Fenced(mark)) => match brace_key(key, mark) {
                BraceKey::Bare => key.to_owned(),
                BraceKey::Marked => self.write_text(key),
                BraceKey::Quoted => Value::from(key).to_string(),
            },
            _ => self.write_text(key),
        }
    }

    /// A separator or bracket: exact, or with any whitespace around it.
    pub(in crate::grammar) fn mark(&self, text: &str, layout: Layout) -> String {
        match layout {
            Layout::Exact if self.blanks == Blanks::Optional && text.ends_with(' ') => {
                format!("/{}?/", escaped_regex(text))
            }
            Layout::Exact => literal(text),
            Layout::Any => loose(text),
        }
    }
}

/// Terminal expression for `text` with any whitespace around it.
pub(in crate::grammar) fn loose(text: &str) -> String {
    let inner = text.trim();
    if inner.is_empty() {
        return "/[ \\t\\r\\n]*/".to_owned();
    }
    let regex = text_regex(inner);
    format!("/[ \\t\\r\\n]*{}[ \\t\\r\\n]*/", &regex[1..regex.len() - 1])
}

/// A text as a Python literal.
fn python_text(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c < ' ' || c == '\x7f' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
