//! Errors of messages and templates.

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A message that cannot be read, or a template that cannot be read, compiled or rendered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A required key of a message, part, call or tool declaration is missing.
    #[error("{at}: missing key `{key}`")]
    MissingKey {
        /// Path of the value, such as `message.tool_calls[0]`.
        at: String,
        /// The key.
        key: &'static str,
    },
    /// A value has the wrong JSON type.
    #[error("{at}: expected {expected}, got {got}")]
    WrongType {
        /// Path of the value, such as `message.content`.
        at: String,
        /// The accepted type.
        expected: &'static str,
        /// The JSON type found.
        got: &'static str,
    },
    /// An image or audio part does not have exactly one of `path` and `blob`.
    #[error("{at}: a part of type `{part}` has exactly one of `path` and `blob`")]
    MediaSource {
        /// Path of the part, such as `message.content[1]`.
        at: String,
        /// The part's type, `image` or `audio`.
        part: &'static str,
    },
    /// A `blob` is not base64.
    #[error("{at}: the blob is not base64: {reason}")]
    Base64 {
        /// Path of the value, such as `message.content[1].blob`.
        at: String,
        /// Message of the base64 decoder.
        reason: String,
    },
    /// Arguments of a call that are a string are not the JSON text of an object.
    #[error("{at}: the text is not a JSON object: {reason}")]
    ArgumentsText {
        /// Path of the value, such as `message.tool_calls[0].function.arguments`.
        at: String,
        /// Message of the JSON parser.
        reason: String,
    },
    /// The template does not compile.
    #[error("chat template does not compile, line {line}: {message}")]
    TemplateSyntax {
        /// Line of the template, from 1; 0 if the engine gives none.
        line: usize,
        /// Message of the template engine.
        message: String,
    },
    /// The template failed during rendering.
    #[error("chat template failed, line {line}: {message}")]
    TemplateRuntime {
        /// Line of the template, from 1; 0 if the engine gives none.
        line: usize,
        /// Message of the template engine.
        message: String,
    },
    /// The template refused the conversation by calling `raise_exception`.
    #[error("chat template refused the conversation: {message}")]
    TemplateRaised {
        /// Message of the template.
        message: String,
    },
    /// Rendering exceeded a limit that protects against hostile templates.
    #[error("chat template exceeds the limit of {limit} {resource}")]
    TemplateLimit {
        /// `steps`, `bytes of text`, `bytes of values` or `nested calls`.
        resource: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A file with a chat template cannot be read.
    #[error("`{file}` cannot be read: {reason}")]
    FileUnreadable {
        /// The path.
        file: String,
        /// Message of the operating system.
        reason: String,
    },
    /// A file with a chat template exceeds the size limit.
    #[error("`{file}` has more than {limit} bytes")]
    FileTooLarge {
        /// The path.
        file: String,
        /// Maximum number of bytes.
        limit: u64,
    },
    /// A file with a chat template has invalid contents.
    #[error("`{file}`: {reason}")]
    FileInvalid {
        /// The file's name.
        file: String,
        /// Description of the problem.
        reason: String,
    },
    /// A model has no chat template of this name.
    #[error("the model has no chat template{}", other_templates(name, known))]
    UnknownTemplate {
        /// The requested name.
        name: String,
        /// Names of the model's templates.
        known: Vec<String>,
    },
    /// The conversation has no message.
    #[error("a conversation to render has at least one message")]
    EmptyConversation,
    /// The last message cannot be continued.
    #[error("cannot continue field `{field}` of the last message: {reason}")]
    ContinueFinalMessage {
        /// The field to continue.
        field: String,
        /// Reason.
        reason: &'static str,
    },
}

impl From<lm_jinja::Error> for Error {
    fn from(error: lm_jinja::Error) -> Self {
        match error {
            lm_jinja::Error::Syntax { line, message } => Self::TemplateSyntax { line, message },
            lm_jinja::Error::Raised { message } => Self::TemplateRaised { message },
            lm_jinja::Error::Runtime { line, message } => Self::TemplateRuntime { line, message },
            lm_jinja::Error::Limit { resource, limit } => Self::TemplateLimit { resource, limit },
            error => Self::TemplateRuntime { line: 0, message: error.to_string() },
        }
    }
}

/// Name of a value's JSON type, for [`Error::WrongType`].
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

/// Name of a missing template, and those that the model has.
fn other_templates(name: &str, known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" `{name}`; it has {}", known.join(", ")) }
}
