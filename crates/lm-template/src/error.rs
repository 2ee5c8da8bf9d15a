//! What can go wrong with messages and templates.

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A message that cannot be read, or a template that cannot be read, compiled or rendered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A required key of a message, part, call or tool declaration is missing.
    #[error("{at}: missing key `{key}`")]
    MissingKey {
        /// Where, as a path such as `message.tool_calls[0]`.
        at: String,
        /// The key.
        key: &'static str,
    },
    /// A value has the wrong JSON type.
    #[error("{at}: expected {expected}, got {got}")]
    WrongType {
        /// Where, as a path such as `message.content`.
        at: String,
        /// What is accepted there.
        expected: &'static str,
        /// The JSON type that came.
        got: &'static str,
    },
    /// An image or audio part does not have exactly one of `path` and `blob`.
    #[error("{at}: a part of type `{part}` has exactly one of `path` and `blob`")]
    MediaSource {
        /// Where, as a path such as `message.content[1]`.
        at: String,
        /// The part's type, `image` or `audio`.
        part: &'static str,
    },
    /// A `blob` is not base64.
    #[error("{at}: the blob is not base64: {reason}")]
    Base64 {
        /// Where, as a path such as `message.content[1].blob`.
        at: String,
        /// What the decoder says.
        reason: String,
    },
    /// Arguments of a call that came as text are not the JSON text of an object.
    #[error("{at}: the text is not a JSON object: {reason}")]
    ArgumentsText {
        /// Where, as a path such as `message.tool_calls[0].function.arguments`.
        at: String,
        /// What the JSON parser says.
        reason: String,
    },
    /// The template does not compile.
    #[error("chat template does not compile, line {line}: {message}")]
    TemplateSyntax {
        /// Line of the template, from 1; 0 when the engine gives none.
        line: usize,
        /// What the template engine says.
        message: String,
    },
    /// The template failed while it rendered.
    #[error("chat template failed, line {line}: {message}")]
    TemplateRuntime {
        /// Line of the template, from 1; 0 when the engine gives none.
        line: usize,
        /// What the template engine says.
        message: String,
    },
    /// The template refused the conversation by calling `raise_exception`.
    #[error("chat template refused the conversation: {message}")]
    TemplateRaised {
        /// The template's own text.
        message: String,
    },
    /// Rendering went past a limit that protects against hostile templates.
    #[error("chat template exceeds the limit of {limit} {what}")]
    TemplateLimit {
        /// What ran out: `steps`, `bytes of text`, `bytes of values` or `nested calls`.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A file with a chat template cannot be read.
    #[error("`{file}` cannot be read: {reason}")]
    FileUnreadable {
        /// The path.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// A file with a chat template is larger than any real one.
    #[error("`{file}` has more than {limit} bytes")]
    FileTooLarge {
        /// The path.
        file: String,
        /// The most bytes that are read.
        limit: u64,
    },
    /// A file with a chat template does not hold what it should.
    #[error("`{file}`: {reason}")]
    FileInvalid {
        /// The file's name.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A model has no chat template of this name.
    #[error("the model has no chat template `{name}`; it has {known:?}")]
    UnknownTemplate {
        /// The name that was asked for.
        name: String,
        /// The names that the model's templates have.
        known: Vec<String>,
    },
    /// There is no message to render.
    #[error("a conversation to render has at least one message")]
    EmptyConversation,
    /// The last message cannot be continued.
    #[error("cannot continue field `{field}` of the last message: {reason}")]
    ContinueFinalMessage {
        /// The field that was to be continued.
        field: String,
        /// Why not.
        reason: &'static str,
    },
}

/// The name of a value's JSON type, for [`Error::WrongType`].
pub(crate) fn json_type(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Array(_) => "an array",
        serde_json::Value::Object(_) => "an object",
    }
}
