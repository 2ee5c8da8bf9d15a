//! `lm batch`: chat completions over JSON Lines, run concurrently.

use std::io::{self, BufReader, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::RunArgs;
use crate::chat_completion::{self, Refusal};
use crate::in_order::in_order;
use crate::{json_lines, model};

const EXAMPLES: &str = r#"Examples:
  lm batch ./Qwen3-0.6B --quantize q4 < requests.jsonl > answers.jsonl
  echo '{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}' | lm batch

A line is the body of an OpenAI chat completion: messages, tools, max_tokens, temperature,
seed, stop, and so on. An answer is the completion object, or {"error": {…}}. Answers stand in
the order of the lines."#;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model]
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Number of concurrent requests
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(8).expect("is not zero"))]
    parallel: NonZeroUsize,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let engine = model::engine(args.model.as_deref(), &args.run)?;
    let progress = progress();
    let answer = |line: io::Result<Result<_, _>>| {
        line.map(|line| match line {
            Ok(body) => chat_completion::answer(&engine, body),
            Err(message) => Refusal::of_body(message).to_json(),
        })
    };
    let mut out = io::stdout().lock();
    // A lock of standard input is not `Send`.
    let lines = json_lines::lines(BufReader::new(io::stdin()));
    in_order(lines, args.parallel, answer, |answer| {
        let answer = answer.context("standard input cannot be read")?;
        progress.inc(1);
        progress.suspend(|| writeln!(out, "{answer}").and_then(|()| out.flush()))?;
        Ok(())
    })?;
    progress.finish_and_clear();
    Ok(())
}

/// Progress counter of answered requests, on standard error if it is a terminal; the total is unknown.
fn progress() -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{spinner} {pos} answered, {per_sec}, {elapsed}");
    ProgressBar::with_draw_target(None, target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
