#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cache;
mod client;
mod download;
mod error;
mod file_info;
mod model_name;
mod ollama;
mod pull;
mod repo_path;
mod selection;
mod settings;
mod stores;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;

pub use cache::{Cache, CachedFile, CachedModel, CachedSnapshot, Removal};
pub use error::{Error, Result};
pub use file_info::{Check, FileInfo};
pub use model_name::{ModelName, RepoId};
pub use pull::{Hub, Pull, PullProgress};
pub use repo_path::RepoPath;
pub use selection::GgufChoice;
pub use settings::{HubSettings, Network, Token};
pub use stores::{ModelStores, Store, StoredModel};
