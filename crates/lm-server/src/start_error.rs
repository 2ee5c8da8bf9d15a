//! Errors of a server's start.

use std::io;
use std::net::SocketAddr;

/// Result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a server's start. Errors of requests are responses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The address is public, and no key is configured.
    #[error("other machines can reach {addr}, and there is no API key: configure one, or allow it without")]
    OpenAddress {
        /// The address.
        addr: SocketAddr,
    },
    /// An API key is empty or has characters that are invalid in a header.
    #[error("API key {number} is invalid: expected 1 to 512 visible ASCII characters")]
    InvalidKey {
        /// Its number, from 1.
        number: usize,
    },
    /// The async runtime cannot be started, or signals cannot be received.
    #[error("the async runtime cannot be started: {0}")]
    Runtime(io::Error),
    /// No model to serve.
    #[error("there is no model to serve")]
    NoModel,
    /// Two models have one name.
    #[error("two models have the name `{name}`")]
    DuplicateModel {
        /// The name.
        name: String,
    },
}
