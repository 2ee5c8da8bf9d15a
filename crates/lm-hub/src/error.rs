//! Errors of this crate: facts about names, files, and what a server answered.

use std::path::PathBuf;

use crate::GgufChoice;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between a name and the files of a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that is no model name.
    #[error("`{text}` is no model name: {reason}")]
    InvalidName {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A repository lists a file outside itself.
    #[error("{repo} lists the file {path:?}, which is not inside the repository")]
    UnsafePath {
        /// The repository.
        repo: String,
        /// The path as the server wrote it.
        path: String,
    },
    /// A setting that cannot be used.
    #[error("{setting} is {value:?}, expected {expected}")]
    InvalidSetting {
        /// The variable or field.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What would be valid.
        expected: &'static str,
    },
    /// No folder for the cache: the user has no home, and no variable names one.
    #[error("there is no folder for the cache: neither HOME nor HF_HUB_CACHE is set")]
    NoCacheFolder,
    /// The network is needed, and the settings forbid it.
    #[error("{what} needs the network, and HF_HUB_OFFLINE is set")]
    Offline {
        /// What was to be done.
        what: String,
    },
    /// None of the places where models are kept has this one.
    #[error("no model `{name}` was found on this machine")]
    NotFound {
        /// The name.
        name: String,
        /// The folders that were looked into.
        places: Vec<PathBuf>,
    },
    /// The model is known here, but its weights are not.
    #[error("{name} is in {place} without weights that can be loaded")]
    NoWeightsHere {
        /// The name.
        name: String,
        /// Its folder.
        place: PathBuf,
    },
    /// The repository holds no weights that can be loaded.
    #[error("{repo} holds neither safetensors nor GGUF files")]
    NoWeights {
        /// The repository.
        repo: String,
    },
    /// Several GGUF models are there, and the name chooses none.
    #[error("{name} holds {} GGUF models: {}", choices.len(), listed(choices))]
    SeveralModels {
        /// The name.
        name: String,
        /// What there is to choose from.
        choices: Vec<GgufChoice>,
    },
    /// No GGUF model, or more than one, is what the name asks for.
    #[error("{name} has no single file `{wanted}`; its GGUF models: {}", listed(choices))]
    NoSuchFile {
        /// The name without the choice.
        name: String,
        /// What was asked for.
        wanted: String,
        /// What there is to choose from.
        choices: Vec<GgufChoice>,
    },
    /// The hub has no such repository, or does not show it to this user.
    #[error("the hub has no model {repo}, or it is private")]
    NoSuchRepo {
        /// The repository.
        repo: String,
        /// Whether a token was sent.
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
    /// The authors want to be asked first.
    #[error("access to {repo} must be asked for on its page")]
    Gated {
        /// The repository.
        repo: String,
        /// The page.
        page: String,
        /// Whether a token was sent.
        token_sent: bool,
    },
    /// The server did not take the token.
    #[error("the server refused the token for {repo}")]
    TokenRefused {
        /// The repository.
        repo: String,
    },
    /// The server answered with a status that ends the request.
    #[error("{url} answered {status}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the server says about it.
        message: Option<String>,
    },
    /// The connection failed, more often than the settings allow.
    #[error("{url} cannot be read")]
    Connection {
        /// The address.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server's answer is not what the protocol asks for.
    #[error("{url}: {what}")]
    Protocol {
        /// The address.
        url: String,
        /// What is missing or wrong.
        what: String,
    },
    /// The received file is not the one that the hub describes. It was removed.
    #[error("{file} has checksum {got}, the hub says {expected}; what was received is removed")]
    Checksum {
        /// The file.
        file: String,
        /// What the hub says.
        expected: String,
        /// What the received bytes have.
        got: String,
    },
    /// The disk has not enough room.
    #[error("{folder} has room for {available} bytes, {needed} are needed", folder = folder.display())]
    DiskFull {
        /// The cache folder.
        folder: PathBuf,
        /// Bytes still to be written.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// Another program writes the same file.
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
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file of the cache that is not what should stand there.
    #[error("{path}: {what}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The model belongs to another program, which keeps books about it.
    #[error("{name} belongs to {program}")]
    Foreign {
        /// The model.
        name: String,
        /// The program.
        program: &'static str,
    },
}

impl Error {
    /// Names the file or folder of an input or output error.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}

/// The first few choices.
fn listed(choices: &[GgufChoice]) -> String {
    const SHOWN: usize = 12;
    let mut names: Vec<_> = choices.iter().take(SHOWN).map(|choice| choice.file.as_str()).collect();
    let more = format!("and {} more", choices.len().saturating_sub(SHOWN));
    if choices.len() > SHOWN {
        names.push(&more);
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
