//! Store of the tokens of logins: a file that only its user reads, or the memory.

use super::entry::{Entries, Entry, key};
use crate::{Error, Result};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// Maximum size of the file.
const MAX_BYTES: u64 = 1 << 20;
/// Version of the file's format.
const VERSION: u32 = 1;
/// Time to wait for another holder of the lock, which may be refreshing a token.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);
/// Time between two attempts.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Store of the tokens of [`Login`](crate::Login)s, by the addresses of their servers without the query.
/// Clones share it, and so do programs with the same file. `Debug` shows no tokens.
///
/// Tokens are sent to their server, and to the authorization server that issued them; neither can redirect
/// them to another host.
#[derive(Clone)]
pub struct TokenStore {
    place: Arc<Place>,
    /// Held during a refresh and each other change.
    changing: Arc<tokio::sync::Mutex<()>>,
}

enum Place {
    File(PathBuf),
    Memory(Mutex<Entries>),
}

/// Form of the file.
#[derive(Serialize, Deserialize)]
struct Content<T> {
    version: u32,
    servers: T,
}

/// The right to change the store.
pub(super) struct Guard {
    _changing: OwnedMutexGuard<()>,
    /// Locked until it is closed.
    _file: Option<File>,
}

impl TokenStore {
    /// Keeps tokens in a file, which is created with the first login and has the mode 600 on Unix. Beside it
    /// there is a file `….lock`.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::of(Place::File(path.into()))
    }

    /// Keeps tokens in memory.
    pub fn in_memory() -> Self {
        Self::of(Place::Memory(Mutex::default()))
    }

    fn of(place: Place) -> Self {
        Self { place: Arc::new(place), changing: Arc::default() }
    }

    /// The addresses of the servers with tokens.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn servers(&self) -> Result<Vec<String>> {
        Ok(self.read()?.into_keys().collect())
    }

    /// Forgets the tokens of a server; false if there are none. Nothing is sent: at the server they stay
    /// valid until they expire.
    ///
    /// # Errors
    /// When the file cannot be read or written, or this is no address.
    pub fn remove(&self, url: &str) -> Result<bool> {
        let url = Url::parse(url)
            .map_err(|error| Error::InvalidUrl { url: url.to_owned(), message: error.to_string() })?;
        let _guard = self.lock_blocking()?;
        let mut entries = self.read()?;
        let is_removed = entries.remove(&key(&url)).is_some();
        if is_removed {
            self.write(&entries)?;
        }
        Ok(is_removed)
    }

    /// Keeps a new login.
    pub(super) async fn insert(&self, url: &Url, entry: Entry) -> Result<()> {
        let _guard = self.lock().await?;
        let mut entries = self.read()?;
        entries.insert(key(url), entry);
        self.write(&entries)
    }

    /// The logins. The file is small: a read holds up no runtime.
    pub(super) fn read(&self) -> Result<Entries> {
        match &*self.place {
            Place::Memory(entries) => Ok(entries.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            Place::File(path) => {
                read(path).map_err(|source| Error::TokenStore { path: path.clone(), source })
            }
        }
    }

    /// Replaces the logins, under a [`Guard`].
    pub(super) fn write(&self, changed: &Entries) -> Result<()> {
        match &*self.place {
            Place::Memory(entries) => {
                entries.lock().unwrap_or_else(PoisonError::into_inner).clone_from(changed);
                Ok(())
            }
            Place::File(path) => {
                write(path, changed).map_err(|source| Error::TokenStore { path: path.clone(), source })
            }
        }
    }

    /// Waits for the right to change the store, without blocking the runtime.
    pub(super) async fn lock(&self) -> Result<Guard> {
        let start = Instant::now();
        loop {
            if let Some(guard) = self.try_lock(start)? {
                return Ok(guard);
            }
            tokio::time::sleep(LOCK_INTERVAL).await;
        }
    }

    fn lock_blocking(&self) -> Result<Guard> {
        let start = Instant::now();
        loop {
            if let Some(guard) = self.try_lock(start)? {
                return Ok(guard);
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
    }

    /// Takes the lock if it is free; an error after the time limit since `start`.
    fn try_lock(&self, start: Instant) -> Result<Option<Guard>> {
        let path = match &*self.place {
            Place::File(path) => Some(path),
            Place::Memory(_) => None,
        };
        if let Ok(changing) = self.changing.clone().try_lock_owned() {
            match path.map(|path| locked(path)).transpose() {
                Ok(None) => return Ok(Some(Guard { _changing: changing, _file: None })),
                Ok(Some(Some(file))) => return Ok(Some(Guard { _changing: changing, _file: Some(file) })),
                Ok(Some(None)) => {}
                Err(source) => return Err(failed(path, source)),
            }
        }
        match start.elapsed() < LOCK_TIMEOUT {
            true => Ok(None),
            false => {
                Err(failed(path, io::Error::new(io::ErrorKind::TimedOut, "another program has locked it")))
            }
        }
    }
}

fn failed(path: Option<&PathBuf>, source: io::Error) -> Error {
    Error::TokenStore { path: path.cloned().unwrap_or_default(), source }
}

impl fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &*self.place {
            Place::File(path) => path.as_path(),
            Place::Memory(_) => Path::new("memory"),
        };
        f.debug_tuple("TokenStore").field(&place).finish()
    }
}

/// Reads the file; there are no logins without it.
fn read(path: &Path) -> io::Result<Entries> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(invalid("this is no file".to_owned()));
    }
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::new()),
        file => file?,
    };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    check_size(text.len())?;
    // Not serde's message, which may quote a token.
    let damaged = |error: serde_json::Error| {
        invalid(format!(
            "line {}, column {} is not what this program writes; without the file you can log in anew",
            error.line(),
            error.column()
        ))
    };
    let Content { version, servers }: Content<serde_json::Value> =
        serde_json::from_str(&text).map_err(damaged)?;
    match version {
        VERSION => serde_json::from_value(servers).map_err(damaged),
        other => Err(invalid(format!("expected version {VERSION} of the file, got {other}"))),
    }
}

/// Writes a new file in place of the old one, which is never half written.
fn write(path: &Path, servers: &Entries) -> io::Result<()> {
    let text = serde_json::to_string_pretty(&Content { version: VERSION, servers })?;
    check_size(text.len())?;
    let folder = folder(path)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?; // With the mode 600.
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn check_size(bytes: usize) -> io::Result<()> {
    match bytes as u64 <= MAX_BYTES {
        true => Ok(()),
        false => Err(invalid(format!("more than {MAX_BYTES} bytes"))),
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The folder of a file, which is created if there is none.
fn folder(path: &Path) -> io::Result<&Path> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    Ok(folder)
}

/// Locks the file beside the store's; `None` if another program has.
fn locked(path: &Path) -> io::Result<Option<File>> {
    folder(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(name)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
