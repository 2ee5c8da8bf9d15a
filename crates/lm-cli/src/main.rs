#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod args;
mod call_settings;
mod cli;
mod commands;
mod counted;
mod events;
mod failure;
mod file_url;
mod interrupt;
mod json_file;
mod json_lines;
mod kept_cache;
mod kept_message;
mod kept_store;
mod lines;
mod locate;
mod log;
mod mcp;
mod media;
mod memory;
mod model;
mod npy;
mod ordered_parallel_map;
mod path_check;
mod prefetch;
mod prefill_bar;
mod preset;
mod progress;
mod prompt_ids;
mod reader;
mod requantization;
mod screen;
mod share;
mod size;
mod suggestion;
mod text_file;
mod tools;
mod user_folders;
mod windows;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match preset::expanded(std::env::args_os().collect()) {
        Ok(args) => cli::Cli::parse_from(args),
        Err(error) => return failure::report(&error),
    };
    log::start();
    let outcome = interrupt::Interrupt::install().and_then(|interrupt| cli.run(&interrupt));
    prefetch::store();
    match outcome {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
