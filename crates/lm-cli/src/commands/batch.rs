//! `lm batch`: chat completions over JSON Lines, run concurrently.

use std::io::{self, BufReader, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lm_openai::{ApiError, BatchLine, BatchReader, ChatCompletions, ConversationConfig};

use crate::args::RunArgs;
use crate::ordered_parallel_map::ordered_parallel_map;
use crate::{json_lines, model};

const EXAMPLES: &str = r#"Examples:
  lm batch ./Qwen3-0.6B --quantize q4 < requests.jsonl > answers.jsonl
  echo '{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}' | lm batch

A line is the body of an OpenAI chat completion: messages, tools, max_tokens, temperature, seed,
stop, n, logprobs, and so on; or a line of an OpenAI batch file:
  {"custom_id": …, "method": "POST", "url": "/v1/chat/completions", "body": {…}}

Each line has one answer, in the order of the lines: the completion object or {"error": {…}}; for a
line of a batch file {"id", "custom_id", "response": {"status_code", "body"}, "error"}. Blank lines
at the end are ignored. The exit code is 1 if a request failed."#;

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

/// # Errors
/// When the model cannot be loaded, input or output fails, or a request failed.
pub fn run(args: &Args) -> Result<()> {
    let engine = model::engine(args.model.as_deref(), &args.run)?;
    let mut config = ConversationConfig::from_engine(&engine);
    config.session.adapter = model::adapter(engine.model_info());
    let completions = ChatCompletions::new(engine, config);
    let mut reader = BatchReader::default();
    // A lock of standard input is not `Send`.
    let lines =
        json_lines::objects(BufReader::new(io::stdin())).map(|line| line.map(|line| reader.read(line)));
    let answer = |line: io::Result<BatchLine>| {
        line.map(|BatchLine { request, answer }| {
            let result = request.and_then(|request| complete(&completions, &request));
            (answer.json(&result).to_string(), result.is_ok())
        })
    };
    let progress = progress();
    let (mut answered, mut failed, mut out) = (0_usize, 0_usize, io::stdout().lock());
    ordered_parallel_map(lines, args.parallel, answer, |answer| {
        let (answer, succeeded) = answer.context("standard input cannot be read")?;
        answered += 1;
        failed += usize::from(!succeeded);
        progress.inc(1);
        progress.suspend(|| writeln!(out, "{answer}").and_then(|()| out.flush()))?;
        Ok(())
    })?;
    progress.finish_and_clear();
    ensure!(failed == 0, "{failed} of {answered} requests failed");
    Ok(())
}

/// Answers a request. A panic is the error of this request only.
fn complete(
    completions: &ChatCompletions,
    request: &lm_openai::ChatRequest,
) -> lm_openai::Result<serde_json::Value> {
    let answered = catch_unwind(AssertUnwindSafe(|| completions.complete(request)));
    answered.unwrap_or_else(|_| Err(ApiError::server("the request ended in an internal error")))
}

/// Progress counter of answered requests, on standard error if it is a terminal; the total is unknown.
fn progress() -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{spinner} {pos} answered, {per_sec}, {elapsed}");
    ProgressBar::with_draw_target(None, target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
