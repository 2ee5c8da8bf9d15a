//! Conversion of JSON Schema's regular expressions (ECMA 262, unanchored) to those of terminals.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 4096;
/// Maximum number of Unicode property classes in a pattern: each has hundreds of ranges.
const MAX_PROPERTIES: usize = 64;
/// Maximum length of the expression written for a pattern: classes of letters have hundreds of ranges.
const MAX_WRITTEN_BYTES: usize = 1 << 17;

/// Builds a terminal's regular expression that matches every text in which `pattern` is found; `None` if it cannot be
/// expressed (look-around, back references, word boundaries, an anchor in the middle).
pub(crate) fn full_match(pattern: &str) -> Option<String> {
    let hir = parse(pattern)?;
    let mut out = String::new();
    write_alternatives(&hir, &mut out)?;
    Some(out)
}

/// Returns true if `pattern` can be expressed.
pub(super) fn is_supported(pattern: &str) -> bool {
    full_match(pattern).is_some()
}

/// Returns true if no text matches two of `patterns`: all are anchored, and their literal prefixes differ.
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

fn parse(pattern: &str) -> Option<Hir> {
    let properties = pattern.matches("\\p").count() + pattern.matches("\\P").count();
    if pattern.len() > MAX_PATTERN_BYTES || properties > MAX_PROPERTIES {
        return None;
    }
    regex_syntax::Parser::new().parse(&ascii_classes(pattern)).ok()
}

/// In ECMA 262, `\d` and `\w` are ASCII.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('d')) => out.push_str("[0-9]"),
            ('\\', Some('D')) => out.push_str("[^0-9]"),
            ('\\', Some('w')) => out.push_str("[0-9A-Za-z_]"),
            ('\\', Some('W')) => out.push_str("[^0-9A-Za-z_]"),
            ('\\', Some('/')) => out.push('/'),
            ('\\', Some(next)) => out.extend(['\\', next]),
            (c, _) => out.push(c),
        }
    }
    out
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

/// Writes a part that may touch both ends of the text: alternatives, each with its own anchors.
fn write_alternatives(hir: &Hir, out: &mut String) -> Option<()> {
    match hir.kind() {
        HirKind::Alternation(options) => {
            out.push_str("(?:");
            for (at, option) in options.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "|" });
                write_alternatives(option, out)?;
            }
            out.push(')');
            Some(())
        }
        HirKind::Capture(group) => write_alternatives(&group.sub, out),
        HirKind::Concat(parts) => write_anchored(parts, out),
        _ => write_anchored(std::slice::from_ref(hir), out),
    }
}

fn write_anchored(parts: &[Hir], out: &mut String) -> Option<()> {
    let is_look = |part: &Hir, look: Look| matches!(part.kind(), HirKind::Look(found) if *found == look);
    let start = parts.iter().take_while(|part| is_look(part, Look::Start)).count();
    let end = parts[start..].iter().rev().take_while(|part| is_look(part, Look::End)).count();
    const ANYTHING: &str = "(?s:.*)";
    out.push_str(if start == 0 { ANYTHING } else { "" });
    parts[start..parts.len() - end].iter().try_for_each(|part| write(part, out))?;
    out.push_str(if end == 0 { ANYTHING } else { "" });
    Some(())
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
    fn anchors_say_where_anything_may_stand() {
        assert_eq!(full_match("^a$").as_deref(), Some("a"));
        assert_eq!(full_match("a").as_deref(), Some("(?s:.*)a(?s:.*)"));
        assert_eq!(full_match("^a|b$").as_deref(), Some("(?:a(?s:.*)|(?s:.*)b)"));
        assert_eq!(full_match(r"^\d+$").as_deref(), Some(r"(?:[\u{30}-\u{39}]){1,}"));
        assert_eq!(full_match(&r"\p{L}".repeat(800)), None);
        for unsupported in [r"(?=a)b", r"\bword", "a^b", r"(a)\1", "["] {
            assert_eq!(full_match(unsupported), None, "{unsupported}");
        }
    }

    #[test]
    fn patterns_are_disjoint_when_their_prefixes_are() {
        assert!(are_disjoint(["^a-", "^b-"].into_iter()));
        assert!(!are_disjoint(["^a-", "^a-b"].into_iter()));
        assert!(!are_disjoint(["^a-", "b"].into_iter()));
    }
}
