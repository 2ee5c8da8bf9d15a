//! Grammars as data: the allowed output of a model, from a family's dialect and the tools' schemas.
//!
//! One grammar covers a whole reply from its first token: reasoning, text of the answer, calls, the end. One
//! mechanism thus serves every mode, and no trigger needs to watch for a marker to enable a constraint.

mod calls;
mod given;
mod json_document;
mod lark;
mod notations;
mod reply;
mod values;

use crate::schema::UnenforcedKeyword;
pub(crate) use reply::reply_grammar;

pub use json_document::json_grammar;
pub use notations::{GbnfError, gbnf_grammar, is_gbnf, lark_pattern};

/// A grammar as text, to be compiled with a tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grammar {
    /// Rules in llguidance's Lark dialect, the start rule named `start`. They cover a whole reply.
    pub lark: String,
    /// Texts of the rules `marker_0`, `marker_1`, …, which `lark` uses and does not define: texts that are,
    /// or contain, added tokens of some tokenizers. The compiling side defines each as the sequence of tokens
    /// and strings that the tokenizer makes of it.
    pub markers: Vec<String>,
}

/// The grammar of a reply, and the keywords it does not enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyGrammar {
    /// The grammar.
    pub grammar: Grammar,
    /// Keywords of the schemas that it does not enforce: finished values must be validated.
    pub unenforced: Vec<UnenforcedKeyword>,
}
