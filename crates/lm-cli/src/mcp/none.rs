//! Builds without the feature `mcp`: no options, no servers.

use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};
use lm_template::{Message, Part};
use lm_tools::{Map, Toolset, Value};

use super::approval::Approve;
use crate::interrupt::Interrupt;
use crate::lines::Lines;

/// No options.
#[derive(Debug, clap::Args)]
pub struct McpArgs {}

impl McpArgs {
    pub fn approve(&self) -> Approve {
        Approve::None
    }

    pub fn connect(&self, _: &Arc<Mutex<Lines>>, _: &Interrupt) -> Result<Servers> {
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

    pub fn resources(&self) -> Vec<String> {
        Vec::new()
    }

    pub fn prompts(&self) -> Vec<String> {
        Vec::new()
    }

    pub fn read_resource(&self, _: &str) -> Result<Vec<Part>> {
        bail!("this program was built without MCP servers")
    }

    pub fn prompt(&self, _: &str, _: Map<String, Value>) -> Result<Vec<Message>> {
        bail!("this program was built without MCP servers")
    }

    pub fn add_to(&self, tools: Toolset) -> Result<Toolset> {
        Ok(tools)
    }
}

/// No errors of servers, no hints.
pub fn hint(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}
