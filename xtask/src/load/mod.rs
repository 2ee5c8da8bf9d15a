//! `cargo xtask load`: load and overhead of `lm serve` on this machine: many streams, a full queue, a slow
//! reader, a shutdown, and the tokens a second through HTTP beside the rate of the engine alone.

mod clients;
mod figure;
mod overhead;
mod program;
mod queue;
mod reply;
mod requests;
mod shutdown;
mod slow_reader;
mod streams;
mod wire;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::bench::shape;
use crate::process;
use figure::Figure;
pub use program::{Lm, Server};
pub use wire::Connection;

const EXAMPLES: &str = "\
Examples:
  cargo xtask load
  cargo xtask load streams --seconds 10
  cargo xtask load overhead --shape qwen3-0.6b --quantize q4 --tokens 64 --requests 2 --json after.jsonl";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenarios [default: all]
    scenarios: Vec<Scenario>,
    /// Model folder [default: the embedded model]
    #[arg(long)]
    model: Option<PathBuf>,
    /// Shape of a model with random weights, as in `cargo xtask bench`
    #[arg(long, conflicts_with = "model")]
    shape: Option<String>,
    /// Quantise the weights while loading: q4, q8
    #[arg(long)]
    quantize: Option<String>,
    /// Duration of `streams`; `queue` takes a quarter of it
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Number of clients in `streams`
    #[arg(long, default_value_t = 32)]
    streams: usize,
    /// Capacity of the queue in `queue`, which has ten times as many clients
    #[arg(long, default_value_t = 16)]
    queue: usize,
    /// Tokens of a reply of fixed length
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Replies of each stream in a turn of `overhead`
    #[arg(long, default_value_t = 8)]
    requests: usize,
    /// Turns of each measurement in `slow-reader` and `overhead`; the median is shown
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Write the figures to a file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Concurrent streams with tools, some of whose clients leave
    Streams,
    /// More clients than the queue takes
    Queue,
    /// Streams beside a client that reads one byte a second
    SlowReader,
    /// SIGTERM during streams
    Shutdown,
    /// Tokens a second through HTTP and without it
    Overhead,
}

/// Runs the scenarios.
///
/// # Errors
/// When a scenario cannot run, or a figure misses its bound.
pub fn run(args: &Args) -> Result<()> {
    process::run(&mut process::cargo(&["build", "--release", "--package", "lm-cli"]))?;
    let model = match &args.shape {
        Some(shape) => Some(shape::checkpoint(shape)?),
        None => args.model.as_ref().map(std::path::absolute).transpose()?,
    };
    let mut json = args.json.as_ref().map(fs::File::create).transpose()?;
    let mut missed = 0;
    println!("{}", figure::HEADING);
    for scenario in Scenario::value_variants() {
        if !args.scenarios.is_empty() && !args.scenarios.contains(scenario) {
            continue;
        }
        let lm = program::Lm { program: None, model: model.clone(), quantize: args.quantize.clone() };
        for figure in figures(*scenario, &lm, args)? {
            println!("{figure}");
            missed += usize::from(figure.is_missed());
            if let Some(file) = &mut json {
                writeln!(file, "{}", figure.json())?;
            }
        }
    }
    if missed > 0 {
        bail!("{missed} figures miss their bounds");
    }
    Ok(())
}

fn figures(scenario: Scenario, lm: &program::Lm, args: &Args) -> Result<Vec<Figure>> {
    match scenario {
        Scenario::Streams => streams::run(lm, args.streams, args.seconds),
        Scenario::Queue => queue::run(lm, args.queue, args.seconds.div_ceil(4)),
        Scenario::SlowReader => slow_reader::run(lm, args.runs),
        Scenario::Shutdown => shutdown::run(lm, 4 * args.tokens),
        Scenario::Overhead => overhead::run(lm, args.tokens, args.requests, args.runs),
    }
}
