//! Conversations as files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use lm_session::{SavedCache, TokenId};
use lm_template::{Message, Role, ToolSpec, Value};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Maximum bytes of the JSON in a file.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum bytes of KV pages in a file.
pub(crate) const MAX_PAGES: u64 = 4 << 30;
/// Byte between the JSON and the KV pages. It cannot be part of JSON.
const SEPARATOR: u8 = 0;

/// A conversation as data: the messages of its preface and history, the declarations of its tools, and KV pages if they were asked for.
///
/// Without KV pages it does not depend on the model: the prompt is rendered and run again. As JSON it is an object of the keys below;
/// the first three are optional when it is read, and an array alone is read as `messages`. A file with KV pages has them after the
/// JSON and a zero byte.
///
/// | key | value |
/// |---|---|
/// | `version` | 1, with KV pages 2: [`SavedConversation::VERSION`] |
/// | `preface` | number of messages that belong to the preface; if absent, the leading system messages do |
/// | `tools` | tool declarations, as in requests of the OpenAI API |
/// | `messages` | all messages |
/// | `cache` | KV pages: `fingerprint`, `adapter` (its checksum), `tokens`, and `bytes` and `sha256` of the pages ([`SavedCache`]) |
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
    /// KV pages of the conversation's tokens, from [`Conversation::save`](crate::Conversation::save).
    pub cache: Option<SavedCache>,
}

/// Options of [`Conversation::save`](crate::Conversation::save).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveOptions {
    /// Saves the KV pages as well if they take at most this many bytes, and at most 4 GiB: the next turn then prefills the new tokens
    /// only. Default `None`: no pages.
    pub cache: Option<usize>,
}

/// Outcome of [`SaveOptions::cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedTokens {
    /// The pages were not asked for.
    NotAsked,
    /// The pages of so many tokens are saved.
    Saved {
        /// Number of tokens.
        tokens: usize,
        /// Bytes of their pages.
        bytes: usize,
    },
    /// The pages exceed the limit, and are not saved.
    TooLarge {
        /// Bytes of the pages.
        bytes: usize,
    },
    /// No token is cached: nothing was sent yet, or the pool needed the pages for others.
    NothingCached,
    /// The pages are not in host memory.
    NotInHostMemory,
}

/// Description of the KV pages in a file.
struct CacheHeader {
    cache: SavedCache,
    bytes: u64,
    sha256: String,
}

/// Error of a saved conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is larger than any that is read.
    #[error("the file has more than {MAX_BYTES} bytes, or more than {MAX_PAGES} of KV pages")]
    TooLarge,
    /// The KV pages do not have the length that the file names: it was cut off, or something was appended.
    #[error("the file has {found} bytes of KV pages, expected {expected}")]
    CacheLength {
        /// Bytes that the file names.
        expected: u64,
        /// Bytes found; at most one more than expected.
        found: u64,
    },
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
    /// Latest version of files. A file without KV pages has version 1.
    pub const VERSION: u64 = 2;

    /// Converts to JSON, without KV pages.
    pub fn to_json(&self) -> Value {
        self.json_with(None)
    }

    fn json_with(&self, cache: Option<&SavedCache>) -> Value {
        let messages = self.preface.iter().chain(&self.history);
        let mut json = json!({
            "version": if cache.is_some() { Self::VERSION } else { 1 },
            "preface": self.preface.len(),
            "tools": self.tools.iter().map(ToolSpec::to_json).collect::<Vec<_>>(),
            "messages": messages.map(Message::to_json).collect::<Vec<_>>(),
        });
        if let Some(SavedCache { fingerprint, adapter, tokens, pages }) = cache {
            json["cache"] = json!({
                "fingerprint": fingerprint,
                "adapter": adapter,
                "tokens": tokens,
                "bytes": pages.len(),
                "sha256": hex(&Sha256::digest(pages)),
            });
        }
        json["checksum"] = checksum(&json).into();
        json
    }

    /// Reads from JSON.
    ///
    /// # Errors
    /// All of [`SavedError`] but those of files; [`SavedError::CacheLength`] for the JSON of a file with KV pages.
    pub fn from_json(json: Value) -> Result<Self, SavedError> {
        match Self::parse(json)? {
            (saved, None) => Ok(saved),
            (_, Some(CacheHeader { bytes, .. })) => {
                Err(SavedError::CacheLength { expected: bytes, found: 0 })
            }
        }
    }

    fn parse(mut json: Value) -> Result<(Self, Option<CacheHeader>), SavedError> {
        if json.is_array() {
            json = json!({ "messages": json });
        }
        let invalid = |key, expected| SavedError::Invalid { key, expected };
        let object = json.as_object_mut().ok_or_else(|| invalid("messages", "an array"))?;
        let version = object.get("version").map(|version| {
            version
                .as_u64()
                .filter(|&version| version > 0)
                .ok_or_else(|| invalid("version", "a number from 1 on"))
        });
        if let Some(found) = version.transpose()?.filter(|&found| found > Self::VERSION) {
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
        let header = json.get("cache").map(CacheHeader::from_json).transpose()?;
        Ok((Self { tools, preface: messages, history, cache: None }, header))
    }

    /// Writes the conversation to a file, which is replaced: at any time, also after a crash, it is the old one or the new one.
    ///
    /// # Errors
    /// [`SavedError::Io`]; the file is then the old one.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        // A link stays one: the file that it names is replaced.
        let path = path.as_ref().canonicalize().unwrap_or_else(|_| path.as_ref().to_owned());
        if path.exists() && !path.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file").into());
        }
        self.unfinished(&path)?.persist(&path).map_err(|error| error.error)?;
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
        let mut text = serde_json::to_vec_pretty(&self.json_with(self.cache.as_ref()))?;
        // What is nested too deep to be read again does not replace a file.
        serde_json::from_slice::<Value>(&text)?;
        text.push(b'\n');
        file.write_all(&text)?;
        if let Some(cache) = &self.cache {
            file.write_all(&[SEPARATOR])?;
            file.write_all(&cache.pages)?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Reads a conversation from a file.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SavedError> {
        let mut file = BufReader::new(File::open(path)?);
        let mut text = Vec::new();
        file.by_ref().take(MAX_BYTES + 1).read_until(SEPARATOR, &mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(SavedError::TooLarge);
        }
        let has_pages = text.pop_if(|last| *last == SEPARATOR).is_some();
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
        let (mut saved, header) = Self::parse(serde_json::from_slice(text).map_err(SavedError::NotJson)?)?;
        saved.cache = match header {
            Some(header) => Some(header.read_pages(file)?),
            None if has_pages => return Err(SavedError::CacheLength { expected: 0, found: 1 }),
            None => None,
        };
        Ok(saved)
    }
}

impl CacheHeader {
    fn from_json(json: &Value) -> Result<Self, SavedError> {
        let text = |key| json.get(key).and_then(Value::as_str).map(str::to_owned);
        let token = |id: &Value| id.as_u64().and_then(|id| TokenId::try_from(id).ok());
        let tokens = json.get("tokens").and_then(Value::as_array);
        let tokens = tokens.and_then(|ids| ids.iter().map(token).collect::<Option<Vec<_>>>());
        let adapter = match json.get("adapter") {
            None | Some(Value::Null) => Some(None),
            Some(adapter) => adapter.as_u64().and_then(|index| u32::try_from(index).ok()).map(Some),
        };
        let header = || {
            let cache = SavedCache {
                fingerprint: text("fingerprint")?,
                adapter: adapter?,
                tokens: tokens?,
                pages: Default::default(),
            };
            Some(Self { cache, bytes: json.get("bytes")?.as_u64()?, sha256: text("sha256")? })
        };
        let expected = "an object with `fingerprint`, `tokens`, `bytes` and `sha256`";
        let header = header().ok_or(SavedError::Invalid { key: "cache", expected })?;
        if header.bytes > MAX_PAGES { Err(SavedError::TooLarge) } else { Ok(header) }
    }

    /// Reads the pages, which are all of `file`.
    fn read_pages(self, file: impl Read) -> Result<SavedCache, SavedError> {
        let mut pages = Vec::new();
        let found = file.take(self.bytes + 1).read_to_end(&mut pages)? as u64;
        if found != self.bytes {
            return Err(SavedError::CacheLength { expected: self.bytes, found });
        }
        if hex(&Sha256::digest(&pages)) != self.sha256 {
            return Err(SavedError::Checksum);
        }
        Ok(SavedCache { pages: pages.into(), ..self.cache })
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
    hex(&Sha256::digest(json.to_string()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
