//! GBNF, the grammar format of llama.cpp, as a Lark grammar.
//!
//! Source: `grammars/README.md` and `src/llama-grammar.cpp` of llama.cpp, as of 2026-11. Its elements that
//! name tokens (`<think>`, `<[1000]>`) are refused: a grammar here is compiled for any tokenizer.

use super::{gbnf_parser, gbnf_writer};
use crate::grammar::Grammar;

/// A fault of a grammar in GBNF.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("GBNF, line {line}: {message}")]
pub struct GbnfError {
    /// Line of the fault, from 1.
    pub line: usize,
    /// Description of the fault: what was expected and what came.
    pub message: String,
}

/// Translates a grammar in GBNF, with the start rule `root`, to llguidance's Lark dialect.
///
/// Rules that do not refer to themselves become terminals, as do such parts of the others. A terminal matches
/// the longest text. Parts of one sequence that could take each other's characters are one terminal; across
/// the borders of rules a shorter match, after which the rest would fit, is not found. (With `num ::= [0-9]+
/// ws` and `ws ::= [ \n]*`, the rule `line ::= num "\n"` of a recursive grammar matches nothing.)
///
/// # Errors
/// [`GbnfError`] names the line of a syntax error, of a rule that is defined twice, of the first mention of
/// one that is not defined, and of what is too much: 256 KiB, 2,000 rules.
///
/// ```
/// use lm_processors::gbnf_grammar;
///
/// let grammar = gbnf_grammar("root ::= sum\nsum ::= [0-9]+ (\"+\" sum)?")?;
/// assert!(grammar.lark.contains("start: "));
/// assert_eq!(gbnf_grammar("root ::= other").unwrap_err().to_string(), "GBNF, line 1: no rule `other`");
/// # Ok::<(), lm_processors::GbnfError>(())
/// ```
pub fn gbnf_grammar(text: &str) -> Result<Grammar, GbnfError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(gbnf_writer::lark(&gbnf_parser::parse(text)?))
}

/// Returns true if a text is a grammar in GBNF: one of its lines has `::=` before any quote, bracket or
/// comment, as no line of a Lark grammar has. Without the rule `start`, which a Lark grammar has, a text with
/// the rule `root` or a mistyped `::=` is GBNF, too: its errors are about GBNF.
pub fn is_gbnf(text: &str) -> bool {
    let code = |line| str::split(line, ['"', '[', '/', '#']).next().unwrap_or_default().trim();
    let begins = |name| text.lines().any(|line| gbnf_parser::begins_with_name(code(line), name));
    text.lines().any(|line| code(line).contains("::="))
        || !begins("start") && (begins("root") || text.lines().any(|line| is_mistyped(code(line))))
}

/// Returns true if a line begins a rule with another sign than `::=` and the colon of Lark.
fn is_mistyped(line: &str) -> bool {
    let sign = gbnf_parser::after_name(line).unwrap_or_default();
    [":=", "=", "::", "->"].iter().any(|typo| sign.starts_with(typo))
}
