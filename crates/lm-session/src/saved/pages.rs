//! KV pages of a session as returned by the worker.

/// Answer of the worker: [`CacheSave`](crate::CacheSave) without the data of the session.
#[derive(Debug)]
pub(crate) enum SavedPages {
    Saved { tokens: usize, pages: Vec<u8> },
    TooLarge { bytes: usize },
    NothingCached,
    NotInHostMemory,
}
