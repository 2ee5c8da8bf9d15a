//! What a processor refuses.

use crate::grammar::SchemaError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A message the model cannot be given, or output that is not what it claims to be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message carries a part of a kind the model cannot read.
    #[error("part {index} of the message is of type `{part}`, which {processor} models cannot read")]
    UnsupportedPart {
        /// The part's type, such as `image`.
        part: String,
        /// Its place in the message, from 0.
        index: usize,
        /// The processor's name.
        processor: &'static str,
    },
    /// The model began a tool call that is not one.
    #[error("malformed tool call: {reason}")]
    MalformedToolCall {
        /// The model's text, markers included.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A tool's parameters or a response format give no grammar.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The tool that must be called is not among the declared ones.
    #[error("the tool `{name}` must be called, but is not declared")]
    UnknownTool {
        /// Its name.
        name: String,
    },
    /// A call is required, but no tool is declared.
    #[error("a tool call is required, but no tool is declared")]
    NoTools,
    /// An answer that the request allows begins as a call does, so that a reply could not be told to be one or the other.
    #[error(
        "the answer `{answer}` begins as {processor} models begin a call, with `{begins}`: calls must be forbidden or required"
    )]
    AnswerLikeCall {
        /// The answer.
        answer: String,
        /// The beginning of a call.
        begins: String,
        /// The processor's name.
        processor: &'static str,
    },
    /// A call is required of a family that has no syntax for calls.
    #[error("a tool call is required, but {processor} models have no syntax for calls")]
    NoCallSyntax {
        /// The processor's name.
        processor: &'static str,
    },
}
