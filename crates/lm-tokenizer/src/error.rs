//! Errors of this crate.

/// Result with this crate's [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of reading, using or writing a tokenizer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, or one of its keys, is missing or not valid.
    #[error(transparent)]
    Format(#[from] lm_formats::Error),
    /// The tokenizer library rejects the file or fails on a text.
    #[error("the tokenizer cannot be used")]
    Library(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// `tokenizer.json` uses a part whose exact bytes per token are unknown.
    #[error("tokenizer.json: {part} is {value}, supported: {known}")]
    Unsupported {
        /// Part of the tokenizer.
        part: &'static str,
        /// Value of that part.
        value: String,
        /// The supported values.
        known: &'static str,
    },
}
