//! `cargo xtask clients`: clients that others wrote, each installed in a folder of its own and run against
//! `lm serve` with the embedded model; their results are a table of docs/clients.md.

mod install;
mod results;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::load::{Lm, Server};
use crate::process;
use install::Runtime;
use results::Outcome;
use table::{CLIENTS, Client};

/// Scripts of the flows, with a runner for each language.
const SCRIPTS: &str = "crates/lm-server/tests/clients/more";
const DOCUMENT: &str = "docs/clients.md";

const EXAMPLES: &str = "\
Examples:
  cargo xtask clients
  cargo xtask clients litellm ai-sdk --lm target/release/lm";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Names of clients [default: all]
    names: Vec<String>,
    /// Program `lm` [default: built with --release]
    #[arg(long, value_name = "FILE")]
    lm: Option<PathBuf>,
}

/// Runs the clients, and replaces their rows of the table.
///
/// # Errors
/// When a name is unknown, the server does not start, or a flow fails.
pub fn run(args: &Args) -> Result<()> {
    let chosen =
        |client: &&Client| args.names.is_empty() || args.names.iter().any(|name| name == client.name);
    if let Some(name) = args.names.iter().find(|name| CLIENTS.iter().all(|client| client.name != **name)) {
        let names: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
        bail!("there is no client `{name}`; the clients are {}", names.join(", "));
    }
    let program = args.lm.as_ref().map(fs::canonicalize).transpose().context("--lm")?;
    if program.is_none() {
        process::run(&mut process::cargo(&["build", "--release", "--package", "lm-cli"]))?;
    }
    let lm = Lm { program, ..Lm::default() };
    let server = Server::start(&lm, &["--tools", "demo"])?;
    let mut failed = Vec::new();
    for client in CLIENTS.iter().filter(chosen) {
        let outcomes = flows(client, &lm, &server.addr)
            .unwrap_or_else(|error| vec![Outcome::failed("installation and start", &error)]);
        if outcomes.iter().any(|outcome| outcome.result == "failed") {
            failed.push(client.name);
        }
        let document = process::root().join(DOCUMENT);
        let text = fs::read_to_string(&document)?;
        fs::write(&document, results::replaced(&text, client, &outcomes)?)?;
    }
    if !failed.is_empty() {
        bail!("flows of {} failed: see {DOCUMENT}", failed.join(", "));
    }
    Ok(())
}

/// Installs a client and runs its script.
fn flows(client: &Client, lm: &Lm, addr: &str) -> Result<Vec<Outcome>> {
    let folder = process::root().join("target/clients-more").join(client.name);
    install::install(client, &folder)?;
    let mut command = script(client, &folder)?;
    let mut mcp = lm.command("mcp");
    mcp.arg("serve");
    let mcp: Vec<_> = std::iter::once(mcp.get_program()).chain(mcp.get_args()).collect();
    let mcp: Vec<_> = mcp.iter().map(|part| part.to_string_lossy()).collect();
    // Clients keep caches and settings in their own folder.
    command.current_dir(&folder).env("HOME", &folder).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("LM_URL", format!("http://{addr}")).env("LM_MCP", serde_json::to_string(&mcp)?);
    eprintln!("$ {}", client.script);
    let output = command.output().with_context(|| format!("cannot start {}", client.script))?;
    let outcomes = results::read(&String::from_utf8_lossy(&output.stdout));
    for outcome in &outcomes {
        eprintln!("{outcome}");
    }
    if !output.status.success() || outcomes.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        eprintln!("{errors}");
        bail!("{}", errors.lines().last().unwrap_or("the script printed nothing").trim());
    }
    Ok(outcomes)
}

/// Command that runs the script of a client.
fn script(client: &Client, folder: &Path) -> Result<Command> {
    let scripts = process::root().join(SCRIPTS);
    let mut command;
    match client.runtime() {
        Runtime::Python => {
            command = Command::new(folder.join("venv/bin/python"));
            command.arg(scripts.join(client.script));
        }
        Runtime::Node => {
            // Node finds packages beside the script.
            for file in ["flow.mjs", client.script] {
                fs::copy(scripts.join(file), folder.join(file)).with_context(|| file.to_owned())?;
            }
            command = Command::new("node");
            command.arg(folder.join(client.script));
        }
    }
    Ok(command)
}
