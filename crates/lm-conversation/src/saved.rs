//! Conversations as files.

use std::path::Path;

use lm_session::{SavedCache, SavedError, SavedFile};
use lm_template::{Message, Role, ToolSpec, Value};
use serde_json::json;

/// A conversation as data: the messages of its preface and history, the declarations of its tools, and KV
/// pages on request.
///
/// Without KV pages it is independent of the model: the prompt is rendered and run again. As JSON it is an
/// object of the keys below; the first three are optional when it is read, and an array alone is read as
/// `messages`. A file with KV pages has them after the JSON and a zero byte.
///
/// | key | value |
/// |---|---|
/// | `version` | 1, with KV pages 2: [`SavedConversation::VERSION`] |
/// | `preface` | number of messages that belong to the preface; if absent, the leading system messages do |
/// | `tools` | tool declarations, as in requests of the OpenAI API |
/// | `messages` | all messages |
/// | `cache`, `checksum` | see [`SavedFile`] |
///
/// ```
/// use lm_conversation::{Message, SavedConversation};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("chat.json");
/// let saved = SavedConversation {
///     preface: vec![Message::system("Be brief.")],
///     history: vec![Message::user("Hi."), Message::assistant("Hello!")],
///     ..SavedConversation::default()
/// };
/// saved.write(&path)?;
/// assert_eq!(SavedConversation::read(&path)?, saved);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SavedConversation {
    /// Declarations of the tools.
    pub tools: Vec<ToolSpec>,
    /// Messages of the preface.
    pub preface: Vec<Message>,
    /// Messages after them.
    pub history: Vec<Message>,
    /// KV pages of the conversation's tokens, from [`Conversation::save`](crate::Conversation::save).
    pub cache: Option<SavedCache>,
}

impl SavedConversation {
    /// Latest version of files. A file without KV pages has version 1.
    pub const VERSION: u64 = 2;

    /// Converts to JSON, without KV pages.
    pub fn to_json(&self) -> Value {
        self.file(None).to_json()
    }

    fn file(&self, cache: Option<SavedCache>) -> SavedFile {
        let messages = self.preface.iter().chain(&self.history);
        let json = [
            ("version", if cache.is_some() { Self::VERSION } else { 1 }.into()),
            ("preface", self.preface.len().into()),
            ("tools", self.tools.iter().map(ToolSpec::to_json).collect()),
            ("messages", messages.map(Message::to_json).collect()),
        ];
        SavedFile::new(
            json.map(|(key, value): (&str, Value)| (key.to_owned(), value)).into_iter().collect(),
            cache,
        )
    }

    /// Reads from JSON.
    ///
    /// # Errors
    /// All of [`SavedError`] except file errors; [`SavedError::CacheLength`] for the JSON of a file with KV
    /// pages.
    pub fn from_json(json: Value) -> Result<Self, SavedError> {
        Self::from_file(SavedFile::from_json(json, Self::VERSION)?)
    }

    fn from_file(file: SavedFile) -> Result<Self, SavedError> {
        let (mut json, cache) = file.into_parts();
        if json.is_array() {
            json = json!({ "messages": json });
        }
        let invalid = |key, expected| SavedError::Invalid { key, expected };
        let preface = json.get("preface").map(|preface| {
            let len = preface.as_u64().and_then(|len| usize::try_from(len).ok());
            len.ok_or_else(|| invalid("preface", "a number of messages"))
        });
        let preface = preface.transpose()?;
        let mut messages = items(&mut json, "messages", Message::from_json)?
            .ok_or_else(|| invalid("messages", "an array"))?;
        let leading = || messages.iter().take_while(|message| message.role == Role::System).count();
        let preface = preface.unwrap_or_else(leading);
        if preface > messages.len() {
            return Err(invalid("preface", "a number of messages, at most all of them"));
        }
        let history = messages.split_off(preface);
        let tools = items(&mut json, "tools", ToolSpec::from_json)?.unwrap_or_default();
        Ok(Self { tools, preface: messages, history, cache })
    }

    /// Writes the conversation to a file, replacing it atomically: even after a crash, it is the old one or
    /// the new one.
    ///
    /// # Errors
    /// [`SavedError::Io`]; the old file is then kept.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        self.file(self.cache.clone()).write(path)
    }

    /// Writes the conversation to a new file.
    ///
    /// # Errors
    /// [`SavedError::Io`], with [`std::io::ErrorKind::AlreadyExists`] for a file that exists.
    pub fn write_new(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        self.file(self.cache.clone()).write_new(path)
    }

    /// Reads a conversation from a file.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SavedError> {
        Self::from_file(SavedFile::read(path, Self::VERSION)?)
    }

    /// Reads a conversation from a file without its KV pages, which may be damaged
    /// ([`SavedError::is_of_cache`]).
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read_without_cache(path: impl AsRef<Path>) -> Result<Self, SavedError> {
        Self::from_file(SavedFile::read_without_cache(path, Self::VERSION)?)
    }
}

/// Reads the array under `key`, if any.
fn items<T>(
    json: &mut Value,
    key: &'static str,
    read: impl Fn(Value) -> lm_template::Result<T>,
) -> Result<Option<Vec<T>>, SavedError> {
    let array = match json.get_mut(key).map(Value::take) {
        None => return Ok(None),
        Some(Value::Array(array)) => array,
        Some(_) => return Err(SavedError::Invalid { key, expected: "an array" }),
    };
    let item =
        |(index, value)| read(value).map_err(|source| SavedError::Item { key, index, source: source.into() });
    array.into_iter().enumerate().map(item).collect::<Result<_, _>>().map(Some)
}
