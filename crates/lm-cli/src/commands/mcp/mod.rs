//! `lm mcp`: tools for other programs, and tools of other programs, over the Model Context Protocol.

mod login;

use std::io::IsTerminal;
use std::net::SocketAddr;

use anyhow::Result;
use lm_mcp::{HttpListen, Listen, McpLimits};

use crate::args::{listen, usage};
use crate::mcp::{ServerArgs, described};
use crate::screen::one_line;
use crate::tools::ToolSource;

const EXAMPLES: &str = "\
Examples:
  lm mcp tools --mcp 'npx -y @modelcontextprotocol/server-everything'
  lm mcp tools --mcp-config servers.json
  lm mcp login https://example.com/mcp
  lm mcp serve                       serve the demo tools to a program that starts this one
  lm mcp serve --http 8000           the same on http://127.0.0.1:8000/mcp
  lm chat --mcp http://127.0.0.1:8000/mcp";

/// Use or serve tools over the Model Context Protocol (MCP)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Log in at an MCP server over HTTP that asks for it (OAuth)
    Login(login::LoginArgs),
    /// Forget the tokens of a login
    Logout(login::LogoutArgs),
    /// Serve tools to MCP clients
    Serve(ServeArgs),
    /// List the tools, resources and prompts of MCP servers
    Tools(ToolsArgs),
}

const TOOLS_EXAMPLES: &str = "\
Examples:
  lm mcp tools --mcp 'npx -y @modelcontextprotocol/server-everything'
  lm mcp tools --mcp files='npx -y @modelcontextprotocol/server-filesystem .'
  lm mcp tools --mcp http://127.0.0.1:8000/mcp
  lm mcp tools --mcp-config servers.json

Each line has the name of a tool as a model reads it, its arguments, its server and its description. Then come the resources, the templates of \
resources and the prompts, on lines that begin with `resource: `, `resource template: ` and `prompt: `. No tool is called.";

#[derive(Debug, clap::Args)]
#[command(after_help = TOOLS_EXAMPLES)]
struct ToolsArgs {
    #[command(flatten)]
    servers: ServerArgs,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  lm mcp serve
  lm mcp serve --http 8000
  lm mcp serve --http 0.0.0.0:8000 --allow-host tools.example.com

In the file of an MCP client: {\"mcpServers\": {\"lm\": {\"command\": \"lm\", \"args\": [\"mcp\", \"serve\"]}}}

Over HTTP, requests for other hosts than this machine and requests of web pages are refused. There is no password: every program that can \
reach the address can call the tools. Ctrl-C ends the server.";

#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_EXAMPLES)]
struct ServeArgs {
    /// The tools; those declared in a file have no code to serve
    #[arg(long, value_name = "demo", default_value = "demo")]
    tools: ToolSource,
    /// Listen on an address or port of this machine [default: standard input and output]
    #[arg(long, visible_alias = "listen", alias = "port", value_name = "[HOST:]PORT", value_parser = listen::address)]
    http: Option<SocketAddr>,
    /// Host that clients use to reach this server, in addition to this machine's own; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Login(args) => login::login(args),
        Command::Logout(args) => login::logout(args),
        Command::Serve(args) => serve(args),
        Command::Tools(args) => tools(&args.servers),
    }
}

fn serve(args: &ServeArgs) -> Result<()> {
    if args.tools != ToolSource::Demo {
        return Err(usage("--tools: tools declared in a file have no code to serve; `demo` has"));
    }
    let listen = args.http.map_or(Listen::Stdio, |addr| {
        Listen::Http(HttpListen { addr, allowed_hosts: args.allow_host.clone() })
    });
    if listen == Listen::Stdio && std::io::stdin().is_terminal() {
        eprintln!("waiting for an MCP client on standard input; --http PORT serves over HTTP, Ctrl-C ends");
    }
    let server = lm_mcp::serve(lm_tools::demo(), listen)?;
    if let Some(url) = server.url() {
        eprintln!("serving the demo tools on {url}; Ctrl-C ends");
    }
    Ok(server.wait()?)
}

fn tools(args: &ServerArgs) -> Result<()> {
    if args.is_empty() {
        return Err(usage("name a server: --mcp COMMAND, --mcp URL or --mcp-config FILE"));
    }
    let servers = args.connect(McpLimits::default(), None)?;
    for spec in servers.tools().specs() {
        println!("{}", described(&spec, servers.server_of(spec.name()).as_deref()));
    }
    servers.catalog().iter().for_each(|line| println!("{line}"));
    for server in servers.without_tools() {
        eprintln!("note: MCP server `{}` has no tools", one_line(&server));
    }
    Ok(())
}
