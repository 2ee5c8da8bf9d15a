//! Files of JSON and KV pages.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use lm_tokenizer::TokenId;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{SavedCache, SavedError};
use crate::fingerprint::hex;

/// Maximum bytes of the JSON in a file.
pub(super) const MAX_JSON_BYTES: u64 = 64 << 20;
/// Maximum bytes of the file's name in the name of its temporary file.
const MAX_NAME_BYTES: usize = 100;
/// Byte between the JSON and the KV pages. It cannot be part of JSON.
const SEPARATOR: u8 = 0;

/// A JSON object and KV pages in one file: the format of [`SavedSession`](crate::SavedSession) and of saved
/// conversations.
///
/// The file has the JSON, followed, for a session with KV pages, by a zero byte and the pages. Two keys are
/// added to the object:
///
/// | key | value |
/// |---|---|
/// | `cache` | description of the pages, if there are any: `fingerprint`, `adapter` (its checksum), `tokens`, and `bytes` and `sha256` of the pages ([`SavedCache`]) |
/// | `checksum` | SHA-256 of the compact JSON without this key, in hexadecimal; if absent, nothing is checked |
///
/// A file is written beside the replaced one, and renamed: after a crash either the old or the new file
/// exists.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedFile {
    json: Value,
    cache: Option<SavedCache>,
}

/// Description of the KV pages in a file.
struct CacheHeader {
    cache: SavedCache,
    bytes: u64,
    sha256: String,
}

impl SavedFile {
    /// Maximum bytes of KV pages in a file: 4 GiB.
    pub const MAX_CACHE_BYTES: u64 = 4 << 30;

    /// Creates the contents of a new file: an object, whose key `version` is a number from 1 on, and KV
    /// pages.
    pub fn new(json: Map<String, Value>, cache: Option<SavedCache>) -> Self {
        Self { json: json.into(), cache }
    }

    /// Splits into the JSON, without the added keys, and the KV pages. The JSON of a read file may be any
    /// value.
    pub fn into_parts(self) -> (Value, Option<SavedCache>) {
        (self.json, self.cache)
    }

    /// The JSON of the file, with the added keys.
    pub fn to_json(&self) -> Value {
        let mut json = self.json.clone();
        if !json.is_object() {
            return json;
        }
        if let Some(SavedCache { fingerprint, adapter, tokens, pages }) = &self.cache {
            json["cache"] = json!({
                "fingerprint": fingerprint,
                "adapter": adapter,
                "tokens": tokens,
                "bytes": pages.len(),
                "sha256": sha256(pages),
            });
        }
        json["checksum"] = checksum(&json).into();
        json
    }

    /// Reads the JSON of a file without KV pages, up to version `supported`. JSON that is not an object is
    /// not checked.
    ///
    /// # Errors
    /// All of [`SavedError`] except file errors; [`SavedError::CacheLength`] for the JSON of a file with KV
    /// pages.
    pub fn from_json(json: Value, supported: u64) -> Result<Self, SavedError> {
        match checked(json, supported)? {
            (json, None) => Ok(Self { json, cache: None }),
            (_, Some(cache)) => {
                let CacheHeader { bytes, .. } = CacheHeader::from_json(&cache)?;
                Err(SavedError::CacheLength { expected: bytes, found: 0 })
            }
        }
    }

    /// Writes the file, replacing an existing one.
    ///
    /// # Errors
    /// [`SavedError::Io`], and [`SavedError::TooLarge`] for unreadably large contents; the old file is then
    /// kept.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        // A link is kept: its target is replaced.
        let path = path.as_ref();
        let target = path.canonicalize().unwrap_or_else(|_| linked(path));
        let old = match regular(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            old => Some(old?),
        };
        let file = self.unfinished(&target)?;
        if let Some(old) = old {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    }

    /// Writes the file, which must be new.
    ///
    /// # Errors
    /// [`SavedError::Io`], with [`io::ErrorKind::AlreadyExists`] for an existing file.
    pub fn write_new(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        let path = path.as_ref();
        self.unfinished(path)?.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Writes to a temporary file beside `path`.
    fn unfinished(&self, path: &Path) -> Result<NamedTempFile, SavedError> {
        let name =
            path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = name.to_string_lossy();
        let prefix = format!(".{}.unfinished-", &name[..name.floor_char_boundary(MAX_NAME_BYTES)]);
        let mut file = tempfile::Builder::new().prefix(&prefix).make_in(folder, create_private)?;
        let mut text = serde_json::to_vec_pretty(&self.to_json()).map_err(SavedError::NotJson)?;
        text.push(b'\n');
        // Contents that are nested too deep or too large to be read again do not replace a file.
        serde_json::from_slice::<Value>(&text).map_err(io::Error::from)?;
        let pages = self.cache.as_ref().map_or(0, |cache| cache.pages.len() as u64);
        if text.len() as u64 >= MAX_JSON_BYTES || pages > Self::MAX_CACHE_BYTES {
            return Err(SavedError::TooLarge);
        }
        // Errors of `NamedTempFile` name the temporary file, those of the file in it do not.
        let out = file.as_file_mut();
        out.write_all(&text)?;
        if let Some(cache) = &self.cache {
            out.write_all(&[SEPARATOR])?;
            out.write_all(&cache.pages)?;
        }
        out.sync_all()?;
        Ok(file)
    }

    /// Reads a file up to version `supported`.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read(path: impl AsRef<Path>, supported: u64) -> Result<Self, SavedError> {
        let mut file = open(path.as_ref())?;
        let ((json, cache), has_pages) = read_json(&mut file, supported)?;
        let cache = match cache {
            Some(cache) => Some(CacheHeader::from_json(&cache)?.read_pages(file)?),
            None if has_pages => return Err(SavedError::CacheLength { expected: 0, found: 1 }),
            None => None,
        };
        Ok(Self { json, cache })
    }

    /// Reads a file up to version `supported` without its KV pages, which may be damaged.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read_without_cache(path: impl AsRef<Path>, supported: u64) -> Result<Self, SavedError> {
        let ((json, _), _) = read_json(&mut open(path.as_ref())?, supported)?;
        Ok(Self { json, cache: None })
    }
}

/// Returns the target of a link to a missing file; other paths unchanged.
fn linked(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    path.read_link().map_or_else(|_| path.to_owned(), |target| folder.join(target))
}

/// Metadata of a path, which must be a regular file: opening a pipe or a device would block.
fn regular(path: &Path) -> io::Result<Metadata> {
    let metadata = path.metadata()?;
    match metadata.is_file() {
        true => Ok(metadata),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file")),
    }
}

fn open(path: &Path) -> io::Result<BufReader<File>> {
    regular(path)?;
    File::open(path).map(BufReader::new)
}

/// Creates a file that only its owner can read.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Reads the JSON of a file up to the KV pages. Returns true as well if the separator follows.
fn read_json(file: &mut impl BufRead, supported: u64) -> Result<((Value, Option<Value>), bool), SavedError> {
    let mut text = Vec::new();
    file.take(MAX_JSON_BYTES + 1).read_until(SEPARATOR, &mut text)?;
    if text.len() as u64 > MAX_JSON_BYTES {
        return Err(SavedError::TooLarge);
    }
    let has_pages = text.pop_if(|last| *last == SEPARATOR).is_some();
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let json = Value::deserialize(&mut reader).map_err(SavedError::NotJson)?;
    let end = reader.end().map_err(SavedError::NotJson);
    let (json, cache) = checked(json, supported)?;
    // With pages, a damaged separator is left to their length, which is then another.
    if cache.is_none() {
        end?;
    }
    Ok(((json, cache), has_pages))
}

/// Checks version and checksum, and takes the added keys out of the object. Returns the description of KV
/// pages as well.
fn checked(mut json: Value, supported: u64) -> Result<(Value, Option<Value>), SavedError> {
    let Some(object) = json.as_object_mut() else { return Ok((json, None)) };
    if let Some(version) = object.get("version") {
        let number = version.as_u64().filter(|&version| version > 0);
        let found = number.ok_or(SavedError::Invalid { key: "version", expected: "a number from 1 on" })?;
        if found > supported {
            return Err(SavedError::Version { found, supported });
        }
    }
    let written = object.shift_remove("checksum");
    if written.is_some_and(|written| written != checksum(&json)) {
        return Err(SavedError::Checksum);
    }
    let cache = json.as_object_mut().and_then(|object| object.shift_remove("cache"));
    Ok((json, cache))
}

impl CacheHeader {
    fn from_json(json: &Value) -> Result<Self, SavedError> {
        let text = |key| json.get(key).and_then(Value::as_str).map(str::to_owned);
        let token = |id: &Value| id.as_u64().and_then(|id| TokenId::try_from(id).ok());
        let tokens = json.get("tokens").and_then(Value::as_array);
        let tokens = tokens.and_then(|ids| ids.iter().map(token).collect::<Option<Vec<_>>>());
        let adapter = match json.get("adapter") {
            None | Some(Value::Null) => Some(None),
            Some(adapter) => adapter.as_u64().and_then(|sum| u32::try_from(sum).ok()).map(Some),
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
        if header.bytes > SavedFile::MAX_CACHE_BYTES { Err(SavedError::TooLarge) } else { Ok(header) }
    }

    /// Reads the pages, which are the whole rest of `file`.
    fn read_pages(self, file: impl Read) -> Result<SavedCache, SavedError> {
        let mut pages = Vec::new();
        let found = file.take(self.bytes + 1).read_to_end(&mut pages)? as u64;
        if found != self.bytes {
            return Err(SavedError::CacheLength { expected: self.bytes, found });
        }
        if sha256(&pages) != self.sha256 {
            return Err(SavedError::CacheChecksum);
        }
        Ok(SavedCache { pages: pages.into(), ..self.cache })
    }
}

/// SHA-256 of the compact JSON, in hexadecimal.
fn checksum(json: &Value) -> String {
    sha256(json.to_string().as_bytes())
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
