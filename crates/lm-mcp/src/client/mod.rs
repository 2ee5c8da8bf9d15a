//! Connections to MCP servers, whose tools become tools of this crate.

mod builder;
mod connection;
mod content;
mod environment;
mod host;
mod http;
mod limits;
mod listing;
mod paced;
mod process;
mod shared;
mod tool;

pub use builder::McpBuilder;
pub use limits::McpLimits;
pub use shared::{McpServer, Problem};
pub use tool::McpTool;

use connection::Service;
use host::Host;
use lm_tools::Toolset;
use shared::Shared;
use std::sync::Arc;

/// Connections to MCP servers. Their tools are a [`Toolset`].
///
/// Dropping it closes the connections and ends the programs that it started. With its own runtime it waits
/// for their end, a second or two at most; on the caller's runtime they end in the background.
///
/// ```no_run
/// use lm_mcp::{Mcp, ServerConfig};
///
/// let everything = ServerConfig::command("everything", "npx", ["-y", "@modelcontextprotocol/server-everything"]);
/// let mcp = Mcp::builder().server(everything).connect()?;
/// for spec in mcp.tools().specs() {
///     println!("{}: {}", spec.name(), spec.description()); // everything_echo: Echoes back the input string …
/// }
/// # Ok::<(), lm_mcp::Error>(())
/// ```
#[derive(Debug)]
pub struct Mcp {
    shared: Arc<Shared>,
    /// Dropped first: that closes the streams, which asks a program to end.
    _services: Vec<Service>,
    _host: Host,
}

impl Mcp {
    /// Starts to describe the connections.
    pub fn builder() -> McpBuilder {
        McpBuilder::default()
    }

    /// The current tools of all servers, whose calls run on the runtime of the connections. Tools that
    /// servers add or remove later are in the sets of later calls; see [`generation`](Self::generation).
    pub fn tools(&self) -> Toolset {
        self.shared.tools()
    }

    /// The current tools one by one, in the order of the servers.
    pub fn tool_list(&self) -> Vec<McpTool> {
        self.shared.tool_list()
    }

    /// Adds the current tools of all servers to other tools.
    ///
    /// # Errors
    /// When there is a tool with the same name.
    pub fn add_to(&self, tools: Toolset) -> lm_tools::Result<Toolset> {
        self.tool_list().into_iter().try_fold(tools, Toolset::with)
    }

    /// Number that increases when the tools of a server have changed.
    pub fn generation(&self) -> u64 {
        self.shared.generation()
    }

    /// The servers, in the order in which they were added.
    pub fn servers(&self) -> Vec<McpServer> {
        self.shared.servers()
    }

    /// Unusable tools, for example because of their schemas, and failures to read changed tools.
    pub fn problems(&self) -> Vec<Problem> {
        self.shared.problems()
    }
}
