//! The store of kept conversations: its file and its options.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use lm_store::Store;

use crate::user_folders;

/// Options of a command that keeps conversations.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Kept conversations")]
pub struct KeepArgs {
    #[command(flatten)]
    pub file: StoreArgs,
    /// Keep no conversations
    #[arg(long)]
    pub no_store: bool,
}

/// Option of the store's file.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    /// File of the kept conversations [default: lm/conversations.db in the user's data folder]
    #[arg(long, value_name = "FILE", env = "LM_STORE", hide_env_values = true, global = true)]
    store: Option<PathBuf>,
}

impl StoreArgs {
    /// Returns true if the file is given.
    pub fn is_given(&self) -> bool {
        self.store.is_some()
    }

    /// Opens the store, and creates it if it does not exist.
    ///
    /// # Errors
    /// When there is no data folder; those of [`Store::open`].
    pub fn open(&self) -> Result<Store> {
        let path = self.path()?;
        Store::open(&path).with_context(|| format!("`{}`", path.display()))
    }

    /// The file.
    ///
    /// # Errors
    /// When there is no data folder.
    pub fn path(&self) -> Result<PathBuf> {
        let default = || user_folders::data().map(|folder| folder.join("lm").join("conversations.db"));
        let path = self.store.clone().or_else(default);
        path.ok_or_else(|| anyhow!("there is no data folder; --store FILE names a file"))
    }
}
