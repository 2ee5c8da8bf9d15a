//! Error types of this crate.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of a store of conversations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file or its folder cannot be created or opened.
    #[error("the store of conversations `{}` cannot be opened", path.display())]
    Open {
        /// Path of the database.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A newer version of this program wrote the database; it is unchanged.
    #[error("the store of conversations `{}` has version {found}, this program reads up to {known}; it is left as it is, use the newer program", path.display())]
    Newer {
        /// Path of the database.
        path: PathBuf,
        /// Version of its schema.
        found: i64,
        /// Latest version that this program reads.
        known: i64,
    },
    /// The file is not a store of conversations; it is unchanged.
    #[error("`{}` is not a store of conversations; it is left as it is", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error("the store of conversations is damaged; `lm conversations export` writes what can be read")]
    Damaged(#[source] rusqlite::Error),
    /// The disk is full; nothing was changed.
    #[error("the disk is full")]
    Full(#[source] rusqlite::Error),
    /// Another program has kept the database locked.
    #[error("another program has kept the store of conversations locked for {} s", crate::limits::BUSY.as_secs())]
    Busy(#[source] rusqlite::Error),
    /// Any other error of the database.
    #[error("the store of conversations cannot be used")]
    Database(#[source] rusqlite::Error),
    /// A value is not the expected one.
    #[error("{at}: expected {expected}, got {got}")]
    Invalid {
        /// Path of the value.
        at: String,
        /// Description of valid values.
        expected: &'static str,
        /// The value, shortened.
        got: String,
    },
    /// A value is too large.
    #[error("{at}: {size} {unit}, at most {limit} are kept")]
    TooLarge {
        /// Path of the value.
        at: String,
        /// Its size.
        size: usize,
        /// Largest size.
        limit: usize,
        /// Unit of both.
        unit: &'static str,
    },
    /// A line of an import is not JSON.
    #[error("line {line} is not JSON")]
    NotJson {
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// An import cannot be read.
    #[error("line {line} cannot be read")]
    Read {
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A conversation of an import is invalid.
    #[error("line {line}")]
    InLine {
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        #[source]
        source: Box<Error>,
    },
    /// There is no conversation of this id or title.
    #[error("there is no conversation `{name}`")]
    Unknown {
        /// Id or title.
        name: String,
    },
    /// Several conversations have this text in their titles.
    #[error("`{name}` is in the titles of {count} conversations, such as {}", titles.join(", "))]
    Ambiguous {
        /// The text.
        name: String,
        /// Number of conversations.
        count: usize,
        /// Ids and titles of the first of them.
        titles: Vec<String>,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(error),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(error),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            _ => Self::Database(error),
        }
    }
}

impl Error {
    /// Error of a value of another type or form.
    pub(crate) fn invalid(at: &str, expected: &'static str, got: &serde_json::Value) -> Self {
        let text = got.to_string();
        let end = text.char_indices().nth(60).map_or(text.len(), |(end, _)| end);
        let got = if end < text.len() { format!("{}…", &text[..end]) } else { text };
        Self::Invalid { at: at.to_owned(), expected, got }
    }

    /// Returns an error if `size` is more than `limit`.
    pub(crate) fn check_size(at: &str, size: usize, limit: usize, unit: &'static str) -> Result<()> {
        if size <= limit { Ok(()) } else { Err(Self::TooLarge { at: at.to_owned(), size, limit, unit }) }
    }
}
