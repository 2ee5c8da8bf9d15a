//! Hub settings: endpoint, token and cache, from the environment variables of `huggingface_hub`.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Cache, Error, Result};

const PUBLIC_ENDPOINT: &str = "https://huggingface.co";
/// Maximum size of a token file.
const MAX_TOKEN_BYTES: u64 = 4096;

/// Settings of a hub client and its cache.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// Scheme, host and optionally port and path; default `https://huggingface.co`.
    pub endpoint: String,
    /// Access token; requests are anonymous without it.
    pub token: Option<Token>,
    /// The cache of downloaded models.
    pub cache: Cache,
    /// Network access.
    pub network: Network,
    /// Number of retries after a transient failure. Receiving bytes resets the count.
    pub retries: u32,
    /// Delay before the first retry; it doubles each time.
    pub retry_pause: Duration,
    /// Time without data after which a connection is aborted.
    pub stall_timeout: Duration,
}

/// Network access policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Offline: requests fail with [`Error::Offline`].
    Offline,
    /// Direct connections.
    Direct,
    /// Connections through the proxy of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, if set.
    ProxyOfEnvironment,
}

/// A secret access token. Its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Validates a token, which may have only characters allowed in headers; surrounding whitespace is
    /// trimmed.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] when it is empty or contains other characters.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
            // The value is a secret, even if it is invalid.
            return Err(Error::InvalidSetting {
                setting: "HF_TOKEN",
                value: "…".to_owned(),
                expected: "a token without spaces",
            });
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl HubSettings {
    /// Settings for the hub at `endpoint` with this cache; anonymous and without a proxy.
    pub fn new(endpoint: impl Into<String>, cache: Cache) -> Self {
        Self {
            endpoint: endpoint.into(),
            token: None,
            cache,
            network: Network::Direct,
            retries: 5,
            retry_pause: Duration::from_secs(1),
            stall_timeout: Duration::from_secs(30),
        }
    }

    /// Reads the settings from the environment: `HF_ENDPOINT`, `HF_TOKEN` or the file `HF_TOKEN_PATH`,
    /// `HF_HUB_CACHE` or `HF_HOME` (under the user's cache folder without either), `HF_HUB_OFFLINE`.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] for a token that is invalid in a header, [`Error::NoCacheFolder`],
    /// [`Error::Io`] when the token's file cannot be read.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(&|name| env::var_os(name))
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self> {
        let text = |name| variable(name).and_then(|value| value.into_string().ok()).filter(|v| !v.is_empty());
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| PUBLIC_ENDPOINT.to_owned());
        let offline = text("HF_HUB_OFFLINE").or_else(|| text("TRANSFORMERS_OFFLINE"));
        let network = match offline.is_some_and(|value| is_true(&value)) {
            true => Network::Offline,
            false => Network::ProxyOfEnvironment,
        };
        let token = match text("HF_TOKEN") {
            Some(token) => Some(Token::new(&token)?),
            None => token_of_file(variable)?,
        };
        let cache = Cache::new(cache_folder(variable).ok_or(Error::NoCacheFolder)?);
        Ok(Self { token, network, ..Self::new(endpoint, cache) })
    }
}

/// The folder of the Hugging Face cache, from its environment variables or under the user's home.
pub(crate) fn cache_folder(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = path(variable, "HF_HUB_CACHE").or_else(|| path(variable, "HUGGINGFACE_HUB_CACHE"));
    named.or_else(|| Some(hf_home(variable)?.join("hub")))
}

fn hf_home(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    path(variable, "HF_HOME").or_else(|| {
        let caches = path(variable, "XDG_CACHE_HOME").or_else(|| Some(home(variable)?.join(".cache")));
        Some(caches?.join("huggingface"))
    })
}

/// The user's home folder.
pub(crate) fn home(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The path in an environment variable, with `~` at its start expanded.
pub(crate) fn path(variable: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(variable(name).filter(|value| !value.is_empty())?);
    match path.strip_prefix("~") {
        Ok(rest) => Some(home(variable)?.join(rest)),
        Err(_) => Some(path),
    }
}

fn token_of_file(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<Token>> {
    let file = path(variable, "HF_TOKEN_PATH").or_else(|| Some(hf_home(variable)?.join("token")));
    let Some(file) = file.filter(|file| file.is_file()) else { return Ok(None) };
    let text = read_short(&file, MAX_TOKEN_BYTES)?;
    if text.trim().is_empty() { Ok(None) } else { Token::new(&text).map(Some) }
}

/// Reads a small text file of at most `limit` bytes, which must be a regular one: opening a pipe would wait
/// for its writer.
pub(crate) fn read_short(file: &Path, limit: u64) -> Result<String> {
    let damaged = |what: String| Error::Damaged { path: file.to_owned(), what };
    let metadata = fs::metadata(file).map_err(Error::io(file))?;
    if !metadata.is_file() {
        return Err(damaged("it is not a regular file".to_owned()));
    }
    if metadata.len() > limit {
        return Err(damaged(format!("it has {} bytes, at most {limit} are read", metadata.len())));
    }
    fs::read_to_string(file).map_err(Error::io(file))
}

fn is_true(value: &str) -> bool {
    ["1", "ON", "YES", "TRUE"].contains(&value.to_ascii_uppercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<HubSettings> {
        HubSettings::from_variables(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[cfg(unix)]
    #[test]
    fn cache_path_equals_huggingface_hub() {
        for (variables, expected) in [
            (&[("HOME", "/u")][..], "/u/.cache/huggingface/hub"),
            (&[("HOME", "/u"), ("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("HOME", "/u"), ("HF_HOME", "~/hf")], "/u/hf/hub"),
            (&[("HOME", "/u"), ("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/hub")], "/hub"),
            (&[("HUGGINGFACE_HUB_CACHE", "/old")], "/old"),
        ] {
            assert_eq!(settings(variables).expect("is enough").cache.root(), Path::new(expected));
        }
        assert!(matches!(settings(&[]), Err(Error::NoCacheFolder)));
    }

    #[test]
    fn endpoint_and_offline_mode_come_from_environment() {
        let of = |variables: &[(&str, &str)]| {
            settings(&[&[("HF_HUB_CACHE", "/c")], variables].concat()).expect("is enough")
        };
        assert_eq!(of(&[]).endpoint, PUBLIC_ENDPOINT);
        assert_eq!(of(&[("HF_ENDPOINT", "http://mirror")]).endpoint, "http://mirror");
        for (value, network) in
            [("1", Network::Offline), ("yes", Network::Offline), ("0", Network::ProxyOfEnvironment)]
        {
            assert_eq!(of(&[("HF_HUB_OFFLINE", value)]).network, network);
        }
    }

    #[cfg(unix)]
    #[test]
    fn device_is_not_read() {
        let error = read_short(Path::new("/dev/null"), 10).expect_err("is refused");
        assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
    }

    #[test]
    fn token_is_read_from_variable_or_file_and_hidden() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("token");
        fs::write(&file, "hf_file\n").expect("can be written");
        let path = file.to_str().expect("is text");
        let of = |variables: &[(&str, &str)]| settings(&[&[("HF_HUB_CACHE", "/c")], variables].concat());
        let from_file = of(&[("HF_TOKEN_PATH", path)]).expect("is one").token.expect("is there");
        assert_eq!(from_file.as_str(), "hf_file");
        let from_variable = of(&[("HF_TOKEN_PATH", path), ("HF_TOKEN", "hf_x")]).expect("is one");
        assert_eq!(from_variable.token.as_ref().map(Token::as_str), Some("hf_x"));
        assert!(!format!("{from_variable:?}").contains("hf_x"));
        let wrong = of(&[("HF_TOKEN", "secret with\nnewline")]).expect_err("no header takes it");
        assert!(!wrong.to_string().contains("secret"), "{wrong}");
        fs::write(&file, "x".repeat(5000)).expect("can be written");
        assert!(matches!(of(&[("HF_TOKEN_PATH", path)]), Err(Error::Damaged { .. })));
    }
}
