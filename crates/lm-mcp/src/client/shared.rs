//! The current tools of all servers, which change on a server's notification.

use super::catalog::Library;
use super::listing::{self, Listing, Source};
use super::process::stopped;
use super::tool::McpTool;
use crate::{Error, Result};
use lm_tools::Toolset;
use rmcp::model::Implementation;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Minimum time between two lists of a server's tools.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);

/// A connected server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Its name here.
    pub name: String,
    /// Its own name and version.
    pub program: Option<String>,
    /// Its instructions for the use of its tools, for a system prompt. It is untrusted text.
    pub instructions: Option<String>,
    /// Names of its usable tools, as the model reads them.
    pub tools: Vec<String>,
    /// False when the connection has ended. The next call starts a program again, or connects to an address
    /// again, three times a minute at most; calls over a stream fail.
    pub is_connected: bool,
}

/// An unusable tool, or another problem of a server that does not end the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The server.
    pub server: String,
    /// Name of the tool at the server; `None` if it is about all tools.
    pub tool: Option<String>,
    /// Description of the problem.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, tool, message } = self;
        match tool {
            Some(tool) => write!(f, "tool `{tool}` of MCP server `{server}` cannot be used: {message}"),
            None => write!(f, "MCP server `{server}`: {message}"),
        }
    }
}

/// A server with its tools.
pub(super) struct Server {
    pub source: Source,
    pub listing: Listing,
}

/// The tools of all servers.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Held by the one update that runs.
    updating: Mutex<()>,
    generation: AtomicU64,
}

struct State {
    /// No tools, with the spawner of calls.
    none: Toolset,
    servers: Vec<Server>,
    current: Assembled,
    /// Problems of the last change, which was not applied.
    failed: Vec<Problem>,
}

/// Tools that can be used together.
struct Assembled {
    toolset: Toolset,
    tools: Vec<McpTool>,
    problems: Vec<Problem>,
}

impl Shared {
    pub fn new(servers: Vec<Server>, runtime: &Handle) -> Result<Self> {
        let handle = runtime.clone();
        let none = Toolset::new().with_spawner(move |future| drop(handle.spawn(future)));
        let current = assemble(servers.iter().map(|server| &server.listing), none.clone())?;
        let state = State { none, servers, current, failed: Vec::new() };
        Ok(Self { state: Mutex::new(state), updating: Mutex::new(()), generation: AtomicU64::new(0) })
    }

    pub fn tools(&self) -> Toolset {
        self.state().current.toolset.clone()
    }

    pub fn tool_list(&self) -> Vec<McpTool> {
        self.state().current.tools.clone()
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn servers(&self) -> Vec<McpServer> {
        let state = self.state();
        let tools = |server: &Server| {
            let is_its = |tool: &&McpTool| Arc::ptr_eq(&tool.link, &server.source.link);
            state.current.tools.iter().filter(is_its).map(|tool| tool.spec.name().to_owned()).collect()
        };
        let described = state.servers.iter().map(|server| {
            let info = server.source.link.connection().info();
            McpServer {
                name: server.source.link.server.to_string(),
                program: info.as_ref().and_then(|info| info.server_info.as_ref()).map(program),
                instructions: info.as_ref().and_then(|info| info.instructions.clone()),
                tools: tools(server),
                is_connected: server.source.link.is_connected(),
            }
        });
        described.collect()
    }

    /// The servers, for requests of their resources and prompts.
    pub fn libraries(&self) -> Vec<Library> {
        let library =
            |Server { source, .. }: &Server| Library { link: source.link.clone(), limits: source.limits };
        self.state().servers.iter().map(library).collect()
    }

    pub fn problems(&self) -> Vec<Problem> {
        let state = self.state();
        let listed = state.servers.iter().flat_map(|server| &server.listing.problems);
        listed.chain(&state.current.problems).chain(&state.failed).cloned().collect()
    }

    /// Applies the changed tools of a server. On an error the earlier ones are kept. It compiles the schemas
    /// of all tools, which takes long for large ones: not under the lock of the state, which calls and their
    /// readers need, nor on a thread of the runtime.
    fn update(&self, index: usize, listing: Result<Listing>) {
        let _updating = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut listings, none) = {
            let state = self.state();
            (
                state.servers.iter().map(|server| server.listing.clone()).collect::<Vec<_>>(),
                state.none.clone(),
            )
        };
        let changed = listing.and_then(|listing| {
            listings[index] = listing.clone();
            Ok((listing, assemble(listings.iter(), none)?))
        });
        let mut state = self.state();
        let server = state.servers[index].source.link.server.to_string();
        state.failed.retain(|problem| problem.server != server);
        match changed {
            Ok((listing, current)) => {
                state.servers[index].listing = listing;
                state.current = current;
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
            Err(error) => {
                tracing::warn!(server, %error, "the changed tools of an MCP server cannot be used");
                let message = format!("its changed tools cannot be used: {error}");
                state.failed.push(Problem { server, tool: None, message });
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("tools", &self.state().current.toolset).finish_non_exhaustive()
    }
}

fn program(info: &Implementation) -> String {
    format!("{} {}", info.name, info.version)
}

/// Reads the tools of a server again after each change notification, until `stop` changes.
pub(super) async fn refresh(
    shared: Weak<Shared>,
    (index, source): (usize, Source),
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            () = source.link.changed.notified() => {}
            () = stopped(&mut stop) => return,
        }
        let listing = listing::list(source.clone()).await;
        let Some(shared) = shared.upgrade() else { return };
        let updating = tokio::task::spawn_blocking(move || shared.update(index, listing));
        if let Err(error) = updating.await {
            tracing::error!(%error, "the changed tools of an MCP server could not be taken over");
        }
        tokio::time::sleep(REFRESH_INTERVAL).await;
    }
}

/// Merges the tools of all servers. Unusable ones are omitted: their schemas are invalid, or another tool of
/// their server has their name.
fn assemble<'a>(listings: impl Iterator<Item = &'a Listing>, toolset: Toolset) -> Result<Assembled> {
    let mut assembled = Assembled { toolset, tools: Vec::new(), problems: Vec::new() };
    let mut named: HashMap<&str, &McpTool> = HashMap::new();
    for tool in listings.flat_map(|listing| &listing.tools) {
        let added = match named.get(tool.name()) {
            Some(other) if other.server() != tool.server() => return Err(duplicate(tool, other)),
            Some(other) => Err(format!(
                "another tool of the server, `{}`, is called `{}`, too",
                other.shown_name(),
                tool.name()
            )),
            None => with_usable(&assembled.toolset, tool).map_err(|error| error.to_string()),
        };
        match added {
            Ok(toolset) => {
                assembled.toolset = toolset;
                assembled.tools.push(tool.clone());
                named.insert(tool.name(), tool);
            }
            Err(message) => assembled.problems.push(Problem {
                server: tool.server().to_owned(),
                tool: Some(tool.shown_name()),
                message,
            }),
        }
    }
    Ok(assembled)
}

/// Adds a tool, unless its calls have no grammar: it would end every turn that declares it.
fn with_usable(toolset: &Toolset, tool: &McpTool) -> lm_tools::Result<Toolset> {
    let toolset = toolset.clone().with(tool.clone())?;
    lm_tools::check_grammar(&tool.spec)?;
    Ok(toolset)
}

/// Error for tools of two servers with one name.
fn duplicate(tool: &McpTool, other: &McpTool) -> Error {
    Error::DuplicateTool {
        name: tool.name().to_owned(),
        tool: tool.shown_name(),
        server: tool.server().to_owned(),
        other: format!("tool `{}` of MCP server `{}`", other.shown_name(), other.server()),
    }
}
