//! Error types of this crate.

use crate::context::StateType;
use crate::steps::{AgentStep, StopReason, names};
use lm_template::ToolCall;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a toolset, of a bound model or of an agent. Failures inside a tool are not such errors: they
/// become tool messages that the model can read (see [`Toolset::call`](crate::Toolset::call)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two tools have the same name.
    #[error(
        "there are two tools named `{name}`: rename one, or give a toolset a prefix with `Toolset::with_prefix`"
    )]
    DuplicateTool {
        /// The common name.
        name: String,
    },
    /// An invalid tool name.
    #[error("a tool cannot be named `{name}`: a name is 1 to 64 ASCII letters, digits, `_` or `-`")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// A selection names a tool that is missing from the toolset.
    #[error("there is no tool named `{name}`, the tools are: {}", known.join(", "))]
    UnknownTool {
        /// The name.
        name: String,
        /// Names of the tools.
        known: Vec<String>,
    },
    /// A tool needs a state that is missing from the toolset.
    #[error("tool `{tool}` needs a state of the type `{}`: add it first, with `Toolset::with_state`", state.name())]
    MissingState {
        /// The tool's name.
        tool: String,
        /// Type of the state.
        state: StateType,
    },
    /// The `parameters` of a declaration are not a valid JSON schema.
    #[error("the parameters of tool `{tool}` are not a valid JSON schema: at `{path}`, {message}")]
    InvalidSchema {
        /// The tool's name.
        tool: String,
        /// JSON pointer into the parameters; empty for their root.
        path: String,
        /// Description of the problem.
        message: String,
    },
    /// A text of a prompt is not in the format of [`ChatPrompt::message`](crate::ChatPrompt::message).
    #[error("the prompt text `{text}` {reason}")]
    InvalidPrompt {
        /// The text.
        text: String,
        /// Description of the defect.
        reason: &'static str,
    },
    /// A placeholder of a prompt has no value.
    #[error("the prompt's placeholder `{name}` has no value")]
    MissingPromptValue {
        /// Name of the placeholder.
        name: String,
    },
    /// A prompt that an agent cannot follow.
    #[error("an agent cannot use this prompt: {reason}")]
    AgentPrompt {
        /// Description of the defect.
        reason: &'static str,
    },
    /// A limit or a hook ended the turn before the model answered
    /// ([`AgentReply::answered`](crate::AgentReply::answered)). The calls and their results stay in the
    /// conversation.
    #[error("{reason}")]
    Stopped {
        /// Reason for the end.
        reason: StopReason,
        /// The calls, with their results.
        steps: Vec<AgentStep>,
    },
    /// Calls wait for the caller's results ([`StopReason::ExternalCalls`]), and the input of a turn does not
    /// begin with a tool message for each. The conversation is unchanged.
    #[error("the input has to begin with the results of these calls: {}", names(calls))]
    MissingResults {
        /// The calls without a result.
        calls: Vec<ToolCall>,
    },
    /// The input of a turn begins with the result of a call that does not wait for one, or with a second
    /// result of the same call. The conversation is unchanged.
    #[error(
        "expected the result of a call that waits for one, got one {}; such calls: {}",
        id.as_ref().map_or("without an id".to_owned(), |id| format!("of `{id}`")),
        if waiting.is_empty() { "none".to_owned() } else { names(waiting) }
    )]
    UnknownResult {
        /// Id of the call that the message names.
        id: Option<String>,
        /// The calls that wait for results.
        waiting: Vec<ToolCall>,
    },
    /// The turn was cancelled. The calls that ran stay in the conversation.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The conversation, or a layer below it, failed. The calls that ran stay in the conversation.
    #[error(transparent)]
    Conversation(lm_conversation::Error),
}

impl From<lm_conversation::Error> for Error {
    fn from(error: lm_conversation::Error) -> Self {
        match error {
            lm_conversation::Error::Cancelled => Self::Cancelled,
            other => Self::Conversation(other),
        }
    }
}
