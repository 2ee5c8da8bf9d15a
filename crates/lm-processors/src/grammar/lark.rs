//! Writing a grammar in llguidance's Lark dialect.

use std::collections::HashMap;

use lm_template::Value;

use super::Grammar;
use super::schema::escaped_regex;

/// A grammar being written. Rules are added from the leaves up; equal bodies share a rule.
#[derive(Debug, Default)]
pub(super) struct Lark {
    text: String,
    markers: Vec<String>,
    names: HashMap<String, String>,
}

impl Lark {
    /// The name of a rule with this body.
    pub(super) fn rule(&mut self, body: impl Into<String>) -> String {
        self.define("", body.into())
    }

    /// The name of a terminal with this body.
    pub(super) fn terminal(&mut self, body: impl Into<String>) -> String {
        self.named("T", "", body.into())
    }

    /// The name of a rule that matches the terminal expression `body` and ends as soon as it can.
    pub(super) fn lazy(&mut self, body: impl Into<String>) -> String {
        self.define("[lazy]", body.into())
    }

    fn define(&mut self, options: &str, body: String) -> String {
        self.named("r", options, body)
    }

    fn named(&mut self, prefix: &str, options: &str, body: String) -> String {
        let line = format!("{prefix}{options}: {body}");
        if let Some(name) = self.names.get(&line) {
            return name.clone();
        }
        let name = self.reserve(prefix);
        self.text.push_str(&format!("{name}{options}: {body}\n"));
        self.names.insert(line, name.clone());
        name
    }

    /// A name for a rule whose body is not known yet: what is recursive refers to itself by it.
    pub(super) fn reserve(&mut self, prefix: &str) -> String {
        let number = self.names.len();
        // A reserved name takes a number too.
        self.names.insert(format!("{prefix}{number}?"), String::new());
        format!("{prefix}{number}")
    }

    /// Gives a reserved rule its body.
    pub(super) fn define_reserved(&mut self, name: &str, body: &str) {
        self.text.push_str(&format!("{name}: {body}\n"));
    }

    /// A text of the dialect that may be, or contain, an added token.
    pub(super) fn marker(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let known = self.markers.iter().position(|marker| marker == text);
        let number = known.unwrap_or_else(|| {
            self.markers.push(text.to_owned());
            self.markers.len() - 1
        });
        format!("marker_{number}")
    }

    /// A text that fits the terminal expression `content`, in which `close` does not occur, then `layout`, then `close`: as the
    /// token that it may be, or spelled with ordinary characters.
    pub(super) fn up_to(&mut self, content: &str, layout: &str, close: &str) -> String {
        let marker = self.marker(close);
        let before = self.terminal(sequence([content, &literal(layout)]));
        let content = self.terminal(content);
        let spelled = self.lazy(format!("{content} {}", literal(&format!("{layout}{close}"))));
        format!("({before} {marker} | {spelled})")
    }

    /// The grammar that begins with `start`.
    pub(super) fn finish(mut self, start: &str) -> Grammar {
        self.text.push_str(&format!("start: {start}\n"));
        Grammar { lark: self.text, markers: self.markers }
    }
}

/// `text` as a string literal; empty for the empty text.
pub(super) fn literal(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    Value::from(text).to_string().replace('\x7f', "\\u007f")
}

/// `text` as a regular expression between slashes.
pub(super) fn text_regex(text: &str) -> String {
    format!("/{}/", escaped_regex(text))
}

/// A terminal expression: any text in which none of `texts` occurs.
pub(super) fn text_without(texts: &[&str]) -> String {
    if texts.is_empty() {
        return "/(?s:.*)/".to_owned();
    }
    let texts: Vec<String> = texts.iter().map(|text| escaped_regex(text)).collect();
    format!("/(?s:.*)/ & ~/(?s:.*)({})(?s:.*)/", texts.join("|"))
}

/// Alternatives in brackets; just the one when there is only one.
pub(super) fn one_of(options: &[String]) -> String {
    match options {
        [one] => one.clone(),
        options => format!("({})", options.join(" | ")),
    }
}

/// A sequence; empty parts are left out.
pub(super) fn sequence<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" ") }
}
