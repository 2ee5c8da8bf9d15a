//! Conversion of regular expressions in the syntax of Rust's `regex` to those of JSON Schema.

use std::fmt::Write as _;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look};

/// Classes of Unicode with hundreds of ranges, and their names in patterns.
const NAMED: [(&str, &str); 12] = [
    (r"\w", r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]"),
    (r"\W", r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]"),
    (r"\d", r"\p{Nd}"),
    (r"\D", r"\P{Nd}"),
    (r"\s", r"\p{White_Space}"),
    (r"\S", r"\P{White_Space}"),
    (r"\p{L}", r"\p{L}"),
    (r"\p{Lu}", r"\p{Lu}"),
    (r"\p{Ll}", r"\p{Ll}"),
    (r"\p{N}", r"\p{N}"),
    (r"\p{P}", r"\p{P}"),
    (r"\p{Alphabetic}", r"\p{Alphabetic}"),
];
/// Characters with a meaning outside of classes.
const SYNTAX: &str = r"^$\.*+?()[]{}|/";
/// Characters with a meaning in classes.
const CLASS: &str = r"\]^-[";
/// Maximum length of a pattern, as schemas have it.
const MAX_BYTES: usize = 4096;

/// The pattern of JSON Schema for the texts that `regex`, in the syntax of Rust's `regex`, matches as a
/// whole; `None` if it has none: it is no such expression, has a border of words, or is too long.
///
/// ```
/// let pattern = lm_processors::schema_pattern("(?i)[[:digit:]]+x").expect("a pattern");
/// assert_eq!(pattern, "^(?:[0-9]+[Xx])$");
/// assert!(lm_processors::schema_pattern(r"(?=a)").is_none());
/// ```
pub fn schema_pattern(regex: &str) -> Option<String> {
    let (text, regex) = (regex, regex_syntax::Parser::new().parse(regex).ok()?);
    // Where both read the same, clients and models see their own expression.
    if whole(&regex) == regex && super::pattern::parse(text).as_ref() == Some(&regex) {
        return Some(format!("^(?:{text})$")).filter(|pattern| pattern.len() <= MAX_BYTES);
    }
    let mut pattern = "^(?:".to_owned();
    write(&whole(&regex), &mut pattern)?;
    pattern += ")$";
    (pattern.len() <= MAX_BYTES).then_some(pattern)
}

/// The expression without anchors at its edges: the whole text is matched.
fn whole(regex: &Hir) -> Hir {
    let HirKind::Concat(parts) = regex.kind() else { return regex.clone() };
    let parts = match &parts[..] {
        [start, rest @ ..] if *start.kind() == HirKind::Look(Look::Start) => rest,
        parts => parts,
    };
    let parts = match parts {
        [rest @ .., end] if *end.kind() == HirKind::Look(Look::End) => rest,
        parts => parts,
    };
    Hir::concat(parts.to_vec())
}

fn write(regex: &Hir, out: &mut String) -> Option<()> {
    match regex.kind() {
        HirKind::Empty => out.push_str("(?:)"),
        HirKind::Literal(text) => {
            std::str::from_utf8(&text.0).ok()?.chars().for_each(|c| write_char(c, SYNTAX, out));
        }
        HirKind::Class(Class::Unicode(class)) => write_class(class, out)?,
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Look(_) => return None,
        HirKind::Capture(group) => write_group(&group.sub, out)?,
        HirKind::Repetition(repetition) => {
            write_group(&repetition.sub, out)?;
            match (repetition.min, repetition.max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => write!(out, "{{{min},}}").ok()?,
                (min, Some(max)) => write!(out, "{{{min},{max}}}").ok()?,
            }
        }
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| match part.kind() {
            HirKind::Alternation(_) => write_group(part, out),
            _ => write(part, out),
        })?,
        HirKind::Alternation(options) => {
            for (index, option) in options.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "|" });
                write(option, out)?;
            }
        }
    }
    Some(())
}

/// Writes a part that an operator follows.
fn write_group(regex: &Hir, out: &mut String) -> Option<()> {
    if let HirKind::Class(Class::Unicode(class)) = regex.kind() {
        return write_class(class, out);
    }
    out.push_str("(?:");
    write(regex, out)?;
    out.push(')');
    Some(())
}

fn write_class(class: &ClassUnicode, out: &mut String) -> Option<()> {
    if class.ranges().is_empty() {
        return None;
    }
    if let Some((_, name)) = NAMED.iter().find(|(known, _)| is_class(class, known)) {
        out.push_str(name);
        return Some(());
    }
    let mut others = class.clone();
    others.negate();
    let is_shorter = others.ranges().len() < class.ranges().len();
    out.push_str(if is_shorter { "[^" } else { "[" });
    for range in if is_shorter { others.ranges() } else { class.ranges() } {
        write_char(range.start(), CLASS, out);
        if range.start() != range.end() {
            out.push('-');
            write_char(range.end(), CLASS, out);
        }
    }
    out.push(']');
    Some(())
}

fn is_class(class: &ClassUnicode, named: &str) -> bool {
    let parsed = regex_syntax::Parser::new().parse(named);
    parsed.is_ok_and(|regex| matches!(regex.kind(), HirKind::Class(Class::Unicode(known)) if known == class))
}

/// Writes a character, escaped where it has a meaning: outside of classes, or in one.
fn write_char(c: char, meanings: &str, out: &mut String) {
    match c {
        '\n' => out.push_str(r"\n"),
        c if c.is_control() => {
            write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to text does not fail");
        }
        c => {
            out.push_str(if meanings.contains(c) { "\\" } else { "" });
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_match_the_same_texts() {
        for (regex, matching, other) in [
            ("(?i)abc", "aBC", "abcd"),
            ("[[:alpha:]]+", "Word", "W1"),
            (r"\w+ é", "naïve é", "- é"),
            (r"(?x) a \s b", "a b", "ab"),
            ("(a|bc){2,}d?", "abcd", "ad"),
            ("(?P<n>x*)y", "xxy", "xx"),
            ("^a.c$", "a-c", "a\nc"),
            (r"\pL&&\d", "x&&7", "x7"),
        ] {
            let pattern = schema_pattern(regex).expect(regex);
            let validator = crate::validator(&json!({"pattern": pattern}), false).expect("a schema");
            assert!(validator.is_valid(&json!(matching)), "{regex}: {pattern}");
            assert!(!validator.is_valid(&json!(other)), "{regex}: {pattern}");
            assert!(super::super::pattern::full_match(&pattern).is_some(), "{regex} has a grammar");
        }
    }

    #[test]
    fn others_have_no_pattern() {
        for regex in ["(?=a)b", r"\bword", "(", r"(a)\1", &"ab?".repeat(2_000)] {
            assert_eq!(schema_pattern(regex), None, "{regex}");
        }
    }

    #[test]
    fn options_within_a_sequence_are_grouped() {
        let pattern = schema_pattern("(?i)a(?:bb|cc)d").expect("a pattern");
        let validator = crate::validator(&json!({"pattern": pattern}), false).expect("a schema");
        assert!(validator.is_valid(&json!("abbd")), "{pattern}");
        assert!(!validator.is_valid(&json!("abb")) && !validator.is_valid(&json!("ccd")), "{pattern}");
    }
}
