//! What can go wrong: in putting tools together, in a turn, and in a tool.

use crate::agent::AgentStep;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of a toolset, of a bound model or of an agent. What goes wrong inside a tool is no such error: it is a
/// tool message that the model can read (see [`Toolset::call`](crate::Toolset::call)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two tools of one name.
    #[error("there are two tools named `{name}`")]
    DuplicateTool {
        /// The name they share.
        name: String,
    },
    /// A declaration whose `parameters` are no JSON schema.
    #[error("the parameters of tool `{tool}` are no valid JSON schema: at `{path}`, {message}")]
    InvalidSchema {
        /// The tool's name.
        tool: String,
        /// JSON pointer into the parameters; empty for their root.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// The model still asked for tools when the rounds were used up. The conversation is as before the turn.
    #[error("no answer after {max_rounds} rounds of tool calls")]
    RoundLimit {
        /// The rounds that were run.
        max_rounds: usize,
        /// The calls that were run, with their results.
        steps: Vec<AgentStep>,
    },
    /// The turn was cancelled. The conversation is as before the turn.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The conversation, or a layer below it, failed. The conversation is as before the turn.
    #[error(transparent)]
    Conversation(lm_conversation::Error),
}

/// Why a tool gives no result; the model reads the text of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The call has an argument that the tool does not take.
    #[error("there is no argument `{argument}`, the arguments are: {}", known.join(", "))]
    UnknownArgument {
        /// Its name.
        argument: String,
        /// The names of the arguments that there are.
        known: Vec<String>,
    },
    /// A required argument is missing, or an argument has a value that its type does not take.
    #[error("argument `{argument}`: {message}")]
    InvalidArgument {
        /// Its name; for a part of it the path to that part, `point.x`.
        argument: String,
        /// What was expected, and what came.
        message: String,
    },
    /// The tool ran and failed.
    #[error("{message}")]
    Failed {
        /// What the tool says about it.
        message: String,
    },
}

impl ToolError {
    /// A failure of the tool itself. The alternate form (`{:#}`) is taken, which for `anyhow` holds the causes.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed { message: format!("{error:#}") }
    }

    pub(crate) fn invalid(argument: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self::InvalidArgument { argument: argument.into(), message: message.to_string() }
    }

    pub(crate) fn missing(argument: &str) -> Self {
        Self::invalid(argument, "missing")
    }
}

impl From<lm_conversation::Error> for Error {
    fn from(error: lm_conversation::Error) -> Self {
        match error {
            lm_conversation::Error::Cancelled => Self::Cancelled,
            other => Self::Conversation(other),
        }
    }
}
