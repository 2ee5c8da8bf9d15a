//! Error types of this crate.

use std::path::PathBuf;

use crate::GgufChoice;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of resolving and downloading models.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is not a valid model name.
    #[error("`{text}` is not a model name: {reason}")]
    InvalidName {
        /// The text.
        text: String,
        /// Reason why it is invalid.
        reason: &'static str,
    },
    /// A repository lists a file outside itself (path traversal).
    #[error("{repo} lists the file {path:?}, which is not inside the repository")]
    UnsafePath {
        /// The repository.
        repo: String,
        /// The path as the server sent it.
        path: String,
    },
    /// A setting has an invalid value.
    #[error("{setting} is {value:?}, expected {expected}")]
    InvalidSetting {
        /// The environment variable or field.
        setting: &'static str,
        /// Its value.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
    /// The cache folder is unknown: neither a home folder nor a variable is set.
    #[error("there is no folder for the cache: neither HOME nor HF_HUB_CACHE is set")]
    NoCacheFolder,
    /// The network is needed, but offline mode is set.
    #[error("{what} needs the network, and HF_HUB_OFFLINE is set")]
    Offline {
        /// The operation that needs the network.
        what: String,
    },
    /// No local model store has this model.
    #[error("no model `{name}` was found on this machine")]
    NotFound {
        /// The name.
        name: String,
        /// The folders searched.
        search_path: Vec<PathBuf>,
    },
    /// The model is present locally, but its weights are not.
    #[error("{name} is in {place} without weights that can be loaded")]
    NoWeightsHere {
        /// The name.
        name: String,
        /// Its folder.
        place: PathBuf,
    },
    /// The repository has no weights in a supported format.
    #[error("{repo} holds neither safetensors nor GGUF files")]
    NoWeights {
        /// The repository.
        repo: String,
    },
    /// The repository has several GGUF models, and the name selects none.
    #[error("{name} holds {} GGUF models: {}", choices.len(), listed(choices))]
    SeveralModels {
        /// The name.
        name: String,
        /// The models to choose from.
        choices: Vec<GgufChoice>,
    },
    /// No GGUF model, or more than one, matches the requested file.
    #[error("{name} has no single file `{wanted}`; its GGUF models: {}", listed(choices))]
    NoSuchFile {
        /// The name without the file.
        name: String,
        /// The file requested.
        wanted: String,
        /// The models to choose from.
        choices: Vec<GgufChoice>,
    },
    /// The repository does not exist, or this user may not access it.
    #[error("the hub has no model {repo}, or it is private")]
    NoSuchRepo {
        /// The repository.
        repo: String,
        /// True if a token was sent.
        token_sent: bool,
    },
    /// The repository has no such branch, tag or commit.
    #[error("{repo} has no revision `{revision}`")]
    NoSuchRevision {
        /// The repository.
        repo: String,
        /// The revision asked for.
        revision: String,
    },
    /// The repository is gated: its authors grant access on request.
    #[error("access to {repo} has to be requested on its page")]
    Gated {
        /// The repository.
        repo: String,
        /// The page to request access on.
        page: String,
        /// True if a token was sent.
        token_sent: bool,
    },
    /// The server rejected the token.
    #[error("the server rejected the token for {repo}")]
    TokenRefused {
        /// The repository.
        repo: String,
    },
    /// The server responded with an error status.
    #[error("{url} responded with status {status}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The server's error message.
        message: Option<String>,
    },
    /// The connection failed after all retries.
    #[error("{url} cannot be read")]
    Connection {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server's response violates the protocol.
    #[error("{url}: {what}")]
    Protocol {
        /// The URL.
        url: String,
        /// Description of the violation.
        what: String,
    },
    /// The received file does not match the hub's checksum. It was removed.
    #[error("{file} has checksum {got}, expected {expected}; the received file was removed")]
    Checksum {
        /// The file.
        file: String,
        /// The hub's checksum.
        expected: String,
        /// The checksum of the received bytes.
        got: String,
    },
    /// The disk does not have enough space.
    #[error("{folder} has {available} bytes of free space, {needed} are needed", folder = folder.display())]
    DiskFull {
        /// The cache folder.
        folder: PathBuf,
        /// Bytes still to be written.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// Another program is downloading the same file.
    #[error("{file} is being downloaded by another program")]
    Busy {
        /// The file.
        file: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{path} cannot be used", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file of the cache is damaged.
    #[error("{path}: {what}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        what: String,
    },
    /// The model belongs to another program, which manages it.
    #[error("{name} belongs to {program}")]
    ManagedElsewhere {
        /// The model.
        name: String,
        /// The program.
        program: &'static str,
    },
}

impl Error {
    /// Adds the path of the file or folder to an I/O error.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}

/// Formats the first few choices.
fn listed(choices: &[GgufChoice]) -> String {
    const SHOWN: usize = 12;
    let mut names: Vec<_> = choices.iter().take(SHOWN).map(|choice| choice.file.as_str()).collect();
    let more = format!("and {} more", choices.len().saturating_sub(SHOWN));
    if choices.len() > SHOWN {
        names.push(&more);
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
