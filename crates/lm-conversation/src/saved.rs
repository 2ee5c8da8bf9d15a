//! Conversations as files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use lm_template::{Message, Role, ToolSpec, Value};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Maximum bytes of a file.
const MAX_BYTES: u64 = 256 << 20;

/// A conversation as data: the messages of its preface and history, and the declarations of its tools.
///
/// It does not depend on the model: the prompt is rendered and run again. As JSON it is an object of the keys below; the first three
/// are optional when it is read, and an array alone is read as `messages`.
///
/// | key | value |
/// |---|---|
/// | `version` | [`SavedConversation::VERSION`] |
/// | `preface` | number of messages that belong to the preface; if absent, the leading system messages do |
/// | `tools` | tool declarations, as in requests of the OpenAI API |
/// | `messages` | all messages |
/// | `checksum` | SHA-256 of the compact JSON without this key, in hexadecimal; if absent, nothing is checked |
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
}

/// Error of a saved conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is larger than any that is read.
    #[error("the file has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// The file is not JSON: it may be another file, or a part of one.
    #[error("the file is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// A key is missing or has the wrong type.
    #[error("`{key}` is missing or not {expected}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// Its expected value.
        expected: &'static str,
    },
    /// The file was written by a later version.
    #[error("the file has version {found}, this program reads up to {}", SavedConversation::VERSION)]
    Version {
        /// Version of the file.
        found: u64,
    },
    /// The contents were changed after they were written.
    #[error(
        "the checksum does not fit the contents: the file is damaged, or was edited without removing `checksum`"
    )]
    Checksum,
    /// A message or a tool declaration is invalid.
    #[error("`{key}` {index} (from 0): {source}")]
    Item {
        /// `messages` or `tools`.
        key: &'static str,
        /// Index in it.
        index: usize,
        /// The defect.
        source: lm_template::Error,
    },
}

impl SavedConversation {
    /// Version of the files that are written.
    pub const VERSION: u64 = 1;

    /// Converts to JSON.
    pub fn to_json(&self) -> Value {
        let messages = self.preface.iter().chain(&self.history);
        let mut json = json!({
            "version": Self::VERSION,
            "preface": self.preface.len(),
            "tools": self.tools.iter().map(ToolSpec::to_json).collect::<Vec<_>>(),
            "messages": messages.map(Message::to_json).collect::<Vec<_>>(),
        });
        json["checksum"] = checksum(&json).into();
        json
    }

    /// Reads from JSON.
    ///
    /// # Errors
    /// All of [`SavedError`] but those of files.
    pub fn from_json(mut json: Value) -> Result<Self, SavedError> {
        if json.is_array() {
            json = json!({ "messages": json });
        }
        let invalid = |key, expected| SavedError::Invalid { key, expected };
        let object = json.as_object_mut().ok_or_else(|| invalid("messages", "an array"))?;
        if let Some(found) =
            object.get("version").and_then(Value::as_u64).filter(|&found| found > Self::VERSION)
        {
            return Err(SavedError::Version { found });
        }
        let written = object.shift_remove("checksum");
        let preface = object.get("preface").map(|preface| {
            let len = preface.as_u64().and_then(|len| usize::try_from(len).ok());
            len.ok_or_else(|| invalid("preface", "a number of messages"))
        });
        let preface = preface.transpose()?;
        if written.is_some_and(|written| written != checksum(&json)) {
            return Err(SavedError::Checksum);
        }
        let mut messages = items(&mut json, "messages", Message::from_json)?
            .ok_or_else(|| invalid("messages", "an array"))?;
        let leading = || messages.iter().take_while(|message| message.role == Role::System).count();
        let preface = preface.unwrap_or_else(leading);
        if preface > messages.len() {
            return Err(invalid("preface", "a number of messages, at most all of them"));
        }
        let history = messages.split_off(preface);
        let tools = items(&mut json, "tools", ToolSpec::from_json)?.unwrap_or_default();
        Ok(Self { tools, preface: messages, history })
    }

    /// Writes the conversation to a file, which is replaced: at any time, also after a crash, it is the old one or the new one.
    ///
    /// # Errors
    /// [`SavedError::Io`]; the file is then the old one.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        let path = path.as_ref();
        self.unfinished(path)?.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Writes the conversation to a new file.
    ///
    /// # Errors
    /// [`SavedError::Io`], with [`io::ErrorKind::AlreadyExists`] for a file that exists.
    pub fn write_new(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        let path = path.as_ref();
        self.unfinished(path)?.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Writes to a temporary file beside `path`.
    fn unfinished(&self, path: &Path) -> io::Result<tempfile::NamedTempFile> {
        let name =
            path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.unfinished-", name.to_string_lossy());
        let mut file = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder)?;
        let mut text = serde_json::to_vec_pretty(&self.to_json())?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Reads a conversation from a file.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SavedError> {
        let mut text = Vec::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(SavedError::TooLarge);
        }
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
        Self::from_json(serde_json::from_slice(text).map_err(SavedError::NotJson)?)
    }
}

/// Reads the array under `key`, if there is one.
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
    let item = |(index, value)| read(value).map_err(|source| SavedError::Item { key, index, source });
    array.into_iter().enumerate().map(item).collect::<Result<_, _>>().map(Some)
}

/// SHA-256 of the compact JSON, in hexadecimal.
fn checksum(json: &Value) -> String {
    Sha256::digest(json.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}
