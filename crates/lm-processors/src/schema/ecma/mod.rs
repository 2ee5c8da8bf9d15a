//! Regular expressions of ECMA-262, read by code points as with its flag `u`.
//!
//! Braces and brackets that Annex B reads as literals are literals. Everything else that is a syntax error
//! with the flag `u` is refused: without it, implementations read it differently.

mod parse;
mod syntax;
mod write;

use parse::parsed;
use write::{Target, Writer};

/// Fault of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// It is not an expression of ECMA-262.
    #[error("not a regular expression of ECMA-262, at character {at}: {reason}")]
    Syntax {
        /// Number of the characters before it.
        at: usize,
        /// Description of the fault.
        reason: &'static str,
    },
    /// The regular expression engine has no equivalent.
    #[error("{construct} cannot be validated by the rules of ECMA-262")]
    Unsupported {
        /// The part without an equivalent.
        construct: &'static str,
    },
}

/// Translates `pattern` to the syntax of the crate `regex-syntax`; `None` for look-around, word boundaries,
/// back references, and what is not a pattern. Where implementations disagree on white space, the translation
/// matches what all of them match.
pub(super) fn for_grammar(pattern: &str) -> Option<String> {
    Writer::new(&parsed(pattern).ok()?, Target::Grammar).written().ok()
}

/// Translates `pattern` to the syntax of the crate `fancy-regex`, in which validators search.
///
/// # Errors
/// [`PatternError`].
pub(super) fn for_validation(pattern: &str) -> Result<String, PatternError> {
    Writer::new(&parsed(pattern)?, Target::Validation).written()
}

#[cfg(test)]
mod tests {
    use super::{PatternError, for_grammar, for_validation};

    #[test]
    fn characters_that_are_literals_in_ecma_262_are_escaped() {
        let cases = [
            (r"^{a}$", r"^\u{7b}a\u{7d}$"),
            (r"a{2,3}b{,3}c{2", r"a{2,3}b\u{7b},3\u{7d}c\u{7b}2"),
            (r"^\0$", r"^\u{0}$"),
            (r"[[:alpha:]]", r"[\u{5b}\u{3a}alpha\u{3a}]\u{5d}"),
            (r"[a&&b~~c-]", r"[a\u{26}\u{26}b\u{7e}\u{7e}c\u{2d}]"),
            (r"[\w-z]", r"[0-9A-Z_a-z\u{2d}z]"),
            (r"[a-\d]", r"[a\u{2d}0-9]"),
            (r"[^]", "(?s:.)"),
            (r"\cJ\x41\u0042\u{43}\ud83d\ude00", r"\u{a}ABC\u{1f600}"),
            (r"\/\-", r"/-"),
            (r"[\b]", r"[\u{8}]"),
            (r"[^\D]", r"[^\u{0}-\u{2f}\u{3a}-\u{10ffff}]"),
            (r"(?<a>b)(?:c|)+?", r"(?:b)(?:c|)+?"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(for_grammar(pattern).as_deref(), Some(expected), "{pattern}");
            assert_eq!(for_validation(pattern).as_deref(), Ok(expected), "{pattern}");
        }
        for unsupported in [r"(a)\1", r"(?<a>b)\k<a>", r"\bword", r"\ud83d", r"\01", r"\a", r"[a", r"\"] {
            assert_eq!(for_grammar(unsupported), None, "{unsupported}");
        }
    }

    #[test]
    fn undefined_ecma_262_syntax_is_rejected() {
        let faulty = [
            "(?i)a",
            "(?i:a)",
            "(?P<a>b)",
            "(?>a)",
            "a++",
            "a**",
            "*a",
            "a|*",
            "^*",
            r"\b+",
            "(?=a)*",
            "(",
            ")",
            "[z-a]",
            "a{3,2}",
            "a{2}{3}",
            r"\A",
            r"\z",
            r"\h",
            r"\1",
            r"(a)\2",
            r"\k<a>",
            "(?<a>b)(?<a>c)",
            "(?<1>b)",
            r"\p{^L}",
            r"\pL",
            r"\c1",
            r"\x4",
            r"\u12",
            r"\u{110000}",
            r"(?#a)",
            "(?R)",
        ];
        for pattern in faulty {
            let found = for_validation(pattern);
            assert!(matches!(found, Err(PatternError::Syntax { .. })), "{pattern}: {found:?}");
            assert_eq!(for_grammar(pattern), None, "{pattern}");
        }
        assert_eq!(
            for_validation("ab(?>c)"),
            Err(PatternError::Syntax { at: 4, reason: "no group begins with these characters" })
        );
        // Groups whose captures the engine keeps where ECMA-262 resets them, or fills in another order.
        for pattern in [r"(?:(a)|b)*\1", r"(?<=(a)\1)b", r"(?!(a))\1", r"\ud83d", r"(?<=(a))\1"] {
            let found = for_validation(pattern);
            assert!(matches!(found, Err(PatternError::Unsupported { .. })), "{pattern}: {found:?}");
        }
    }
}
