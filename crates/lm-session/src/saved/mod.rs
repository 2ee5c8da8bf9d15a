//! Sessions as data: their tokens, settings and KV pages, and the files that hold them.

mod cache;
mod error;
mod file;
mod pages;

pub use cache::{CacheSave, SaveOptions, SavedCache, SavedTokens};
pub use error::SavedError;
pub use file::SavedFile;
pub(crate) use pages::SavedPages;
