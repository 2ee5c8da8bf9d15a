//! Errors of processors.

use crate::schema::SchemaError;

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A message unsupported by the model, malformed output, or an impossible grammar request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message contains a part of a type the model cannot read.
    #[error("part {index} of the message is of type `{part}`, which {processor} models cannot read")]
    UnsupportedPart {
        /// Type of the part, such as `image`.
        part: String,
        /// Index of the part in the message, from 0.
        index: usize,
        /// Name of the processor.
        processor: &'static str,
    },
    /// A tool call of the model is malformed.
    #[error("malformed tool call: {reason}")]
    MalformedToolCall {
        /// The model's text, markers included.
        text: String,
        /// Description of the fault.
        reason: String,
    },
    /// A tool's parameters or a response format cannot be expressed as a grammar.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The tool that must be called is not declared.
    #[error("the tool `{name}` must be called, but is not declared")]
    UnknownTool {
        /// Name of the tool.
        name: String,
    },
    /// A call is required, but no tool is declared.
    #[error("a tool call is required, but no tool is declared")]
    NoTools,
    /// An allowed answer starts like a call, so that the two could not be distinguished.
    #[error(
        "the answer `{answer}` begins as {processor} models begin a call, with `{begins}`: calls must be forbidden or required"
    )]
    AnswerLikeCall {
        /// The answer.
        answer: String,
        /// The prefix of a call.
        begins: String,
        /// Name of the processor.
        processor: &'static str,
    },
    /// A call is required, but the family has no call syntax.
    #[error("a tool call is required, but {processor} models have no syntax for calls")]
    NoCallSyntax {
        /// Name of the processor.
        processor: &'static str,
    },
}
