//! KV pages of a session as data.

use std::fmt;
use std::sync::Arc;

use lm_tokenizer::TokenId;

/// KV pages of a session's cached tokens, made by [`crate::Session::save_cache`].
///
/// It belongs to one model, tokenizer and cache format, which the fingerprint names. Of a model with windows or recurrent states it has
/// what the next token needs: the pages of the window, and the states after the last token.
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
        /// Bytes that they take.
        bytes: usize,
    },
    /// No token of the session is cached.
    NothingCached,
    /// The pages cannot be read: they are in the memory of a GPU, or this machine is big-endian.
    NotInHostMemory,
}

/// Answer of the worker: [`CacheSave`] without what it does not know.
#[derive(Debug)]
pub(crate) enum SavedPages {
    Saved { tokens: usize, pages: Vec<u8> },
    TooLarge { bytes: usize },
    NothingCached,
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
