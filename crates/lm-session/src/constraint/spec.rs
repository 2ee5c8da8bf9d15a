//! Specifications of grammars.

use serde::{Deserialize, Serialize};

/// A grammar to compile: [`crate::Engine::compile`], or [`crate::GrammarCompiler::compile`] without a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConstraintSpec {
    /// Text that matches this regular expression as a whole (syntax of the crate `regex`).
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Text that matches this Lark grammar.
    Lark {
        /// A grammar in llguidance's Lark dialect with the start rule `start`. A schema in it (`%json`) is
        /// read as llguidance reads it: patterns in the syntax of the crate `regex`, bounds as floats of 64
        /// bits, unknown keywords are errors. (`lm_processors::json_grammar` writes the grammar of any
        /// schema.) It may use the rules `marker_0`, `marker_1`, …, one for each of `markers`, without
        /// defining them.
        text: String,
        /// Texts that are or contain added tokens of some tokenizers: a part that is an added token of this
        /// tokenizer means that token, the rest its spelling.
        markers: Vec<String>,
    },
}

/// Result of checking a text against a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The text is complete.
    Accepted,
    /// The text is a valid prefix and must continue.
    Incomplete,
    /// The text is invalid from this byte on.
    Rejected {
        /// Offset of the first byte that the grammar rejects.
        at: usize,
    },
}
