//! Markup tags, tolerant of other blanks and quotes.

/// Result of matching a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The tag, of this length; `quote` is the quote at its end, if any.
    Match { len: usize, quote: Option<char> },
    /// A prefix of the tag, or empty text.
    Partial,
    /// Other text.
    NoMatch,
}

/// Returns true for blanks, including the symbols that byte-level and other tokenizers write for them.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{120}' | '\u{10a}' | '\u{2581}')
}

/// Trims leading blanks.
pub(crate) fn trim_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// Matches `tag` at the start of `text`. A blank in the tag matches any number of blanks, which are also
/// allowed around an equals sign; the quote at the tag's end may be the other kind or missing.
pub(crate) fn match_tag(text: &str, tag: &str) -> Tag {
    let mut rest = text;
    let mut chars = tag.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => {
                rest = trim_blanks(rest);
                continue;
            }
            '"' if chars.peek().is_none() => return quoted(text, trim_blanks(rest)),
            // `<function=f>` is also written with the attribute `name`.
            '=' => match attribute(
                trim_blanks(rest),
                &tag[..tag.len() - chars.clone().map(char::len_utf8).sum::<usize>()],
            ) {
                Some(after) => rest = after,
                None => return Tag::Partial,
            },
            _ => {}
        }
        match rest.strip_prefix(c) {
            Some(after) => rest = after,
            None if rest.is_empty() => return Tag::Partial,
            None => return Tag::NoMatch,
        }
    }
    Tag::Match { len: text.len() - rest.len(), quote: None }
}

/// Skips the attribute `name` of an element, which the tag `before` the equals sign does not have; `None` if
/// more text is needed to decide.
fn attribute<'t>(rest: &'t str, before: &str) -> Option<&'t str> {
    const NAME: &str = "name";
    if before.contains(NAME) || !before.starts_with('<') {
        return Some(rest);
    }
    match rest.strip_prefix(NAME) {
        Some(after) => Some(trim_blanks(after)),
        None if !rest.is_empty() && NAME.starts_with(rest) => None,
        None => Some(rest),
    }
}

/// A name without quotes around it.
pub(crate) fn unquoted(name: &str) -> &str {
    let inner = |quote: char| name.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(name)
}

/// Matches the end of a tag that ends with a quote.
fn quoted(text: &str, rest: &str) -> Tag {
    let len = text.len() - rest.len();
    match rest.chars().next() {
        None => Tag::Partial,
        Some(quote @ ('"' | '\'')) => Tag::Match { len: len + 1, quote: Some(quote) },
        Some(_) => Tag::Match { len, quote: None },
    }
}

/// End of a name in such a tag, and the position after `close`: past the closing quote and other attributes.
/// `None` until it is found within `limit` bytes.
pub(crate) fn end_of_name(
    text: &str,
    quote: Option<char>,
    close: &str,
    limit: usize,
) -> Option<(usize, usize)> {
    let text = &text[..text.floor_char_boundary(limit)];
    let Some(after) = close.strip_prefix('"') else {
        let end = text.find(close)?;
        return Some((end, end + close.len()));
    };
    let end = match quote {
        Some(quote) => text.find(quote)?,
        None => text.find(|c: char| is_blank(c) || after.starts_with(c) || c == '>')?,
    };
    let behind = end + quote.map_or(0, char::len_utf8);
    if after.is_empty() {
        return Some((end, behind));
    }
    let close = text[behind..].find(after)?;
    Some((end, behind + close + after.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_quotes_are_optional() {
        let is = |len, quote| Tag::Match { len, quote };
        let cases = [
            ("<param name=\"a\"", is(13, Some('"'))),
            ("<paramname='a'", is(12, Some('\''))),
            ("<param\u{120}name=a>", is(13, None)),
            ("<param \n name = \"a\"", is(17, Some('"'))),
            ("<param ", Tag::Partial),
            ("<param name=", Tag::Partial),
            ("", Tag::Partial),
            ("<parameter", Tag::NoMatch),
        ];
        for (text, expected) in cases {
            assert_eq!(match_tag(text, "<param name=\""), expected, "{text:?}");
        }
    }

    #[test]
    fn quoted_name_ends_at_its_quote() {
        let cases = [
            ("a\">x", Some('"'), Some((1, 3))),
            ("a\" id=\"1\">x", Some('"'), Some((1, 10))),
            ("a b'>x", Some('\''), Some((3, 5))),
            ("a>x", None, Some((1, 2))),
            ("a\"", Some('"'), None),
            ("a", None, None),
        ];
        for (text, quote, expected) in cases {
            assert_eq!(end_of_name(text, quote, "\">", 100), expected, "{text:?}");
        }
        assert_eq!(end_of_name("a\" string=", Some('"'), "\"", 100), Some((1, 2)));
    }
}
