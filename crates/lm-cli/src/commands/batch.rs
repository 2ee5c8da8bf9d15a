//! `lm batch`: chat completions and embeddings over JSON Lines, run concurrently.

use std::io::{self, BufReader, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lm_api::{
    ApiError, BatchLine, BatchReader, BatchRequest, CancelHandle, ChatCompletions, ConversationConfig,
    Embeddings, Value, find_model,
};

use crate::args::{CallArgs, ModelPath, RunArgs, TemplateArgs, numbers};
use crate::interrupt::{self, Interrupt};
use crate::ordered_parallel_map::{Answer, ordered_parallel_map};
use crate::{json_lines, model};

const EXAMPLES: &str = r#"Examples:
  lm batch ./Qwen3-0.6B --quantize q4 < requests.jsonl > answers.jsonl
  echo '{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}' | lm batch

A line is the body of an OpenAI chat completion: messages, tools, max_tokens, temperature, seed,
stop, n, logprobs, and so on; or a line of an OpenAI batch file:
  {"custom_id": …, "method": "POST", "url": "/v1/chat/completions", "body": {…}}
A body with `input`, or the url /v1/embeddings, asks for embeddings: input (text, token ids, or an
array of either), encoding_format (float or base64), dimensions, pooling (mean, last or cls), normalize, prompt_name, prompt.

Each line has one answer, in the order of the lines: the response body or {"error": {…}}; for a
line of a batch file {"id", "custom_id", "response": {"status_code", "body"}, "error"}. A line that
is not JSON gets an error in the format (body or batch file) of the previous line; an invalid first
line gets the fields of both formats. A custom_id that an earlier line has is an error. Blank lines at the end are ignored.

A line may name the model, by its own name or an --alias; another `model` is an error.

The exit code is 1 if a request failed. After Ctrl-C every line that was read has an answer: that
of a request that was running is an error of the code cancelled; the exit code is 130."#;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Further name of the model, for requests that name another one; may be repeated
    #[arg(long, value_name = "NAME")]
    alias: Vec<String>,
    /// Number of concurrent requests
    #[arg(long, value_name = "N", default_value = "8", value_parser = numbers::threads, allow_negative_numbers = true)]
    parallel: NonZeroUsize,
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Answers the requests of standard input; returns the exit code.
///
/// # Errors
/// When the model cannot be loaded, input or output fails, or a request failed.
pub fn run(args: &Args, interrupt: &Interrupt) -> Result<ExitCode> {
    let folder = model::folder_with(args.model.get(), args.run.load.mmproj.as_deref())?;
    let template = args.template.of(&folder)?;
    let engine = model::engine(args.model.get(), &args.run)?;
    let mut config = ConversationConfig { template, ..ConversationConfig::from_engine(&engine) };
    config.session.adapter = model::adapter(&engine);
    let config = args.calls.of(args.model.get())?.apply(config);
    let endpoints = Endpoints {
        names: [&[engine.name().to_owned()], args.alias.as_slice()].concat(),
        embeddings: Embeddings::new(engine.clone(), config.session.adapter),
        completions: ChatCompletions::new(engine, config),
    };
    let mut reader = BatchReader::default();
    json_lines::note_on_terminal();
    // A lock of standard input is not `Send`.
    let lines = json_lines::objects(BufReader::new(io::stdin()))
        .map(move |line| line.map(|line| reader.read(line.map(Value::Object))));
    let answer = move |line: io::Result<BatchLine>| {
        line.map(|BatchLine { request, answer }| {
            let result = request.and_then(|request| endpoints.answer(request));
            (answer.json(&result).to_string(), result.is_ok())
        })
    };
    let cancel = CancelHandle::new();
    let _guard = interrupt.during(cancel.clone());
    let progress = progress();
    let mut count = Count::default();
    let mut out = io::stdout().lock();
    ordered_parallel_map(lines, args.parallel, unfinished, answer, &cancel, |answer| {
        let (line, failed) = match answer {
            Answer::Finished(line) => (line, &mut count.failed),
            Answer::Unfinished(line) => (line, &mut count.unfinished),
        };
        let (text, succeeded) = line.context("standard input cannot be read")?;
        *failed += usize::from(!succeeded);
        count.lines += 1;
        progress.inc(1);
        progress.suspend(|| writeln!(out, "{text}").and_then(|()| out.flush()))?;
        Ok(())
    })?;
    progress.finish_and_clear();
    count.end(&cancel)
}

/// Numbers of lines.
#[derive(Default)]
struct Count {
    /// Answered lines.
    lines: usize,
    /// Lines among them with an error as their answer.
    failed: usize,
    /// Lines among them whose request was still running.
    unfinished: usize,
}

impl Count {
    fn end(&self, cancel: &CancelHandle) -> Result<ExitCode> {
        let Self { lines, failed, unfinished } = *self;
        if cancel.is_cancelled() {
            eprintln!("{}", self.interrupted());
            return Ok(interrupt::EXIT_CODE.into());
        }
        ensure!(unfinished == 0, "{unfinished} of {lines} requests ended in an internal error");
        ensure!(failed == 0, "{failed} of {lines} requests failed");
        Ok(ExitCode::SUCCESS)
    }

    /// Line on the end of an interrupted batch.
    fn interrupted(&self) -> String {
        let Self { lines, failed, unfinished } = *self;
        let mut line = format!("interrupted: {} of {lines} requests are answered", lines - unfinished);
        if failed > 0 {
            line += &format!(", {failed} of them with an error");
        }
        if unfinished > 0 {
            line += &format!("; {unfinished} were running, and have an error of the code `cancelled`");
        }
        format!("{line}; lines after line {lines}, if there are any, were not read")
    }
}

/// Answer to a line whose request is not finished.
fn unfinished(line: &io::Result<BatchLine>) -> io::Result<(String, bool)> {
    let BatchLine { answer, .. } = line.as_ref().map_err(|error| error.kind())?;
    let cancelled = ApiError::from(lm_conversation::Error::Cancelled).with_code("cancelled");
    Ok((answer.json(&Err(cancelled)).to_string(), false))
}

struct Endpoints {
    /// Names of the model.
    names: Vec<String>,
    completions: ChatCompletions,
    embeddings: Embeddings,
}

impl Endpoints {
    /// Answers a request. A panic is the error of this request only.
    fn answer(&self, request: BatchRequest) -> lm_api::Result<Value> {
        self.check(&request)?;
        let answer = || match request {
            BatchRequest::Chat(request) => self.completions.complete(*request),
            BatchRequest::Embeddings(request) => self.embeddings.create(&request),
        };
        let answered = catch_unwind(AssertUnwindSafe(answer));
        answered.unwrap_or_else(|_| Err(ApiError::server("the request ended in an internal error")))
    }

    /// Checks the model that a request names.
    fn check(&self, request: &BatchRequest) -> lm_api::Result<()> {
        let model = match request {
            BatchRequest::Chat(request) => request.model.as_deref(),
            BatchRequest::Embeddings(request) => request.model.as_deref(),
        };
        find_model(&[&self.names], |names| names.iter().map(String::as_str), model).map(drop)
    }
}

/// Progress counter of answered requests, on standard error if it is a terminal; the total is unknown.
fn progress() -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{spinner} {pos} answered, {per_sec}, {elapsed}");
    ProgressBar::with_draw_target(None, target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
