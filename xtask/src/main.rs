//! The repository's developer and CI commands: `cargo xtask <command>`.
//!
//! Builds in seconds and depends on no lm crate: commands that need the engine run `lm`, a benchmark or a
//! test.

#![forbid(unsafe_code)]

mod bench;
mod check;
mod clients;
mod convert;
mod cpu_paths;
mod document;
mod emulate;
mod fuzz;
mod golden;
mod imports;
mod load;
mod matrix;
mod process;
mod real;
mod rust_source;
mod sanitize;
mod test_programs;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The repository's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check house rules: layers, registries, sizes, links
    Tidy(tidy::Args),
    /// Check formatting, lints, docs, feature sets, CPU paths, licences, packages
    Check(check::Args),
    /// Run the tests of the kernels under AddressSanitizer and Valgrind, on each CPU path
    Sanitize(sanitize::Args),
    /// Run the tests of the kernels for AArch64 under QEMU
    Emulate,
    /// Compare the committed goldens with our output, or regenerate reference data
    Golden(golden::Args),
    /// Run the conformance matrix of tool calls under random logits: every schema, dialect, budget and tool
    /// choice
    Matrix(matrix::Args),
    /// Run every fuzz target for a while
    Fuzz(fuzz::Args),
    /// Benchmark a model of a public shape against the limits of this machine, or the kernels alone
    Bench(bench::Args),
    /// Measure load and overhead of the HTTP server
    Load(load::Args),
    /// Run clients that others wrote against the HTTP server
    Clients(clients::Args),
    /// Measure trained models: calls, formatted answers, perplexity
    Real(real::Args),
    /// Write a quantised copy of a Hugging Face folder
    Convert(convert::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Tidy(args) => tidy::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Sanitize(args) => sanitize::run(&args),
        Command::Emulate => emulate::run(),
        Command::Golden(args) => golden::run(&args),
        Command::Matrix(args) => matrix::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Clients(args) => clients::run(&args),
        Command::Real(args) => real::run(&args),
        Command::Convert(args) => convert::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
