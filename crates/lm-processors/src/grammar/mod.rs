//! Grammars as data: what a model may write, from a family's dialect and the tools' schemas.
//!
//! One grammar covers a whole reply from its first token: reasoning, text of the answer, calls, the end. So one mechanism
//! serves every mode, and nothing has to watch for a marker to switch a constraint on.

mod calls;
mod error;
mod given;
mod lark;
mod reply;
mod schema;
mod values;

use lm_template::{ToolSpec, Value};

use crate::tokens::MarkerTokens;
pub(crate) use reply::reply_grammar;

pub use error::{SchemaError, SchemaFault};
pub use schema::{Reading, Relaxed, relax};

/// A grammar as text. Who holds a tokenizer compiles it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grammar {
    /// Rules in llguidance's Lark dialect, the first one called is `start`. It covers a whole reply.
    pub lark: String,
    /// The texts behind the rules `marker_0`, `marker_1`, …, which `lark` uses and does not define: texts that are added tokens
    /// of some tokenizers, or contain such. Who compiles the grammar defines each as the sequence of tokens and strings
    /// that the tokenizer makes of it.
    pub markers: Vec<String>,
}

/// Whether and which tools are called in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model writes text, or text and then calls.
    #[default]
    Auto,
    /// The model calls at least one tool.
    Required,
    /// The model calls this tool.
    Named(String),
    /// The model writes text; no call can occur in it.
    None,
}

/// How many calls a reply may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calls {
    /// Any number.
    #[default]
    Several,
    /// One.
    One,
}

/// What the answer is, where it is text.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat {
    /// A JSON object.
    JsonObject,
    /// JSON that fits this schema.
    JsonSchema(Value),
    /// A text that matches this regular expression as a whole (syntax of the crate `regex`, without look-around).
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// A text of this grammar: llguidance's Lark dialect, with the start rule `start`.
    Lark(String),
}

/// Whether the reply may hold reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// It may, before the answer.
    #[default]
    Allowed,
    /// The prompt has opened the channel: the reply begins inside it.
    Open,
    /// It holds none.
    Forbidden,
}

/// Whose whitespace a grammar takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// The family's own, to the byte: what is written is forced, and nothing is spent on blanks. For decoding.
    #[default]
    Exact,
    /// Any that the family's parser reads, with the keys of a call in any order. For judging texts.
    Any,
}

/// What a reply may be.
#[derive(Debug, Clone, Default)]
pub struct GrammarRequest<'a> {
    /// The declared tools.
    pub tools: &'a [ToolSpec],
    /// Whether and which of them are called.
    pub choice: ToolChoice,
    /// How many calls there may be.
    pub calls: Calls,
    /// Whether there may be reasoning.
    pub thinking: Thinking,
    /// What the answer is, where it is text; free when none is asked for.
    pub response_format: Option<ResponseFormat>,
    /// Whose whitespace is taken.
    pub layout: Layout,
    /// The added tokens that stand in the family's markers; empty when the tokenizer is not known. Text may spell them.
    pub tokens: MarkerTokens,
}

/// The grammar of a reply, and what it does not enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyGrammar {
    /// The grammar.
    pub grammar: Grammar,
    /// Keywords of the schemas that it does not enforce: finished values are to be validated.
    pub relaxed: Vec<Relaxed>,
}
