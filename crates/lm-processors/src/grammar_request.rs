//! Constraints of a reply.

use crate::layout::Layout;
use lm_template::{ToolSpec, Value};

use crate::tokens::MarkerTokens;

/// Tools that a reply must or may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model writes text, or text and then calls.
    #[default]
    Auto,
    /// The model calls at least one tool.
    Required,
    /// The model calls this tool.
    Named(String),
    /// The model writes text, in which no call can occur.
    None,
}

/// Number of calls that a reply may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calls {
    /// Any number.
    #[default]
    Several,
    /// One.
    One,
}

/// Form of the answer, if it is text.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat {
    /// A JSON object.
    JsonObject,
    /// JSON that matches this schema.
    JsonSchema(Value),
    /// A text whose whole matches this regular expression (syntax of the crate `regex`, without look-around).
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// A text of this grammar: llguidance's Lark dialect, with the start rule `start`.
    Lark(String),
}

/// Reasoning in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// Allowed, before the answer.
    #[default]
    Allowed,
    /// The prompt has opened the channel: the reply starts inside it.
    Open,
    /// Forbidden.
    Forbidden,
}

/// Constraints of a reply.
#[derive(Debug, Clone, Default)]
pub struct GrammarRequest<'a> {
    /// The declared tools.
    pub tools: &'a [ToolSpec],
    /// Tool calls that the reply must or may contain.
    pub choice: ToolChoice,
    /// Number of calls allowed.
    pub calls: Calls,
    /// Reasoning in the reply.
    pub thinking: Thinking,
    /// Form of the answer, if it is text; `None` for free text.
    pub response_format: Option<ResponseFormat>,
    /// Whitespace that the grammar accepts.
    pub layout: Layout,
    /// Added tokens in the family's markers; empty if the tokenizer is unknown. Text may spell them.
    pub tokens: MarkerTokens,
}
