#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod args;
mod cli;
mod commands;
mod events;
mod failure;
mod file_url;
mod interrupt;
mod json_file;
mod json_lines;
mod lines;
mod locate;
mod mcp;
mod media;
mod memory;
mod model;
mod npy;
mod ordered_parallel_map;
mod prompt_ids;
mod reader;
mod screen;
mod size;
mod suggestion;
mod tools;
mod unusable;
mod user_folders;
mod windows;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    start_log();
    match interrupt::Interrupt::install().and_then(|interrupt| cli.run(&interrupt)) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}

/// Log by default: warnings, without those of the libraries of MCP and of sounds, whose failures are errors of ours.
const DEFAULT_LOG: &str = "warn,rmcp=off,symphonia=off";

/// Starts logging to standard error: warnings, or what `LM_LOG` asks for (`LM_LOG=debug`, `LM_LOG=lm_session=trace`). Colours are for
/// terminals.
fn start_log() {
    let wanted = std::env::var("LM_LOG").ok();
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(DEFAULT_LOG)).unwrap_or_else(|error| {
        eprintln!("warning: LM_LOG: {error}");
        EnvFilter::new(DEFAULT_LOG)
    });
    let colours = io::stderr().is_terminal() && screen::colour_wanted();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(io::stderr);
    match wanted {
        Some(_) => log.init(),
        None => log.without_time().with_target(false).compact().init(),
    }
}
