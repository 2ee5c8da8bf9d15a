//! KV pages of a session as the worker gives them.

/// Answer of the worker: [`CacheSave`](crate::CacheSave) without what it does not know.
#[derive(Debug)]
pub(crate) enum SavedPages {
    Saved { tokens: usize, pages: Vec<u8> },
    TooLarge { bytes: usize },
    NothingCached,
    NotInHostMemory,
}
