//! `--mcp` and `--mcp-config`: connections to MCP servers.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use lm_mcp::{Listed, Mcp, McpLimits, McpServers, ServerConfig, UnknownKey};
use lm_template::{Message, Part};
use lm_tools::{Map, Toolset, Value};

use super::approval::Approve;
use super::asker::Asker;
use super::catalog::{self, shown};
use super::source::{McpSource, named_apart};
use super::tokens::tokens;
use super::waiting::Waiting;
use crate::args::numbers;
use crate::interrupt::Interrupt;
use crate::lines::Lines;
use crate::screen::one_line;
use crate::suggestion::did_you_mean;

/// Options that name MCP servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "MCP servers")]
pub struct ServerArgs {
    /// MCP server: a command to start, or an address (http://…); may be repeated. With NAME= the names of its
    /// tools begin with `NAME_`
    #[arg(long, value_name = "[NAME=]COMMAND|URL")]
    mcp: Vec<McpSource>,
    /// File of MCP servers, {"mcpServers": {"NAME": {"command", "args", "env", "cwd"} or {"url", "headers",
    /// "oauth"}}}
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
    /// Time limit of a server's start, in seconds: a package manager may have to download it first
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = numbers::count, allow_negative_numbers = true)]
    mcp_start_timeout: NonZeroUsize,
}

impl ServerArgs {
    /// Returns true if no server is named.
    pub fn is_empty(&self) -> bool {
        self.mcp.is_empty() && self.mcp_config.is_none()
    }

    /// Connects to the servers; the asker answers their questions.
    ///
    /// # Errors
    /// When the file cannot be used, or a server cannot be started or reached.
    pub fn connect(&self, limits: McpLimits, asker: Option<Asker>) -> Result<Servers> {
        let mut servers = named_apart(&self.mcp);
        if let Some(path) = &self.mcp_config {
            servers.extend(enabled(path)?);
        }
        if servers.is_empty() {
            return Ok(Servers(None));
        }
        let start_timeout = Duration::from_secs(self.mcp_start_timeout.get() as u64);
        let limits = McpLimits { start_timeout, ..limits };
        let waiting = Waiting::start(&servers);
        let mut mcp = Mcp::builder().servers(servers).limits(limits);
        if let Ok(tokens) = tokens() {
            mcp = mcp.tokens(&tokens); // Without a folder for them there was no login.
        }
        if let Some(asker) = asker {
            mcp = mcp.elicitation_blocking(move |question| asker.answer(&question));
        }
        let mcp = mcp.connect();
        drop(waiting);
        let mcp = mcp?;
        for problem in mcp.problems() {
            note(&problem.to_string());
        }
        Ok(Servers(Some(Arc::new(mcp))))
    }
}

/// Reads the servers of a file; unknown keys are noted.
///
/// # Errors
/// When it cannot be used.
pub fn of_file(path: &Path) -> Result<Vec<ServerConfig>> {
    let McpServers { servers, unknown_keys } = McpServers::read(path)?;
    let shown = path.display();
    for UnknownKey { path, name, known } in unknown_keys {
        let meant = did_you_mean(&name, known.iter().copied(), "");
        note(&format!("{shown}: `{path}` is not known and has no effect{meant}"));
    }
    Ok(servers)
}

/// Reads the enabled servers of a file.
fn enabled(path: &Path) -> Result<Vec<ServerConfig>> {
    let mut servers = of_file(path)?;
    servers.retain(|server| !server.disabled);
    if servers.is_empty() {
        note(&format!("{}: no server is enabled", path.display()));
    }
    Ok(servers)
}

/// Lines about the items of a list, which begin with their kind.
fn kind<T>(kind: &str, listed: Listed<T>, line: fn(&T) -> String) -> Vec<String> {
    listed.problems.iter().for_each(|problem| note(&problem.to_string()));
    listed.items.iter().map(|item| one_line(&format!("{kind}: {}", line(item)))).collect()
}

fn note(text: &str) {
    eprintln!("note: {}", one_line(text));
}

/// Options of MCP servers whose tools are called.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "MCP servers")]
pub struct McpCallArgs {
    #[command(flatten)]
    servers: ServerArgs,
    /// Time limit of a call of their tools, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = numbers::count, allow_negative_numbers = true)]
    mcp_timeout: NonZeroUsize,
}

impl McpCallArgs {
    /// Connects to the servers.
    ///
    /// # Errors
    /// See [`ServerArgs::connect`].
    #[cfg(feature = "serve")]
    pub fn connect(&self) -> Result<Servers> {
        self.servers.connect(self.limits(), None)
    }

    fn limits(&self) -> McpLimits {
        let call_timeout = Some(Duration::from_secs(self.mcp_timeout.get() as u64));
        McpLimits { call_timeout, ..McpLimits::default() }
    }
}

/// Options of MCP servers whose tools a model calls.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "MCP servers")]
pub struct McpArgs {
    #[command(flatten)]
    servers: McpCallArgs,
    /// Calls that you are asked about: `destructive` means those of tools that may delete or overwrite data,
    /// and of tools without hints about it. Without a terminal such calls are denied
    #[arg(long, value_name = "destructive|all|none", default_value = "destructive")]
    mcp_approve: Approve,
}

impl McpArgs {
    /// Calls that the user is asked about.
    pub fn approve(&self) -> Approve {
        self.mcp_approve
    }

    /// Connects to the servers, whose questions the user answers on the terminal.
    ///
    /// # Errors
    /// See [`ServerArgs::connect`].
    pub fn connect(&self, lines: &Arc<Mutex<Lines>>, interrupt: &Interrupt) -> Result<Servers> {
        let asker = Asker::new(lines.clone(), interrupt.clone());
        self.servers.servers.connect(self.servers.limits(), Some(asker))
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

    /// Names of the servers that have no tools.
    pub fn without_tools(&self) -> Vec<String> {
        let servers = self.0.iter().flat_map(|mcp| mcp.servers());
        servers.filter(|server| server.tools.is_empty()).map(|server| server.name).collect()
    }

    /// The tools of the servers.
    pub fn tools(&self) -> Toolset {
        self.0.as_ref().map_or_else(Toolset::new, |mcp| mcp.tools())
    }

    /// Lines about the resources of the servers, then about the templates of others, and about servers whose
    /// list cannot be read.
    pub fn resources(&self) -> Vec<String> {
        let Some(mcp) = &self.0 else { return Vec::new() };
        let mut lines = shown(&mcp.resources(), catalog::resource);
        lines.extend(shown(&mcp.resource_templates(), catalog::template));
        lines
    }

    /// Lines about the resources, templates of resources and prompts of the servers, each after its kind.
    /// Servers whose list cannot be read are noted on standard error.
    pub fn catalog(&self) -> Vec<String> {
        let Some(mcp) = &self.0 else { return Vec::new() };
        let mut lines = kind("resource", mcp.resources(), catalog::resource);
        lines.extend(kind("resource template", mcp.resource_templates(), catalog::template));
        lines.extend(kind("prompt", mcp.prompts(), catalog::prompt));
        lines
    }

    /// Lines about the prompts of the servers, and about servers whose list cannot be read.
    pub fn prompts(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |mcp| shown(&mcp.prompts(), catalog::prompt))
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// When no server has it.
    pub fn read_resource(&self, uri: &str) -> Result<Vec<Part>> {
        Ok(self.connected()?.read_resource(uri)?)
    }

    /// Gets the messages of a prompt.
    ///
    /// # Errors
    /// When there is no such prompt, or an argument is missing.
    pub fn prompt(&self, name: &str, arguments: Map<String, Value>) -> Result<Vec<Message>> {
        Ok(self.connected()?.prompt(name, arguments)?)
    }

    fn connected(&self) -> Result<&Mcp> {
        self.0.as_deref().ok_or_else(|| anyhow!("there is no MCP server; start with --mcp SERVER"))
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
        mcp.add_to(tools).map_err(|error| self.name_apart(error))
    }

    /// Hint after an error of two tools with the same name.
    fn name_apart(&self, error: lm_tools::Error) -> anyhow::Error {
        let lm_tools::Error::DuplicateTool { name } = &error else { return error.into() };
        let server = self.server_of(name).unwrap_or_default();
        anyhow!(
            "tool `{name}` of MCP server `{server}` has the name of a tool of --tools: --mcp NAME=… puts `NAME_` before the names of \
             the server's tools"
        )
    }
}
