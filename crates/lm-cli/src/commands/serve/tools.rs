//! Tools of a server.

use anyhow::Result;
use lm_server::ServedTools;
use lm_tools::{Toolset, demo};

use crate::mcp::McpCallArgs;

/// The demo tools, if asked for, and those of MCP servers, which may change.
///
/// # Errors
/// When a server cannot be started or reached, or two tools have the same name.
pub fn tools(with_demo: bool, mcp: &McpCallArgs) -> Result<ServedTools> {
    let servers = mcp.connect()?;
    let own = if with_demo { demo() } else { Toolset::new() };
    servers.add_to(own.clone())?;
    Ok(ServedTools::new(move || {
        servers.add_to(own.clone()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the tools of the MCP servers are omitted");
            own.clone()
        })
    }))
}
