//! Connections to MCP servers, whose tools become tools of this crate.

mod answer;
mod builder;
mod catalog;
mod connection;
mod content;
mod elicitation;
mod envelope;
mod environment;
mod host;
mod http;
mod limits;
mod lines;
mod link;
mod listing;
mod paced;
mod probe;
mod process;
mod revision;
mod shared;
mod start;
mod task;
mod tool;

pub use builder::McpBuilder;
pub use catalog::{Listed, McpPrompt, McpPromptArgument, McpResource, McpResourceTemplate};
pub use elicitation::{Elicitation, ElicitationAnswer, ElicitationMode};
pub use limits::McpLimits;
pub use shared::{McpServer, Problem};
pub use tool::McpTool;

use catalog::Library;
use host::Host;
use link::Links;
use lm_template::{Message, Part};
use lm_tools::{Map, Toolset, Value};
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
    _links: Links,
    host: Host,
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

    /// Lists the resources of all servers; it waits on this thread, for each server at most
    /// [`McpLimits::start_timeout`].
    pub fn resources(&self) -> Listed<McpResource> {
        self.wait(catalog::resources).unwrap_or_default()
    }

    /// Lists the templates of resources of all servers, as [`resources`](Self::resources) does. They are
    /// optional: a server that does not know the request has none.
    pub fn resource_templates(&self) -> Listed<McpResourceTemplate> {
        self.wait(catalog::templates).unwrap_or_default()
    }

    /// Reads a resource, of the first server that has one at this address: its text after the address, images
    /// and audio as parts. It waits on this thread, for each server at most [`McpLimits::call_timeout`].
    ///
    /// # Errors
    /// When no server has it.
    pub fn read_resource(&self, uri: &str) -> crate::Result<Vec<Part>> {
        let uri = uri.to_owned();
        self.wait(|libraries| catalog::read_resource(libraries, uri)).unwrap_or_else(closed)
    }

    /// Lists the prompts of all servers, as [`resources`](Self::resources) does.
    pub fn prompts(&self) -> Listed<McpPrompt> {
        self.wait(catalog::prompts).unwrap_or_default()
    }

    /// Gets the messages of a prompt, whose name is `NAME`, or `SERVER/NAME` if several servers have one of
    /// this name. It waits as [`read_resource`](Self::read_resource) does.
    ///
    /// # Errors
    /// When there is no such prompt, an argument is missing, or the server fails.
    pub fn prompt(&self, name: &str, arguments: Map<String, Value>) -> crate::Result<Vec<Message>> {
        let name = name.to_owned();
        self.wait(|libraries| catalog::prompt(libraries, name, arguments)).unwrap_or_else(closed)
    }

    /// Runs requests on the runtime of the connections, and waits for them.
    fn wait<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        requests: impl FnOnce(Vec<Library>) -> F,
    ) -> Option<T> {
        self.host.runtime().wait(requests(self.shared.libraries()))
    }

    /// Unusable tools, for example because of their schemas, and failures to read changed tools.
    pub fn problems(&self) -> Vec<Problem> {
        self.shared.problems()
    }
}

/// Error of a request whose runtime has ended.
fn closed<T>() -> crate::Result<T> {
    Err(crate::Error::Request { message: "the connections to the MCP servers are closed".to_owned() })
}
