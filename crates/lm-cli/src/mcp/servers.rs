//! `--mcp` and `--mcp-config`: connections to MCP servers.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use lm_mcp::{Mcp, McpLimits, McpServers};
use lm_tools::Toolset;

use super::approval::Approve;
use super::source::{McpSource, named_apart};
use crate::args::numbers;
use crate::screen::one_line;

/// Options of MCP servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "MCP servers")]
pub struct McpArgs {
    /// MCP server whose tools the model may call: a command to start, or an address (http://…); may be repeated. With NAME= the names of
    /// its tools begin with `NAME_`
    #[arg(long, value_name = "[NAME=]COMMAND|URL")]
    mcp: Vec<McpSource>,
    /// File of MCP servers, {"mcpServers": {"NAME": {"command", "args", "env", "cwd"} or {"url", "headers"}}}
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
    /// Time limit of a call, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = numbers::count, allow_negative_numbers = true)]
    mcp_timeout: NonZeroUsize,
    /// Calls of their tools that a chat asks you about: of those that may delete or overwrite, as far as the server says, all, or none.
    /// Without a terminal they are not run
    #[arg(long, value_name = "destructive|all|none", default_value = "destructive")]
    mcp_approve: Approve,
}

impl McpArgs {
    /// Returns true if no server is named.
    pub fn is_empty(&self) -> bool {
        self.mcp.is_empty() && self.mcp_config.is_none()
    }

    /// Calls that the user is asked about.
    pub fn approve(&self) -> Approve {
        self.mcp_approve
    }

    /// Connects to the servers.
    ///
    /// # Errors
    /// When the file cannot be used, or a server cannot be started or reached.
    pub fn connect(&self) -> Result<Servers> {
        let mut servers = named_apart(&self.mcp);
        if let Some(path) = &self.mcp_config {
            let shown = path.display();
            let file = McpServers::read(path).with_context(|| format!("--mcp-config {shown}"))?;
            for key in &file.unknown_keys {
                eprintln!("note: {shown}: `{}` is not known and has no effect", one_line(key));
            }
            servers.extend(file.servers);
        }
        if servers.is_empty() {
            return Ok(Servers(None));
        }
        let call_timeout = Some(Duration::from_secs(self.mcp_timeout.get() as u64));
        let limits = McpLimits { call_timeout, ..McpLimits::default() };
        let mcp = Mcp::builder().servers(servers).limits(limits).connect()?;
        for problem in mcp.problems() {
            eprintln!("note: {}", one_line(&problem.to_string()));
        }
        Ok(Servers(Some(Arc::new(mcp))))
    }
}

/// The connected servers.
#[derive(Clone)]
pub struct Servers(Option<Arc<Mcp>>);

impl Servers {
    /// The server of a tool.
    pub fn server_of(&self, tool: &str) -> Option<String> {
        let tools = self.0.iter().flat_map(|mcp| mcp.tool_list());
        tools.into_iter().find(|own| own.name() == tool).map(|own| own.server().to_owned())
    }

    /// The tools of the servers.
    pub fn tools(&self) -> Toolset {
        self.0.as_ref().map_or_else(Toolset::new, |mcp| mcp.tools())
    }

    /// Number that increases when the tools have changed.
    pub fn generation(&self) -> u64 {
        self.0.as_ref().map_or(0, |mcp| mcp.generation())
    }

    /// Adds the tools of the servers to others.
    ///
    /// # Errors
    /// When two tools have the same name.
    pub fn add_to(&self, tools: Toolset) -> Result<Toolset> {
        let Some(mcp) = &self.0 else { return Ok(tools) };
        mcp.add_to(tools).context("--mcp NAME=… puts a name before those of a server's tools")
    }
}
