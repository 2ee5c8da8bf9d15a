//! Grammars of Python's Lark as regular expressions.

use super::expression::{Expression, regular_order};
use super::lark_parser;

/// Maximum length of an expression.
const MAX_BYTES: usize = 16 << 10;

/// The regular expression, in the syntax of Rust's `regex`, of the texts that a grammar of Python's Lark with
/// the start rule `start` accepts; `None` for a grammar that is recursive, ignores texts (`%ignore`), uses
/// templates, or has a longer expression.
///
/// Source: the reference of grammars of Lark 1.3, and its `common.lark`.
///
/// ```
/// use lm_processors::lark_pattern;
///
/// let pattern = lark_pattern("start: line+\nline: \"+\" /.*/ LF\n%import common.LF").expect("no recursion");
/// assert_eq!(pattern, r"(?:(?:\+(?:.*)(?:(?:\n))))+");
/// assert!(lark_pattern("start: \"(\" start? \")\"").is_none());
/// ```
pub fn lark_pattern(grammar: &str) -> Option<String> {
    let rules = lark_parser::parse(grammar)?;
    let mut patterns = vec![None; rules.len()];
    for rule in regular_order(&rules) {
        let pattern = format!("(?:{})", regex(&rules[rule], &patterns)?);
        patterns[rule] = (pattern.len() <= MAX_BYTES).then_some(pattern);
    }
    let start = patterns.swap_remove(0)?;
    Some(start.strip_prefix("(?:")?.strip_suffix(')')?.to_owned())
}

/// Regular expression of an expression; `None` if one of its rules has none, or it is too long.
fn regex(expression: &Expression, patterns: &[Option<String>]) -> Option<String> {
    let part = |part: &Expression| regex(part, patterns);
    let text = match expression {
        Expression::Literal(text) => regex_syntax::escape(text),
        Expression::Regex(regex) => format!("(?:{regex})"),
        Expression::Rule(rule) => patterns[*rule].clone()?,
        Expression::Sequence(parts) => parts.iter().map(part).collect::<Option<String>>()?,
        Expression::Alternatives(parts) => {
            format!("(?:{})", parts.iter().map(part).collect::<Option<Vec<_>>>()?.join("|"))
        }
        Expression::Repeat { of, min, max } => {
            let max = max.map_or(String::new(), |max| max.to_string());
            match (min, max.as_str()) {
                (0, "") => format!("(?:{})*", part(of)?),
                (1, "") => format!("(?:{})+", part(of)?),
                (0, "1") => format!("(?:{})?", part(of)?),
                (min, max) => format!("(?:{}){{{min},{max}}}", part(of)?),
            }
        }
    };
    (text.len() <= MAX_BYTES).then_some(text)
}
