//! `lm mcp login` and `lm mcp logout`: the user's tokens at servers over HTTP.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, anyhow};
use lm_mcp::{HttpConfig, Login, ServerTransport};

use crate::args::{numbers, usage};
use crate::mcp::{self, check_program, is_address};
use crate::screen::one_line;
use crate::suggestion::did_you_mean;

const LOGIN_EXAMPLES: &str = "\
Examples:
  lm mcp login https://example.com/mcp
  lm mcp login search --mcp-config servers.json
  lm mcp login https://example.com/mcp --open

Prints the address of a page of the server's authorization server, to be opened in a browser on this machine, and waits until the browser \
returns. The tokens are kept in a file that only you can read, for every `--mcp` and `--mcp-config` with this server, and refreshed when they \
expire. In a file of servers, \"oauth\": {\"clientId\", \"clientSecret\", \"scopes\", \"callbackPort\"} names a client that is registered already.";

/// A server that is named by its address, or by its name in a file.
#[derive(Debug, clap::Args)]
pub struct ServerName {
    /// The server: its address (https://…), or its name in the file of --mcp-config
    #[arg(value_name = "URL|NAME")]
    server: String,
    /// File of MCP servers that has the name
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = LOGIN_EXAMPLES)]
pub struct LoginArgs {
    #[command(flatten)]
    server: ServerName,
    /// Id of this program at the authorization server [default: the program registers itself]
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Scope to ask for, may be repeated [default: those that the server names]
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Time limit of the login, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = numbers::count, allow_negative_numbers = true)]
    timeout: NonZeroUsize,
    /// Open the address in a browser
    #[arg(long)]
    open: bool,
}

#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    #[command(flatten)]
    server: ServerName,
}

impl ServerName {
    /// The server's address and settings.
    fn config(&self) -> Result<HttpConfig> {
        let name = &self.server;
        if is_address(name) {
            return Ok(HttpConfig { url: name.clone(), ..HttpConfig::default() });
        }
        let Some(path) = &self.mcp_config else {
            check_program(name).map_err(usage)?;
            return Err(usage(format!(
                "`{name}` is not an address (https://…): --mcp-config FILE names the file that has a server of this name"
            )));
        };
        let servers = mcp::of_file(path)?;
        let meant = || did_you_mean(name, servers.iter().map(|server| server.name.as_str()), "");
        let server = servers.iter().find(|server| server.name == *name);
        let server =
            server.ok_or_else(|| anyhow!("{} has no MCP server `{name}`{}", path.display(), meant()))?;
        match &server.transport {
            ServerTransport::Http(config) => Ok(config.clone()),
            ServerTransport::Command(_) => {
                Err(anyhow!("MCP server `{name}` is a program: only servers with a `url` have logins"))
            }
        }
    }
}

/// Logs in at a server.
///
/// # Errors
/// When there is no such server, the login fails or is refused, or its time limit is reached.
pub fn login(args: &LoginArgs) -> Result<()> {
    let mut config = args.server.config()?;
    if let Some(id) = &args.client_id {
        config.oauth.client_id = Some(id.clone());
        config.oauth.client_secret = None;
    }
    if !args.scope.is_empty() {
        config.oauth.scopes.clone_from(&args.scope);
    }
    let (url, opens) = (config.url.clone(), args.open);
    let timeout = Duration::from_secs(args.timeout.get() as u64);
    Login::new(config).timeout(timeout).run(&mcp::tokens()?, move |address| show(address, opens))?;
    eprintln!("logged in at {}", shown(&url));
    Ok(())
}

/// Forgets the tokens of a server.
///
/// # Errors
/// When there is no such server, or the file of tokens cannot be used.
pub fn logout(args: &LogoutArgs) -> Result<()> {
    let url = args.server.config()?.url;
    match mcp::tokens()?.remove(&url)? {
        true => eprintln!("logged out at {}; the server was not told", shown(&url)),
        false => eprintln!("note: there is no login at {}", shown(&url)),
    }
    Ok(())
}

/// An address without its query, which may have a key.
fn shown(url: &str) -> String {
    one_line(url.split(['?', '#']).next().unwrap_or_default())
}

/// Prints the address for the browser, and opens it if that was asked for.
fn show(address: &str, opens: bool) {
    eprintln!("open this address in a browser on this machine; Ctrl-C gives up");
    println!("{address}");
    if opens && let Err(error) = open(address) {
        eprintln!("note: no browser can be opened: {error}");
    }
}

/// Opens an address with the program of the system for it, without a shell.
fn open(address: &str) -> io::Result<()> {
    let (program, args): (_, &[&str]) = if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else if cfg!(target_os = "macos") {
        ("open", &[])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(args).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
