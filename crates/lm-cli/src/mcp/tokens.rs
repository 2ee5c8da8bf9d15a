//! The user's tokens at MCP servers.

use anyhow::{Context, Result};
use lm_mcp::TokenStore;

use crate::user_folders;

/// The file of tokens in the user's state folder.
///
/// # Errors
/// When the environment names no such folder.
pub fn tokens() -> Result<TokenStore> {
    let folder = user_folders::state().context("there is no folder for tokens: HOME is not set")?;
    Ok(TokenStore::file(folder.join("lm").join("mcp-tokens.json")))
}
