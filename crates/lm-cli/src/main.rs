#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod args;
mod commands;
mod events;
mod failure;
mod interrupt;
mod json_lines;
mod lines;
mod locate;
mod memory;
mod model;
mod npy;
mod ordered_parallel_map;
mod prompt_ids;
mod reader;
mod screen;
mod size;
mod tools;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    start_log();
    match commands::run(cli.command) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}

/// Starts logging to standard error if `LM_LOG` is set (`LM_LOG=debug`, `LM_LOG=lm_session=trace`).
fn start_log() {
    if let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env("LM_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
