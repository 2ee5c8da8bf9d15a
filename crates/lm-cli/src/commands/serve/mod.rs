//! `lm serve`: models for the clients of OpenAI's, Anthropic's and Ollama's APIs, over HTTP.

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use lm_api::CancelHandle;
use lm_server::{ApiKeys, EndSignal, Error, Preset, Server, ServerConfig};
use lm_store::Store;
use serde_json::Value;

use crate::args::{CallArgs, RunArgs, TemplateArgs, listen, numbers, usage};
use crate::failure;
use crate::interrupt::Interrupt;
use crate::kept_store::KeepArgs;
use crate::mcp::McpCallArgs;
use crate::{preset, text_file};

mod downloads;
mod models;
mod tools;

const EXAMPLES: &str = "\
Examples:
  lm serve                                      the embedded model on http://127.0.0.1:8080
  lm serve Qwen/Qwen3-0.6B --quantize q4 --alias gpt-4o-mini
  lm serve Qwen/Qwen3-0.6B ./gemma-3-1b-it --memory 4GB --keep-alive 600
  lm serve --all                                all models of this machine
  lm serve --tools demo --mcp 'npx -y @modelcontextprotocol/server-everything'
  LM_API_KEY=secret lm serve ./Qwen3-0.6B --listen 0.0.0.0:8080 --allow-host llm.example.com

  curl http://127.0.0.1:8080/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'

A browser that opens http://127.0.0.1:8080 shows a chat page. Clients of OpenAI's API take the address http://127.0.0.1:8080/v1, \
those of Anthropic and Ollama http://127.0.0.1:8080, with any key. Other paths: /tokenize, /detokenize, /apply-template, /health, /ready, \
/version, /metrics.

Only this machine can connect, unless --listen says otherwise, which needs a key. Ctrl-C or SIGTERM lets running requests end; a second \
Ctrl-C does not.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    models: models::ModelPaths,
    /// Address or port of this machine to listen on
    #[arg(
        long,
        short,
        visible_alias = "port",
        alias = "http",
        value_name = "[HOST:]PORT",
        default_value = "127.0.0.1:8080",
        value_parser = listen::address
    )]
    listen: SocketAddr,
    /// Unload a model that was idle for this time, in seconds; the next request loads it again [default:
    /// never]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::count, allow_negative_numbers = true)]
    keep_alive: Option<NonZeroUsize>,
    /// Further name of the first model, for clients with a fixed model name; may be repeated
    #[arg(long, value_name = "NAME")]
    alias: Vec<String>,
    /// Number of requests that run at the same time; further ones wait
    #[arg(long, value_name = "N", default_value = "64", value_parser = numbers::count, allow_negative_numbers = true)]
    parallel: NonZeroUsize,
    /// Number of waiting requests; further ones are answered with 429
    #[arg(long, value_name = "N", default_value = "256", value_parser = numbers::count, allow_negative_numbers = true)]
    queue: NonZeroUsize,
    /// Tools that the server runs for its clients and its page: demo is get_weather, get_stock_price, a
    /// calculator and the current time
    #[arg(long, value_name = "demo", value_parser = ["demo"])]
    tools: Option<String>,
    #[command(flatten)]
    mcp: McpCallArgs,
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
struct AccessArgs {
    /// API key; each request needs one; may be repeated
    #[arg(long, value_name = "KEY", env = "LM_API_KEY", hide_env_values = true)]
    api_key: Vec<String>,
    /// File of API keys, one a line
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Let other machines use the server without a key
    #[arg(long)]
    insecure: bool,
    /// Host name of this server, in addition to localhost and IP addresses; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Origin of web pages that may use the server, such as `https://chat.example.com`, in addition to those
    /// of this machine; * is all
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Let clients and the page download models by name, as `lm pull` does. Without it only those of this
    /// machine can, on an address that no other one reaches
    #[arg(long)]
    allow_downloads: bool,
}

/// Serves the models until Ctrl-C or SIGTERM.
///
/// # Errors
/// When a model cannot be opened or loaded, the address cannot be listened on, or a key is invalid or
/// missing.
pub fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    let config = ServerConfig { tools: tools::tools(args.tools.is_some(), &args.mcp)?, ..args.config()? };
    let (mut models, further) = models::models(args)?;
    // With options for a single model there are no further ones.
    let downloads = further.ok().filter(|_| args.downloads()).map(downloads::downloads);
    let config = ServerConfig { downloads, ..config };
    let first = models.remove(0);
    models.insert(0, args.alias.iter().fold(first, |model, name| model.alias(name)));
    // The first Ctrl-C is the server's, the second one ends the program.
    let ended = CancelHandle::new();
    // The guard is never dropped: the handler may count that first Ctrl-C when the server has already ended.
    std::mem::forget(interrupt.during(ended.clone()));
    let names: Vec<_> = models.iter().map(|model| model.name().to_owned()).collect();
    let listening = |server: &Server| {
        eprintln!(
            "serving {}, the API at /v1, a chat page at {}; Ctrl-C ends",
            names.join(", "),
            server.url()
        )
    };
    let ending = |signal| {
        // After SIGTERM, the next Ctrl-C is the second one. After Ctrl-C, the program's own handler may still
        // be about to count it.
        if signal == EndSignal::Terminate {
            ended.cancel();
        }
        eprintln!("ending when the running requests have ended; Ctrl-C ends at once");
    };
    lm_server::run(models, config, listening, ending).map_err(explained)
}

impl Args {
    fn config(&self) -> Result<ServerConfig> {
        let AccessArgs { insecure, allow_host, allow_origin, .. } = &self.access;
        let config = ServerConfig {
            addr: self.listen,
            keys: ApiKeys::new(self.access.keys()?)?,
            insecure: *insecure,
            allowed_hosts: allow_host.clone(),
            allowed_origins: allow_origin.clone(),
            parallel: self.run.engine_settings().max_running_requests,
            store: self.store()?,
            documents: text_file::reader(),
            presets: presets(),
            ..ServerConfig::default()
        };
        config.check().map_err(explained)?;
        Ok(config)
    }
}

impl Args {
    /// Returns true if clients may download models.
    fn downloads(&self) -> bool {
        self.access.allow_downloads || self.listen.ip().is_loopback()
    }

    /// Store of the page's conversations. A server that other machines reach without a key keeps none: they
    /// would see those of its user.
    ///
    /// # Errors
    /// When the file of `--store` cannot be opened; otherwise a warning says that nothing is kept.
    fn store(&self) -> Result<Option<Arc<Store>>> {
        let has_keys = !self.access.keys()?.is_empty();
        if self.keep.no_store || !(has_keys || self.listen.ip().is_loopback()) {
            return Ok(None);
        }
        match self.keep.file.open() {
            Ok(store) => Ok(Some(Arc::new(store))),
            Err(error) if self.keep.file.is_given() => Err(error),
            Err(error) => {
                eprintln!("warning: conversations are kept in the browser: {}", failure::message(&error));
                Ok(None)
            }
        }
    }
}

/// Presets of the page. One that cannot be read is left out, with a warning.
fn presets() -> Vec<Preset> {
    let read = |name: String| {
        let options = preset::table(&name).and_then(|table| Ok(serde_json::to_value(table)?));
        match options {
            Ok(Value::Object(options)) => Some(Preset { name, options }),
            Ok(_) => None,
            Err(error) => {
                eprintln!("warning: {}", failure::message(&error));
                None
            }
        }
    };
    preset::names().into_iter().filter_map(read).collect()
}

impl AccessArgs {
    fn keys(&self) -> Result<Vec<String>> {
        let file = self.api_key_file.as_ref().map(|path| {
            fs::read_to_string(path).with_context(|| format!("--api-key-file {}", path.display()))
        });
        let text = file.transpose()?.unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        Ok(self.api_key.iter().cloned().chain(lines).collect())
    }
}

/// Adds the options that help.
fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::OpenAddress { addr } => usage(format!(
            "--listen {addr}: other machines can reach this address: set a key with --api-key or LM_API_KEY, or permit it without one \
             with --insecure"
        )),
        error => error.into(),
    }
}
