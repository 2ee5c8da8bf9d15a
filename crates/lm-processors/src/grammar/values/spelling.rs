//! Table of the spellings of values in each syntax.

use lm_template::Value;

use super::super::lark::{literal, text_regex};
use crate::layout::Layout;
use crate::schema::escaped_regex;
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
    /// Blanks at separators and brackets.
    pub(in crate::grammar) blanks: Blanks,
}

/// Blanks at separators and brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Blanks {
    /// Those of `colon` and `comma`.
    Written,
    /// None, a space, or a line break with indentation, as the model prefers.
    Free,
}

/// Blanks that a model may write at a bracket or a comma: a space, or one line break with indentation. They
/// are bounded, since a model may otherwise write blanks up to its token limit.
const FREE_BLANKS: &str = "( |\\n[ \\t]{0,20})?";

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

fn is_quote(first: char, strings: Strings) -> bool {
    first == '"' || first == '\'' && matches!(strings, Strings::Python(_))
}

/// Length of the string at the beginning of `text`, with its quotes; `None` if it does not end.
fn end_of_string(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let closing = text.char_indices().skip(1).find(|&(_, c)| {
        let closes = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    closing.map(|(at, _)| at + quote.len_utf8())
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

    /// JSON with the model's own blanks: families do not define the form of a JSON answer, and a model that
    /// is trained on one form answers worse in another.
    pub(in crate::grammar) const ANSWER: Self = Self { blanks: Blanks::Free, ..Self::JSON };

    /// Python literals.
    pub(in crate::grammar) const fn python(quote: char) -> Self {
        Self { constants: ["None", "True", "False"], strings: Strings::Python(quote), ..Self::JSON }
    }

    /// Values in braces: bare keys, strings between two of `quote`, no blanks.
    pub(in crate::grammar) const fn braces(quote: &'static str) -> Self {
        Self { strings: Strings::Fenced(quote), keys: Keys::Bare, colon: ":", comma: ",", ..Self::JSON }
    }

    /// Splits `text` into the lexemes of arrays and objects that begin as it does: brackets, separators,
    /// strings, and what is between them.
    pub(in crate::grammar) fn lexemes<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let (colon, comma, strings) = (self.colon, self.comma, self.strings);
        let mut rest = text;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let separator = [colon, comma].into_iter().find(|separator| rest.starts_with(separator));
            let quoted = is_quote(first, strings);
            let end = match separator {
                Some(separator) => separator.len(),
                None if quoted => end_of_string(rest, first).unwrap_or(rest.len()),
                None if STRUCTURAL.contains(&first) => first.len_utf8(),
                None => rest.find(STRUCTURAL).unwrap_or(rest.len()),
            };
            let (lexeme, after) = rest.split_at(end);
            rest = after;
            Some(lexeme)
        })
    }

    /// Returns true if a lexeme is a string without an end.
    pub(in crate::grammar) fn is_open(&self, lexeme: &str) -> bool {
        let quote = lexeme.chars().next().filter(|first| is_quote(*first, self.strings));
        quote.is_some_and(|quote| end_of_string(lexeme, quote).is_none())
    }

    /// Writes `value` in the syntax; `avoided` texts in its strings are written with an escape where the
    /// syntax has some.
    pub(in crate::grammar) fn write(&self, value: &Value, avoided: &[String]) -> String {
        let list =
            |items: Vec<String>, open: &str, close: &str| format!("{open}{}{close}", items.join(self.comma));
        match value {
            Value::Null => self.constants[0].to_owned(),
            Value::Bool(true) => self.constants[1].to_owned(),
            Value::Bool(false) => self.constants[2].to_owned(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => self.write_text(text, avoided),
            Value::Array(items) => {
                list(items.iter().map(|item| self.write(item, avoided)).collect(), "[", "]")
            }
            Value::Object(map) => {
                let member = |(key, value): (&String, &Value)| {
                    format!("{}{}{}", self.write_key(key, avoided), self.colon, self.write(value, avoided))
                };
                list(map.iter().map(member).collect(), "{", "}")
            }
        }
    }

    fn write_text(&self, text: &str, avoided: &[String]) -> String {
        match self.strings {
            Strings::Python(quote) => quoted(text, quote, avoided, |c| python_char(c, quote)),
            // Verbatim strings have no escapes, but the parser also reads JSON strings.
            Strings::Fenced(marker) if !holds(text, avoided) => format!("{marker}{text}{marker}"),
            Strings::Json | Strings::Fenced(_) => quoted(text, '"', avoided, json_char),
        }
    }

    pub(in crate::grammar) fn write_key(&self, key: &str, avoided: &[String]) -> String {
        match (self.keys, self.strings) {
            (Keys::Bare, Strings::Fenced(mark)) => match brace_key(key, mark) {
                _ if holds(key, avoided) => quoted(key, '"', avoided, json_char),
                BraceKey::Bare => key.to_owned(),
                BraceKey::Marked => self.write_text(key, avoided),
                BraceKey::Quoted => quoted(key, '"', avoided, json_char),
            },
            _ => self.write_text(key, avoided),
        }
    }

    /// A separator or bracket: exact, with the model's blanks, or with any whitespace around it.
    pub(in crate::grammar) fn mark(&self, text: &str, layout: Layout) -> String {
        match (layout, self.blanks) {
            (Layout::Any, _) => loose(text),
            (Layout::Exact, Blanks::Written) => literal(text),
            (Layout::Exact, Blanks::Free) => free(text),
        }
    }
}

/// Terminal expression for a separator or bracket of JSON with [`FREE_BLANKS`], before a closing bracket and
/// after the others; a colon has at most a space.
fn free(text: &str) -> String {
    let mark = text.trim_end();
    let regex = escaped_regex(mark);
    match mark {
        "}" | "]" => format!("/{FREE_BLANKS}{regex}/"),
        ":" => "/: ?/".to_owned(),
        _ => format!("/{regex}{FREE_BLANKS}/"),
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

/// Returns true if `text` contains one of `others`.
pub(super) fn holds(text: &str, others: &[String]) -> bool {
    others.iter().any(|other| text.contains(other.as_str()))
}

/// A text in quotes: an escape for each first character of an `avoided` text, and `write` for the others.
fn quoted(text: &str, quote: char, avoided: &[String], write: impl Fn(char) -> String) -> String {
    let mut out = String::from(quote);
    for (at, c) in text.char_indices() {
        let begins = avoided.iter().any(|avoided| text[at..].starts_with(avoided.as_str()));
        match begins && u32::from(c) <= 0xffff {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push_str(&write(c)),
        }
    }
    out.push(quote);
    out
}

/// A character of a JSON string.
fn json_char(c: char) -> String {
    let quoted = Value::from(c.to_string()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A character of a Python literal in `quote`.
fn python_char(c: char, quote: char) -> String {
    match c {
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c == quote => format!("\\{c}"),
        c if c < ' ' || c == '\x7f' => format!("\\x{:02x}", u32::from(c)),
        c => c.to_string(),
    }
}
