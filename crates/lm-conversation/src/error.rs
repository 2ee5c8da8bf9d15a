//! Errors of conversations and turns.

use lm_session::{FinishReason, MediaKind};
use lm_template::ToolCall;

use crate::media_part::part_type;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a conversation's start or of a turn. The conversation is then as before the turn, except after
/// [`Error::InvalidAnswer`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message cannot be converted, or the chat template does not compile or rejects the conversation.
    #[error(transparent)]
    Template(#[from] lm_template::Error),
    /// A message has a part that the model cannot read, or the model wrote a malformed tool call.
    #[error(transparent)]
    Processor(#[from] lm_processors::Error),
    /// The engine rejected the request or failed: for example a prompt too long, a sampler out of range.
    #[error(transparent)]
    Session(#[from] lm_session::Error),
    /// The tokenizer failed.
    #[error(transparent)]
    Tokenizer(#[from] lm_tokenizer::Error),
    /// An image or an audio clip cannot be decoded or passed to the model.
    #[error("the {kind}, part {part} of message {message}, cannot be given to the model")]
    Medium {
        /// Kind of the part.
        kind: MediaKind,
        /// Index of the message, from 0, in the preface, the history and the turn together.
        message: usize,
        /// Index of the part in the message, from 0.
        part: usize,
        /// The reason.
        source: Box<lm_session::Error>,
    },
    /// Images and audio take more tokens than the context holds, without the text. Further ones were not
    /// decoded.
    #[error("{} {rows} tokens, the context holds {context_tokens}", first_media(*media))]
    TooManyMediaRows {
        /// Number of media that were decoded.
        media: usize,
        /// Their rows, one token each.
        rows: usize,
        /// Maximum number of tokens of a session.
        context_tokens: usize,
    },
    /// A part is an image or an audio clip that the model cannot read.
    #[error("part {part} of message {message} is of type `{}`, and the model reads no {}", part_type(*kind), kind.plural())]
    UnreadMedium {
        /// Kind of the part.
        kind: MediaKind,
        /// Index of the message, from 0, in the preface, the history and the turn together.
        message: usize,
        /// Index of the part in the message, from 0.
        part: usize,
    },
    /// The file of an image or an audio clip cannot be opened, or [`MediaFiles`](crate::MediaFiles) forbids
    /// it.
    #[error("the {kind} `{}`, part {part} of message {message}, cannot be read", path.display())]
    MediaFile {
        /// Kind of the part.
        kind: MediaKind,
        /// Index of the message, from 0, in the preface, the history and the turn together.
        message: usize,
        /// Index of the part in the message, from 0.
        part: usize,
        /// Path of the part.
        path: std::path::PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The chat template does not write one placeholder for each image or audio.
    #[error("the chat template wrote `{placeholder}` {found} times for {expected} {kind} parts")]
    Placeholders {
        /// Kind of the media.
        kind: MediaKind,
        /// Text of a placeholder.
        placeholder: String,
        /// Number of its occurrences in the rendered template.
        found: usize,
        /// Number of media of this kind in the messages.
        expected: usize,
    },
    /// The prompt has placeholder tokens without an image or audio clip.
    #[error("the prompt has `{token}` {found} times, its {kind} parts have {expected} rows")]
    MediaRows {
        /// Kind of the media.
        kind: MediaKind,
        /// Token of their rows.
        token: String,
        /// Number of its occurrences in the prompt.
        found: usize,
        /// Rows of all media of this kind.
        expected: usize,
    },
    /// Neither the model nor the config has a chat template.
    #[error("model `{model}` has no chat template")]
    NoChatTemplate {
        /// The model's name.
        model: String,
    },
    /// The answer violates the schema of the response format, in a keyword that the grammar does not enforce,
    /// in every attempt of rejection sampling.
    #[error("the answer does not fit the response format at `#{path}`: {message}")]
    InvalidAnswer {
        /// The answer.
        text: String,
        /// JSON pointer to the defect in it.
        path: String,
        /// Description of the defect.
        message: String,
    },
    /// A call violates the parameters of its tool, in a keyword that the grammar does not enforce, in every
    /// attempt of rejection sampling.
    #[error("a call of `{}` does not fit its parameters at `#{path}`, keyword `{keyword}`: {message}", call.name)]
    InvalidCall {
        /// The call of the last attempt.
        call: Box<ToolCall>,
        /// JSON pointer to the defect in them.
        path: String,
        /// Violated keyword of the schema.
        keyword: String,
        /// Description of the defect.
        message: String,
    },
    /// A schema cannot be compiled to a validator of the keywords that its grammar does not enforce.
    #[error("{} is no schema: {message}", tool.as_ref().map_or("the response format".to_owned(), |tool| format!("`parameters` of tool `{tool}`")))]
    UnusableSchema {
        /// The tool whose parameters it is; `None` for the response format.
        tool: Option<String>,
        /// Description of the defect.
        message: String,
    },
    /// Reasoning was requested or limited, but the model's dialect has no channel for it.
    #[error("thinking was asked for, but `{model}` has no reasoning channel")]
    NoThinking {
        /// The model's name.
        model: String,
    },
    /// A turn was started without a message.
    #[error("a turn needs at least one message")]
    NoMessage,
    /// A required call is missing: the reply ended before it, for example with a stop string.
    #[error("the reply ended without the required tool call ({reason:?})")]
    NoCall {
        /// End of the reply.
        reason: FinishReason,
        /// Text of the reply.
        text: String,
    },
    /// The reply reached a token limit, and [`OnTokenLimit::Error`](crate::OnTokenLimit::Error) is set.
    #[error("the reply reached {}", if matches!(reason, FinishReason::ContextFull) { "the end of the context" } else { "its token limit" })]
    TokenLimit {
        /// The limit.
        reason: FinishReason,
        /// Text of the reply.
        text: String,
    },
    /// No reply to continue: the last message is not the assistant's, has no text, or has tool calls.
    #[error("the last message is no reply that can be continued: {reason}")]
    NoReply {
        /// Description of the last message.
        reason: &'static str,
    },
    /// A channel of the configuration has an empty name or marker.
    #[error("channel {index} has no {field}")]
    InvalidChannel {
        /// Index of the channel.
        index: usize,
        /// The empty field.
        field: &'static str,
    },
    /// The thread of a [detached](crate::Turn::detach) turn cannot be started. The turn was cancelled.
    #[error("the thread of a detached turn cannot start")]
    TurnThread(#[source] std::io::Error),
    /// A [detached](crate::Turn::detach) turn failed, and its callback has the error.
    #[error("the detached turn failed: {message}")]
    DetachedTurn {
        /// Text of the error.
        message: String,
    },
    /// The turn was cancelled.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The turn did not end before its deadline.
    #[error("the turn's deadline has passed")]
    DeadlineExceeded,
}

/// Subject and verb of [`Error::TooManyMediaRows`].
fn first_media(count: usize) -> String {
    match count {
        1 => "the first image or audio clip takes".to_owned(),
        _ => format!("the first {count} images and audio clips take"),
    }
}
