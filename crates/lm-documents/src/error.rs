//! Errors of reading a file.

use serde::{Deserialize, Serialize};

/// Reason why a file has no text. The message is about "it", the file, whose name the caller knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is longer than [`Document::MAX_BYTES`](crate::Document::MAX_BYTES).
    #[error("it has more than {limit} bytes, the longest file that is read")]
    TooLarge {
        /// Longest file.
        limit: usize,
    },
    /// The bytes are no text in any encoding.
    #[error("it is not a text file: {0}")]
    NotText(String),
    /// The PDF file cannot be parsed.
    #[error("it is a damaged PDF file")]
    DamagedPdf,
    /// The PDF file cannot be decrypted without a password.
    #[error("it is an encrypted PDF file: remove its password first, for example with `qpdf --decrypt`")]
    EncryptedPdf,
    /// No page of the PDF file has text.
    #[error(
        "none of its pages has text ({pages}): scanned pages have to be recognised first, for example with \
         `ocrmypdf`"
    )]
    NoText {
        /// Number of pages.
        pages: usize,
    },
    /// The PDF file needs more time or memory than [`Reader::isolated`](crate::Reader::isolated) allows, or
    /// the program that reads it failed.
    #[error("it is a PDF file that cannot be read: {0}")]
    Unreadable(String),
}

/// Result of reading a file.
pub type Result<T> = std::result::Result<T, Error>;
