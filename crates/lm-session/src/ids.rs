//! Ids of adapters and sessions.

/// Id of an adapter of an engine. Ids are never reused; adapters loaded with the model count from 0 in the
/// order of [`LoadOptions::adapters`](crate::LoadOptions::adapters).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u32);

/// Id of a session in the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub u64);
