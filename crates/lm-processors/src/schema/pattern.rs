//! Conversion of JSON Schema's regular expressions (ECMA 262, unanchored) to those of terminals.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::ecma::{PatternError, for_grammar, for_validation};
use super::json_text;
use super::look_around::split_looks;
use crate::layout::Layout;

/// The longest pattern that is compiled.
const MAX_PATTERN_BYTES: usize = 4096;
/// Maximum number of Unicode property classes in a pattern: each has hundreds of ranges.
const MAX_PROPERTIES: usize = 64;
/// Maximum length of the expression written for a pattern: classes of letters have hundreds of ranges.
const MAX_WRITTEN_BYTES: usize = 1 << 17;

/// Terminal expressions that together match exactly the texts in which `pattern` is found; none when a
/// grammar cannot say it (back references, word borders, an anchor or look-around in the middle).
pub(crate) fn full_match(pattern: &str) -> Option<Vec<String>> {
    full_match_of(pattern, whole)
}

/// The same for the texts as JSON writes them, in the spellings of `layout`.
pub(crate) fn full_match_in_json(pattern: &str, layout: Layout) -> Option<Vec<String>> {
    let anything = format!("{}*", json_text::character(layout));
    let whole = |pattern: &str| written(&json_text::spelled(&parse(pattern)?, layout), Edge::Open(&anything));
    full_match_of(pattern, whole)
}

/// Terminal expressions for a pattern and its look-arounds, each written by `whole`.
fn full_match_of(pattern: &str, whole: impl Fn(&str) -> Option<String>) -> Option<Vec<String>> {
    let (looks, rest) = split_looks(pattern)?;
    let mut all = vec![format!("/{}/", whole(&rest)?)];
    for look in looks {
        all.push(format!("{}/{}/", if look.negative { "~" } else { "" }, whole(&look.found)?));
    }
    Some(all)
}

/// A regular expression that matches the whole of each text in which `pattern` is found.
fn whole(pattern: &str) -> Option<String> {
    written(&parse(pattern)?, Edge::Open(ANYTHING))
}

fn written(pattern: &Hir, edge: Edge<'_>) -> Option<String> {
    let mut out = String::new();
    write_edge(pattern, [edge; 2], &mut out)?;
    // An empty expression would begin a comment of the grammar, `//`.
    Some(if out.is_empty() { "()".to_owned() } else { out })
}

/// Returns true if a grammar can express `pattern`, false if only a validator of finished values can.
///
/// # Errors
/// [`PatternError`].
pub(super) fn has_grammar(pattern: &str) -> Result<bool, PatternError> {
    let searched = for_validation(pattern)?;
    if full_match(pattern).is_some() {
        return Ok(true);
    }
    let schema = serde_json::json!({"pattern": searched});
    match jsonschema::validator_for(&schema) {
        Ok(_) => Ok(false),
        Err(_) => Err(PatternError::Unsupported { construct: "the expression, or its size," }),
    }
}

/// Returns true if no text matches two of `patterns`: all are anchored, and their first characters differ.
pub(super) fn are_disjoint<'a>(patterns: impl Iterator<Item = &'a str>) -> bool {
    let mut seen: Vec<String> = Vec::new();
    for pattern in patterns {
        let Some(prefix) = parse(pattern).as_ref().and_then(anchored_prefix) else { return false };
        if seen.iter().any(|other| other.starts_with(&prefix) || prefix.starts_with(other.as_str())) {
            return false;
        }
        seen.push(prefix);
    }
    true
}

/// Returns true if every text that `pattern` matches has a control character or one of `escaped`.
pub(crate) fn needs_escape(pattern: &str, escaped: &str) -> bool {
    let is_plain = |c: char| c >= ' ' && !escaped.contains(c);
    parse(pattern).is_some_and(|hir| !matches_plain(&hir, &is_plain))
}

/// Returns true if the expression, without its look-around, matches a text of plain characters.
fn matches_plain(hir: &Hir, is_plain: &impl Fn(char) -> bool) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => true,
        HirKind::Literal(text) => String::from_utf8_lossy(&text.0).chars().all(is_plain),
        // No 64 characters in a row are escaped.
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).take(64).any(is_plain))
        }
        HirKind::Repetition(repetition) => repetition.min == 0 || matches_plain(&repetition.sub, is_plain),
        HirKind::Capture(group) => matches_plain(&group.sub, is_plain),
        HirKind::Concat(parts) => parts.iter().all(|part| matches_plain(part, is_plain)),
        HirKind::Alternation(options) => options.iter().any(|option| matches_plain(option, is_plain)),
    }
}

/// The expression that `pattern` is; none if it is not compiled.
pub(super) fn parse(pattern: &str) -> Option<Hir> {
    let properties = pattern.matches("\\p").count() + pattern.matches("\\P").count();
    if pattern.len() > MAX_PATTERN_BYTES || properties > MAX_PROPERTIES {
        return None;
    }
    regex_syntax::Parser::new().parse(&for_grammar(pattern)?).ok()
}

fn anchored_prefix(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Concat(parts) => match (parts[0].kind(), parts.get(1)?.kind()) {
            (HirKind::Look(Look::Start), HirKind::Literal(text)) => String::from_utf8(text.0.to_vec()).ok(),
            _ => None,
        },
        HirKind::Capture(group) => anchored_prefix(&group.sub),
        _ => None,
    }
}

/// Context on one side of a subexpression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge<'a> {
    /// Any text, as this expression, unless the part begins or ends with an anchor.
    Open(&'a str),
    /// The text's edge, at an anchor.
    Anchored,
    /// Another part of the pattern.
    Inside,
}

impl<'a> Edge<'a> {
    /// Expression for the text beyond the edge.
    fn beyond(self) -> &'a str {
        if let Self::Open(anything) = self { anything } else { "" }
    }
}

/// Any text, as a regular expression.
const ANYTHING: &str = "(?s:.*)";

/// Writes a part of a pattern between two edges.
fn write_edge(hir: &Hir, edges: [Edge<'_>; 2], out: &mut String) -> Option<()> {
    if hir.properties().look_set().is_empty() {
        out.push_str(edges[0].beyond());
        write(hir, out)?;
        out.push_str(edges[1].beyond());
        return Some(());
    }
    match hir.kind() {
        HirKind::Look(_) => write_sequence(std::slice::from_ref(hir), edges, out),
        HirKind::Concat(parts) => write_sequence(parts, edges, out),
        HirKind::Capture(group) => write_edge(&group.sub, edges, out),
        HirKind::Alternation(options) => write_options(options, edges, out),
        HirKind::Repetition(repetition) if repetition.max == Some(1) => match repetition.min {
            0 => write_options(&[(*repetition.sub).clone(), Hir::empty()], edges, out),
            _ => write_edge(&repetition.sub, edges, out),
        },
        _ => None,
    }
}

fn write_options(options: &[Hir], edges: [Edge<'_>; 2], out: &mut String) -> Option<()> {
    out.push_str("(?:");
    for (at, option) in options.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "|" });
        write_edge(option, edges, out)?;
    }
    out.push(')');
    Some(())
}

/// Writes consecutive parts; the outer ones may be anchors.
fn write_sequence(parts: &[Hir], [mut left, mut right]: [Edge<'_>; 2], out: &mut String) -> Option<()> {
    let is_look = |part: &Hir, look: Look| matches!(part.kind(), HirKind::Look(found) if *found == look);
    let mut parts = parts;
    while let Some((first, rest)) = parts.split_first()
        && left != Edge::Inside
        && is_look(first, Look::Start)
    {
        (left, parts) = (Edge::Anchored, rest);
    }
    while let Some((last, rest)) = parts.split_last()
        && right != Edge::Inside
        && is_look(last, Look::End)
    {
        (right, parts) = (Edge::Anchored, rest);
    }
    match parts {
        [] => write_edge(&Hir::empty(), [left, right], out),
        [only] if matches!(only.kind(), HirKind::Look(_)) => None,
        [only] => write_edge(only, [left, right], out),
        [first, middle @ .., last] => {
            write_edge(first, [left, Edge::Inside], out)?;
            middle.iter().try_for_each(|part| write_edge(part, [Edge::Inside; 2], out))?;
            write_edge(last, [Edge::Inside, right], out)
        }
    }
}

fn write(hir: &Hir, out: &mut String) -> Option<()> {
    if out.len() > MAX_WRITTEN_BYTES {
        return None;
    }
    match hir.kind() {
        HirKind::Empty => {}
        HirKind::Look(_) => return None,
        HirKind::Literal(text) => out.push_str(&escaped(std::str::from_utf8(&text.0).ok()?)),
        HirKind::Class(Class::Unicode(class)) => {
            if class.ranges().is_empty() {
                return None;
            }
            out.push('[');
            for range in class.ranges() {
                out.push_str(&format!("\\u{{{:x}}}-\\u{{{:x}}}", range.start() as u32, range.end() as u32));
            }
            out.push(']');
        }
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Repetition(repetition) => {
            out.push_str("(?:");
            write(&repetition.sub, out)?;
            match repetition.max {
                Some(max) => out.push_str(&format!("){{{},{max}}}", repetition.min)),
                None => out.push_str(&format!("){{{},}}", repetition.min)),
            }
        }
        HirKind::Capture(group) => {
            out.push_str("(?:");
            write(&group.sub, out)?;
            out.push(')');
        }
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(part, out))?,
        HirKind::Alternation(options) => {
            out.push_str("(?:");
            for (at, option) in options.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "|" });
                write(option, out)?;
            }
            out.push(')');
        }
    }
    Some(())
}

/// `text` as a regular expression for use between the slashes of a terminal.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' || c == ' ' => out.push(c),
            c => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_anchors_allow_any_text() {
        assert_eq!(whole("^a$").as_deref(), Some("a"));
        assert_eq!(whole("a").as_deref(), Some("(?s:.*)a(?s:.*)"));
        assert_eq!(whole("^a|b$").as_deref(), Some("(?:a(?s:.*)|(?s:.*)b)"));
        assert_eq!(whole(r"^\d+$").as_deref(), Some(r"(?:[\u{30}-\u{39}]){1,}"));
        let colors = whole("^(red|green)$|^#[0-9a-f]{6}$").expect("anchors at the edges");
        assert!(!colors.contains(ANYTHING), "{colors}");
        assert_eq!(whole("^(a|b$)").as_deref(), Some("(?:a(?s:.*)|b)"));
        assert_eq!(whole("(^|-)a($|-)").as_deref(), Some(r"(?:|(?s:.*)\u{2d})a(?:|\u{2d}(?s:.*))"));
        assert_eq!(whole("^(?:(^a)?b)?$").as_deref(), Some("(?:(?:a|)b|)"));
        assert_eq!(whole(&r"\p{L}".repeat(800)), None);
        for unsupported in [r"(?=a)b", r"\bword", "a^b", r"(a)\1", "["] {
            assert_eq!(full_match(unsupported), None, "{unsupported}");
        }
    }

    #[test]
    fn patterns_whose_texts_need_escapes_are_found() {
        for pattern in [r"^[A-Z]:\\", "^\"[a-z]+\"$", "^a\nb$", r"^\t$", "(\"|\\\\)+"] {
            assert!(needs_escape(pattern, "\"\\"), "{pattern}");
        }
        for pattern in ["^O'[A-Z]+$", "^[^a]$", "(\"x)?", "a|\"", r"\s", "^$"] {
            assert!(!needs_escape(pattern, "\"\\"), "{pattern}");
        }
    }

    #[test]
    fn patterns_are_disjoint_when_their_prefixes_are() {
        assert!(are_disjoint(["^a-", "^b-"].into_iter()));
        assert!(!are_disjoint(["^a-", "^a-b"].into_iter()));
        assert!(!are_disjoint(["^a-", "b"].into_iter()));
    }
}
