//! Search for added tokens in the template's part of a text.
//!
//! The tokenizer library recognises added tokens everywhere or ignores the special ones everywhere; a prompt
//! needs every added token of its template and none from the user's text. So this step is done here, with the
//! library's own rules (leftmost, then longest; `single_word`, `lstrip`, `rstrip`; before or after
//! normalisation). The library does the rest.

use std::collections::HashMap;
use std::ops::Range;

use crate::TokenId;

/// Added tokens to search for in one form of the text (as written, or normalised).
#[derive(Debug, Default)]
pub(crate) struct AddedTokens {
    /// By first byte; longest first.
    by_first: HashMap<u8, Vec<AddedToken>>,
}

#[derive(Debug)]
struct AddedToken {
    id: TokenId,
    pattern: String,
    rules: tokenizers::AddedToken,
    /// It is found in content too.
    is_text: bool,
}

/// Elements of HTML whose tags are tokens of Gemma's vocabulary, except two that control other models: `<s>`
/// begins a text, `<img>` stands for an image.
const HTML: &[&str] = &[
    "a",
    "b",
    "bbox",
    "blockquote",
    "body",
    "caption",
    "code",
    "div",
    "em",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "html",
    "i",
    "iframe",
    "li",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];

/// Returns true for an added token without control function, which models expect in content as well: white
/// space (`\n\n` is one of Gemma's), or a tag of HTML (`<table>`) that is not a special token.
pub(crate) fn is_text(token: &[u8], is_special: bool) -> bool {
    let element = || {
        let tag = token.strip_prefix(b"<")?.strip_suffix(b">")?;
        Some(tag.strip_prefix(b"/").unwrap_or(tag))
    };
    let is_html = |element: &[u8]| HTML.binary_search_by(|known| known.as_bytes().cmp(element)).is_ok();
    token.iter().all(u8::is_ascii_whitespace) || !is_special && element().is_some_and(is_html)
}

/// Found token and its byte range, including the white space that it strips.
#[derive(Debug, PartialEq)]
pub(crate) struct Match {
    pub(crate) id: TokenId,
    pub(crate) range: Range<usize>,
}

impl AddedTokens {
    pub(crate) fn insert(&mut self, id: TokenId, pattern: String, rules: tokenizers::AddedToken) {
        let Some(&first) = pattern.as_bytes().first() else { return };
        let tokens = self.by_first.entry(first).or_default();
        let is_text = is_text(pattern.as_bytes(), rules.special);
        tokens.push(AddedToken { id, pattern, rules, is_text });
        tokens.sort_by(|a, b| b.pattern.len().cmp(&a.pattern.len()).then(a.id.cmp(&b.id)));
    }

    /// Returns the added tokens in `text` whose own bytes `allowed` accepts, in order, without overlap. Those
    /// without control function are found everywhere ([`is_text`]).
    pub(crate) fn find(&self, text: &str, allowed: impl Fn(Range<usize>) -> bool) -> Vec<Match> {
        let mut matches = Vec::new();
        let (mut at, mut free_from) = (0, 0);
        while at < text.len() {
            let Some((token, range)) = self.token_at(text, at, &allowed) else {
                at += 1;
                continue;
            };
            at = range.end;
            if !token.fits_words(text, &range) {
                continue;
            }
            let taken = token.with_spaces(text, range, free_from);
            // The search continues after the token itself: a token inside its stripped white space is found
            // too.
            free_from = taken.end;
            matches.push(Match { id: token.id, range: taken });
        }
        matches
    }

    fn token_at(
        &self,
        text: &str,
        at: usize,
        allowed: &impl Fn(Range<usize>) -> bool,
    ) -> Option<(&AddedToken, Range<usize>)> {
        let rest = &text.as_bytes()[at..];
        self.by_first.get(&rest[0])?.iter().find_map(|token| {
            let range = at..at + token.pattern.len();
            let fits = rest.starts_with(token.pattern.as_bytes());
            (fits && (token.is_text || allowed(range.clone()))).then_some((token, range))
        })
    }
}

impl AddedToken {
    fn fits_words(&self, text: &str, range: &Range<usize>) -> bool {
        let word = |c: Option<char>| c.is_some_and(regex_syntax::is_word_character);
        !self.rules.single_word
            || !(word(text[..range.start].chars().next_back()) || word(text[range.end..].chars().next()))
    }

    fn with_spaces(&self, text: &str, range: Range<usize>, free_from: usize) -> Range<usize> {
        let (mut start, mut end) = (range.start, range.end);
        if self.rules.lstrip {
            start = text[..start].trim_end().len().max(free_from);
        }
        if self.rules.rstrip {
            end = text.len() - text[end..].trim_start().len();
        }
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(content: &str) -> tokenizers::AddedToken {
        tokenizers::AddedToken::from(content, false)
    }

    /// Searches `text` for the given tokens (ids are indices); only its part `allowed` may contain them.
    fn check(
        tokens: &[tokenizers::AddedToken],
        text: &str,
        allowed: Range<usize>,
        expected: &[(TokenId, Range<usize>)],
    ) {
        let mut added = AddedTokens::default();
        for (id, token) in tokens.iter().enumerate() {
            added.insert(id as TokenId, token.content.clone(), token.clone());
        }
        let found: Vec<_> = added
            .find(text, |range| allowed.start <= range.start && range.end <= allowed.end)
            .into_iter()
            .map(|found| (found.id, found.range))
            .collect();
        assert_eq!(found, expected, "{text:?} {allowed:?}");
    }

    #[test]
    fn leftmost_then_longest() {
        let tokens = [rules("<c"), rules("<c>"), rules("c>d")];
        check(&tokens, "x<c>d<c", 0..7, &[(1, 1..4), (0, 5..7)]);
    }

    #[test]
    fn text_outside_the_allowed_part_is_ignored() {
        let tokens = [rules("<c"), rules("<c>")];
        check(&tokens, "<c><c>", 3..6, &[(1, 3..6)]);
        check(&tokens, "<c>", 0..2, &[(0, 0..2)]);
        check(&tokens, "<c>", 1..3, &[]);
    }

    #[test]
    fn white_space_is_found_everywhere() {
        let tokens = [rules("\n"), rules("\n\n"), rules("a\n")];
        check(&tokens, "a\n\n\nb", 0..0, &[(1, 1..3), (0, 3..4)]);
    }

    #[test]
    fn tags_of_html_are_found_everywhere() {
        let tokens = [rules("<td>"), rules("</td>"), rules("<tool_call>"), rules("<b>").special(true)];
        check(&tokens, "<td>x</td><tool_call><b>", 0..0, &[(0, 0..4), (1, 5..10)]);
        assert!(HTML.is_sorted());
    }

    #[test]
    fn tokens_strip_white_space_and_respect_words() {
        let both = [rules("<a>").lstrip(true).rstrip(true)];
        check(&both, "x \n<a> <a> y", 0..12, &[(0, 1..7), (0, 7..11)]);
        let word = [rules("ab").single_word(true)];
        check(&word, "ab abc _ab éab ab", 0..18, &[(0, 0..2), (0, 16..18)]);
    }
}
