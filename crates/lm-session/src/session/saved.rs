//! A session as data.

use std::path::Path;

use lm_tokenizer::TokenId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::params::SessionConfig;
use crate::sampling::SamplerParams;
use crate::saved::{CacheSave, SaveOptions, SavedCache, SavedError, SavedFile, SavedTokens};
use crate::session::Session;

/// A session as data: its tokens and settings, and KV pages if requested. Created by [`Session::save`] and
/// read by [`Engine::restore`].
///
/// It belongs to one model and tokenizer, identified by the fingerprint. The JSON of its [`SavedFile`] has
/// these keys:
///
/// | key | value |
/// |---|---|
/// | `format` | [`SavedSession::FORMAT`] |
/// | `version` | [`SavedSession::VERSION`] |
/// | `fingerprint` | [`Engine::fingerprint`] |
/// | `adapter` | checksum of the adapter, or null |
/// | `tokens` | ids of all tokens |
/// | `settings` | `sampler` ([`SamplerParams`]), `stop`, `stop_ids`, `max_output_tokens` |
///
/// ```
/// use lm_session::{SaveOptions, SavedSession, SessionConfig, testing};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("session.json");
/// let engine = testing::scripted_engine(["Hello!"]);
/// let mut session = engine.session(SessionConfig::default())?;
/// session.prefill(&[1, 2, 3])?;
/// let (saved, _) = session.save(SaveOptions { cache: Some(64 << 20) })?;
/// saved.write(&path)?;
/// drop(session); // Or the end of the program.
///
/// let mut session = engine.restore(&SavedSession::read(&path)?)?;
/// assert_eq!(session.tokens(), [1, 2, 3]);
/// assert_eq!(session.prefill(&[4])?.prefilled_tokens, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSession {
    /// [`Engine::fingerprint`] of the engine.
    pub fingerprint: String,
    /// [`crate::AdapterInfo::checksum`] of the session's adapter.
    pub adapter: Option<u32>,
    /// All tokens of the session.
    pub tokens: Vec<TokenId>,
    /// Settings of the session. [`SessionConfig::adapter`] is ignored, and user-defined filters are not
    /// written to files.
    pub config: SessionConfig,
    /// KV pages of the first tokens.
    pub cache: Option<SavedCache>,
}

/// [`SessionConfig`] in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    sampler: SamplerParams,
    stop: Vec<String>,
    stop_ids: Vec<TokenId>,
    max_output_tokens: Option<usize>,
}

const SETTINGS: &str = "an object of the settings of a session";

impl SavedSession {
    /// Format of the files.
    pub const FORMAT: &'static str = "lm-session";
    /// Latest version of the files.
    pub const VERSION: u64 = 1;

    /// Writes the session to a file, replacing it atomically: even after a crash, the file is the old one or
    /// the new one.
    ///
    /// # Errors
    /// [`SavedError::Io`]; the old file is then kept.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        self.file()?.write(path)
    }

    /// Writes the session to a new file.
    ///
    /// # Errors
    /// [`SavedError::Io`], with [`std::io::ErrorKind::AlreadyExists`] for an existing file.
    pub fn write_new(&self, path: impl AsRef<Path>) -> Result<(), SavedError> {
        self.file()?.write_new(path)
    }

    /// Reads a session from a file.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SavedError> {
        Self::from_file(SavedFile::read(path, Self::VERSION)?)
    }

    /// Reads a session from a file without its KV pages, which may be damaged.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn read_without_cache(path: impl AsRef<Path>) -> Result<Self, SavedError> {
        Self::from_file(SavedFile::read_without_cache(path, Self::VERSION)?)
    }

    fn file(&self) -> Result<SavedFile, SavedError> {
        let SessionConfig { sampler, stop, stop_ids, max_output_tokens, adapter: _ } = self.config.clone();
        let settings = Settings { sampler, stop, stop_ids, max_output_tokens };
        let settings = serde_json::to_value(settings).map_err(SavedError::NotJson)?;
        // JSON has no NaN.
        if Settings::deserialize(&settings).is_err() {
            return Err(SavedError::Invalid { key: "settings", expected: SETTINGS });
        }
        let json = [
            ("format", json!(Self::FORMAT)),
            ("version", json!(Self::VERSION)),
            ("fingerprint", json!(self.fingerprint)),
            ("adapter", json!(self.adapter)),
            ("tokens", json!(self.tokens)),
            ("settings", settings),
        ];
        let json = json.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Ok(SavedFile::new(json, self.cache.clone()))
    }

    fn from_file(file: SavedFile) -> Result<Self, SavedError> {
        let (mut json, cache) = file.into_parts();
        if json.get("format").and_then(Value::as_str) != Some(Self::FORMAT) {
            return Err(SavedError::Invalid { key: "format", expected: "`lm-session`" });
        }
        let _: u64 = value(&mut json, "version", "a number from 1 on")?;
        let Settings { sampler, stop, stop_ids, max_output_tokens } = value(&mut json, "settings", SETTINGS)?;
        let tokens: Vec<TokenId> = value(&mut json, "tokens", "an array of token ids")?;
        if cache.as_ref().is_some_and(|cache| !tokens.starts_with(&cache.tokens)) {
            return Err(SavedError::Invalid { key: "cache", expected: "of the first `tokens`" });
        }
        Ok(Self {
            fingerprint: value(&mut json, "fingerprint", "a string")?,
            adapter: value(&mut json, "adapter", "a checksum or null")?,
            tokens,
            config: SessionConfig { sampler, stop, stop_ids, max_output_tokens, adapter: None },
            cache,
        })
    }
}

/// Takes the value of a key.
fn value<T: for<'a> Deserialize<'a>>(
    json: &mut Value,
    key: &'static str,
    expected: &'static str,
) -> Result<T, SavedError> {
    let value = json.get_mut(key).map(Value::take);
    let value = value.and_then(|value| serde_json::from_value(value).ok());
    value.ok_or(SavedError::Invalid { key, expected })
}

/// Copies the KV pages of the first `len` tokens of `session` if requested.
fn copy_cache(
    options: SaveOptions,
    session: &Session,
    len: usize,
) -> Result<(Option<SavedCache>, SavedTokens)> {
    let Some(limit) = options.cache else { return Ok((None, SavedTokens::NotAsked)) };
    let limit = limit.min(usize::try_from(SavedFile::MAX_CACHE_BYTES).unwrap_or(usize::MAX));
    Ok(match session.save_cache_to(len, limit)? {
        CacheSave::Saved(cache) => {
            let outcome = SavedTokens::Saved { tokens: cache.tokens.len(), bytes: cache.pages.len() };
            (Some(cache), outcome)
        }
        CacheSave::TooLarge { bytes } => (None, SavedTokens::TooLarge { bytes }),
        CacheSave::NothingCached => (None, SavedTokens::NothingCached),
        CacheSave::NotInHostMemory => (None, SavedTokens::NotInHostMemory),
    })
}

impl Session {
    /// Copies the session to data: tokens and settings, and KV pages if requested and within the limit.
    /// Returns the outcome for the pages as well.
    ///
    /// # Errors
    /// [`Error::EngineStopped`] when pages are requested; [`Error::AdapterUnloaded`].
    pub fn save(&self, options: SaveOptions) -> Result<(SavedSession, SavedTokens)> {
        let (cache, outcome) = copy_cache(options, self, usize::MAX)?;
        let saved = SavedSession {
            fingerprint: self.engine().fingerprint().to_owned(),
            adapter: self.engine().adapter_checksum(self.config().adapter)?,
            tokens: self.tokens(),
            config: self.config().clone(),
            cache,
        };
        Ok((saved, outcome))
    }
}

impl Session {
    /// Copies the KV pages of the common prefix of this session and `ids`, if requested.
    ///
    /// # Errors
    /// [`Error::EngineStopped`] and [`Error::AdapterUnloaded`] when pages are requested.
    pub fn save_prefix(
        &self,
        ids: &[TokenId],
        options: SaveOptions,
    ) -> Result<(Option<SavedCache>, SavedTokens)> {
        copy_cache(options, self, self.common(ids))
    }
}

impl Engine {
    /// Opens a session with the tokens and settings of a saved one, and with its KV pages, if any. Tokens
    /// without pages run with the next call. Other sessions find the pages as well ([`crate::PrefixCache`]),
    /// so their source must be trusted.
    ///
    /// # Errors
    /// [`Error::ForeignCache`] for a session of another model, tokenizer or cache format,
    /// [`Error::ForeignAdapter`] if its adapter is not loaded, [`Error::SavedToken`],
    /// [`Error::PromptTooLong`], and the other errors of [`Engine::session`] and of
    /// [`Session::restore_cache`].
    pub fn restore(&self, saved: &SavedSession) -> Result<Session> {
        let SavedSession { fingerprint, adapter, tokens, config, cache } = saved;
        self.check_fingerprint(fingerprint)?;
        let loaded = self.adapters().into_iter().find(|(_, info)| Some(info.checksum) == *adapter);
        let loaded = loaded.map(|(id, _)| id);
        if adapter.is_some() && loaded.is_none() {
            return Err(Error::ForeignAdapter { expected: None, found: *adapter });
        }
        let mut session = self.session(SessionConfig { adapter: loaded, ..config.clone() })?;
        session.restore_tokens(tokens, cache.as_ref())?;
        Ok(session)
    }
}
