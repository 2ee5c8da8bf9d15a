//! Writer for llguidance's Lark dialect.

use std::collections::HashMap;

use lm_template::Value;

use super::Grammar;
use crate::schema::escaped_regex;
use crate::tokens::MarkerTokens;

/// Maximum number of literals as separate alternatives of a rule.
const MAX_ALTERNATIVES: usize = 32;

/// A grammar under construction. Rules are added bottom-up; equal bodies share a rule.
#[derive(Debug, Default)]
pub(super) struct Lark {
    text: String,
    markers: Vec<String>,
    names: HashMap<String, String>,
    /// Texts that are tokens: text cannot spell a marker that contains one.
    tokens: MarkerTokens,
}

impl Lark {
    pub(super) fn new(tokens: MarkerTokens) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// Returns true if text cannot spell this marker, because a part of it is a token.
    pub(super) fn protects(&self, marker: &str) -> bool {
        self.tokens.protect(marker)
    }

    /// The markers that text can spell.
    pub(super) fn spelled<'m>(
        &self,
        markers: impl IntoIterator<Item = &'m str>,
    ) -> impl Iterator<Item = String> {
        let spelled = markers.into_iter().filter(|marker| !self.protects(marker));
        spelled.map(str::to_owned).collect::<Vec<_>>().into_iter()
    }

    /// Terminal expression for text without these markers. Text cannot spell those that contain a token.
    pub(super) fn text_without(&self, markers: &[&str]) -> String {
        let spelled: Vec<&str> = markers.iter().filter(|marker| !self.protects(marker)).copied().collect();
        text_without(&spelled)
    }

    /// Adds a rule with this body and returns its name.
    pub(super) fn rule(&mut self, body: impl Into<String>) -> String {
        self.define("", body.into())
    }

    /// Adds a terminal with this body and returns its name.
    pub(super) fn terminal(&mut self, body: impl Into<String>) -> String {
        self.named("T", "", body.into())
    }

    /// Adds a lazy rule, which matches the terminal expression `body` and ends as soon as it can; returns its
    /// name.
    pub(super) fn lazy(&mut self, body: impl Into<String>) -> String {
        self.define("[lazy]", body.into())
    }

    /// Builds alternatives. Many string literals are merged into one terminal, since the parser would follow
    /// each separately.
    pub(super) fn alternatives(&mut self, mut options: Vec<String>) -> String {
        let text = |option: &String| serde_json::from_str::<String>(option).ok();
        if options.len() <= MAX_ALTERNATIVES {
            return one_of(&options);
        }
        let mut texts: Vec<String> = options.extract_if(.., |option| text(option).is_some()).collect();
        texts = texts.iter().filter_map(text).collect();
        texts.sort_unstable();
        texts.dedup();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        if !texts.is_empty() {
            options.push(self.terminal(format!("/{}/", one_text_regex(&texts, 0))));
        }
        one_of(&options)
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

    /// Reserves a name for a rule whose body is not known yet, so that a recursive body can refer to it.
    pub(super) fn reserve(&mut self, prefix: &str) -> String {
        let number = self.names.len();
        // A reserved name takes a number as well.
        self.names.insert(format!("{prefix}{number}?"), String::new());
        format!("{prefix}{number}")
    }

    /// Defines the body of a reserved rule.
    pub(super) fn define_reserved(&mut self, name: &str, body: &str) {
        self.text.push_str(&format!("{name}: {body}\n"));
    }

    /// Adds a text of the dialect that may be, or contain, an added token; returns its rule.
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

    /// Builds text that matches the terminal expression `content`, in which `close` does not occur, then
    /// `layout`, then `close`: as its token; if unknown, as a possible token, or spelled with ordinary
    /// characters.
    pub(super) fn up_to(&mut self, content: &str, layout: &str, close: &str) -> String {
        if let Some(token) = self.tokens.first_in(close) {
            // The part before the token belongs to the text that the token ends.
            let (head, rest) = close.split_at(token.start);
            let marker = self.marker(rest);
            let before = self.terminal(sequence([content, &literal(&format!("{layout}{head}"))]));
            return format!("{before} {marker}");
        }
        let marker = self.marker(close);
        let before = self.terminal(sequence([content, &literal(layout)]));
        let content = self.terminal(content);
        let spelled = self.lazy(format!("{content} {}", literal(&format!("{layout}{close}"))));
        format!("({before} {marker} | {spelled})")
    }

    /// Builds `text`, which may be or contain an added token, after the terminal expression `space`: one
    /// lexeme as far as text can spell it.
    pub(super) fn spaced(&mut self, space: &str, text: &str) -> String {
        if let Some(token) = self.tokens.first_in(text) {
            let (head, rest) = text.split_at(token.start);
            let head = self.terminal(sequence([space, &literal(head)]));
            return format!("{head} {}", self.marker(rest));
        }
        let marker = self.marker(text);
        let spelled = self.terminal(sequence([space, &literal(text)]));
        match space.is_empty() {
            true => marker,
            false => self.rule(format!("{space} {marker} | {spelled}")),
        }
    }

    /// Returns the grammar with the start rule `start`.
    pub(super) fn finish(mut self, start: &str) -> Grammar {
        self.text.push_str(&format!("start: {start}\n"));
        Grammar { lark: self.text, markers: self.markers }
    }
}

/// `text` as a string literal; empty for empty text.
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

/// Builds a regular expression for one of `texts`, which are sorted and share their first `from` bytes;
/// common prefixes are factored out.
fn one_text_regex(texts: &[&str], from: usize) -> String {
    let (Some(first), Some(last)) = (texts.first(), texts.last()) else { return String::new() };
    let alike = first[from..].char_indices().zip(last[from..].chars()).take_while(|((_, a), b)| a == b);
    let from_next = from + alike.map(|((_, c), _)| c.len_utf8()).sum::<usize>();
    let shared = escaped_regex(&first[from..from_next]);
    let (done, rest) = texts.split_at(usize::from(first.len() == from_next));
    let next = |text: &&str| text[from_next..].chars().next();
    let options: Vec<String> = rest
        .chunk_by(|one, other| next(one) == next(other))
        .map(|group| one_text_regex(group, from_next))
        .collect();
    match (options.is_empty(), done.is_empty()) {
        (true, _) => shared,
        (false, true) => format!("{shared}({})", options.join("|")),
        (false, false) => format!("{shared}({})?", options.join("|")),
    }
}

/// Terminal expression for text that contains none of `texts`.
pub(super) fn text_without(texts: &[&str]) -> String {
    if texts.is_empty() {
        return "/(?s:.*)/".to_owned();
    }
    let texts: Vec<String> = texts.iter().map(|text| escaped_regex(text)).collect();
    format!("/(?s:.*)/ & ~/(?s:.*)({})(?s:.*)/", texts.join("|"))
}

/// Alternatives in parentheses; a single one without.
pub(super) fn one_of(options: &[String]) -> String {
    match options {
        [one] => one.clone(),
        options => format!("({})", options.join(" | ")),
    }
}

/// A sequence; empty parts are omitted.
pub(super) fn sequence<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_share_prefixes() {
        assert_eq!(one_text_regex(&["", "a", "ab", "ac", "b"], 0), "(a(b|c)?|b)?");
        assert_eq!(one_text_regex(&["x1", "x2"], 0), "x(1|2)");
        assert_eq!(one_text_regex(&["\u{e4}", "\u{e8}"], 0), "(\\u{e4}|\\u{e8})");
    }
}
