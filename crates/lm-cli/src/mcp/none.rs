//! Builds without the feature `mcp`: no options, no servers.

use anyhow::Result;
use lm_tools::Toolset;

use super::approval::Approve;

/// No options.
#[derive(Debug, clap::Args)]
pub struct McpArgs {}

impl McpArgs {
    pub fn approve(&self) -> Approve {
        Approve::None
    }

    pub fn connect(&self) -> Result<Servers> {
        Ok(Servers)
    }
}

/// No options.
#[cfg(feature = "serve")]
#[derive(Debug, clap::Args)]
pub struct McpCallArgs {}

#[cfg(feature = "serve")]
impl McpCallArgs {
    pub fn connect(&self) -> Result<Servers> {
        Ok(Servers)
    }
}

/// No servers.
#[derive(Clone)]
pub struct Servers;

impl Servers {
    pub fn server_of(&self, _: &str) -> Option<String> {
        None
    }

    pub fn generation(&self) -> u64 {
        0
    }

    pub fn add_to(&self, tools: Toolset) -> Result<Toolset> {
        Ok(tools)
    }
}

/// No errors of servers, no hints.
pub fn hint(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}
