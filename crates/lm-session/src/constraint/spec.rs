//! What a grammar can be made of.

use serde_json::Value;

/// A grammar to compile: [`crate::Engine::compile`], or [`crate::GrammarCompiler::compile`] without a model.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintSpec {
    /// JSON text that fits this schema. The keys of an object come in the order of the schema. What the compiler has no
    /// grammar for is an error, not ignored. Options of llguidance can stand under `x-guidance`.
    JsonSchema(Value),
    /// Text that matches this regular expression as a whole (syntax of the crate `regex`).
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Text of a grammar.
    Lark {
        /// A grammar in llguidance's Lark dialect with the start rule `start`. It may use the rules `marker_0`, `marker_1`, …, one for
        /// each of `markers`, without defining them.
        text: String,
        /// Texts that are, or hold, added tokens of some tokenizers: what of them is an added token here stands for that token, the
        /// rest for its spelling.
        markers: Vec<String>,
    },
}

/// What a grammar says about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is complete.
    Accepted,
    /// So far it is right, and more must come.
    Incomplete,
    /// It is wrong from this byte on.
    Rejected {
        /// The first byte that the grammar does not take.
        at: usize,
    },
}
