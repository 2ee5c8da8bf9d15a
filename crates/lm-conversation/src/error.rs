//! Why a conversation cannot begin or a turn cannot be had.

use lm_template::{Map, Value};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a conversation cannot begin or a turn cannot be had. After each of them the conversation is as before the turn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message cannot be read, or the chat template does not compile or refuses the conversation.
    #[error(transparent)]
    Template(#[from] lm_template::Error),
    /// A message has a part the model cannot read, or the model wrote a malformed tool call.
    #[error(transparent)]
    Processor(#[from] lm_processors::Error),
    /// The engine refused or failed: a prompt too long, a sampler out of range.
    #[error(transparent)]
    Session(#[from] lm_session::Error),
    /// The tokenizer failed.
    #[error(transparent)]
    Model(#[from] lm_model::Error),
    /// Neither the model nor the config has a chat template.
    #[error("model `{model}` has no chat template, and the config gives none")]
    NoChatTemplate {
        /// The model's name.
        model: String,
    },
    /// The answer is not what the schema of the response format says, in a keyword that the grammar does not enforce,
    /// however often it was sampled.
    #[error("the answer does not fit the response format at `{path}`: {message}")]
    UnfitAnswer {
        /// The answer.
        text: String,
        /// Where in it, as a JSON pointer.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// A call does not fit the parameters of its tool, in a keyword that the grammar does not enforce, however often it was
    /// sampled.
    #[error("a call of `{tool}` does not fit its parameters at `{path}`, keyword `{keyword}`: {message}")]
    UnfitCall {
        /// The tool.
        tool: String,
        /// The arguments of the last attempt.
        arguments: Map<String, Value>,
        /// Where in them, as a JSON pointer.
        path: String,
        /// The keyword of the schema.
        keyword: String,
        /// What is wrong there.
        message: String,
    },
    /// A schema cannot be used to check what its grammar does not enforce.
    #[error("{} is no schema: {message}", tool.as_ref().map_or("the response format".to_owned(), |tool| format!("`parameters` of tool `{tool}`")))]
    UnusableSchema {
        /// The tool whose parameters it is; none for the response format.
        tool: Option<String>,
        /// What is wrong with it.
        message: String,
    },
    /// Reasoning was asked for, or limited, of a model whose dialect has no channel for it.
    #[error("thinking was asked for, but `{model}` has no reasoning channel")]
    NoThinking {
        /// The model's name.
        model: String,
    },
    /// A turn was asked for without a message.
    #[error("a turn needs at least one message")]
    NoMessage,
    /// The turn was cancelled.
    #[error("the turn was cancelled")]
    Cancelled,
}
