//! KV pages of a session as data.

use std::fmt;
use std::sync::Arc;

use lm_tokenizer::TokenId;

/// KV pages of a session's cached tokens, created by [`crate::Session::save_cache`].
///
/// It belongs to one model, tokenizer and cache format, identified by the fingerprint. For a model with
/// windows or recurrent states it has the data for the next token: the pages of the window, and the states
/// after the last token.
#[derive(Clone, PartialEq, Eq)]
pub struct SavedCache {
    /// [`crate::Engine::fingerprint`] of the engine.
    pub fingerprint: String,
    /// [`crate::AdapterInfo::checksum`] of the session's adapter.
    pub adapter: Option<u32>,
    /// The cached tokens.
    pub tokens: Vec<TokenId>,
    /// Contents of their pages, in an order that depends on the model.
    pub pages: Arc<[u8]>,
}

/// Outcome of [`crate::Session::save_cache`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheSave {
    /// The pages were copied.
    Saved(SavedCache),
    /// The pages exceed the limit.
    TooLarge {
        /// Bytes of the pages.
        bytes: usize,
    },
    /// No token of the session is cached.
    NothingCached,
    /// The pages cannot be read: they are in the memory of a GPU, or this machine is big-endian.
    NotInHostMemory,
}

/// Options of [`Session::save`](crate::Session::save), and of a conversation's `save`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveOptions {
    /// Saves the KV pages as well if they take at most this many bytes, and at most
    /// [`SavedFile::MAX_CACHE_BYTES`](crate::SavedFile::MAX_CACHE_BYTES): only later tokens have to run then.
    /// Default `None`: no pages.
    pub cache: Option<usize>,
}

/// Outcome of [`SaveOptions::cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedTokens {
    /// The pages were not requested.
    NotAsked,
    /// The pages of this many tokens are saved.
    Saved {
        /// Number of tokens.
        tokens: usize,
        /// Bytes of their pages.
        bytes: usize,
    },
    /// The pages exceed the limit, and are not saved.
    TooLarge {
        /// Bytes of the pages.
        bytes: usize,
    },
    /// No token is cached: none has run yet, or the pages were evicted.
    NothingCached,
    /// The pages are not in host memory.
    NotInHostMemory,
}

impl fmt::Debug for SavedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedCache")
            .field("fingerprint", &self.fingerprint)
            .field("adapter", &self.adapter)
            .field("tokens", &self.tokens.len())
            .field("bytes", &self.pages.len())
            .finish()
    }
}
