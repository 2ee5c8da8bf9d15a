//! Typed errors for grammars that do not compile.

use crate::error::{Error, GrammarErrorKind};

/// Parts of the messages for an exceeded limit.
const TOO_LARGE: &[&str] =
    &["too big", "too large", "too many", "fuel", "limit", "level exceeded", "Unable to determine if regex"];

/// Creates the error for a Lark grammar, a regular expression or a choice.
pub(super) fn grammar_error(message: String) -> Error {
    let kind = match TOO_LARGE.iter().any(|text| message.contains(text)) {
        true => GrammarErrorKind::TooLarge,
        false => GrammarErrorKind::InvalidGrammar,
    };
    Error::Grammar { kind, message }
}
