//! `lm replay`: recorded requests once more, and the first token that differs.

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use lm_session::{CancelHandle, Engine, RecordHeader, RecordReader, RecordedEnd, Replayed, RequestRecord};
use lm_tokenizer::TokenId;

use crate::args::{ModelPath, RunArgs};
use crate::counted::counted;
use crate::interrupt::Interrupt;
use crate::model;
use crate::screen::json_line;

const EXAMPLES: &str = "\
Examples:
  lm chat --tools demo --record talk.jsonl
  lm replay talk.jsonl
  lm replay requests.jsonl ./Qwen3-0.6B --quantize q4

--record FILE of the other commands writes the requests to the model: prompts as token ids, all parameters, seeds, and the tokens that \
came of them. The same build and model give the same tokens again, whatever ran beside.

The context length, sampling parameters, seeds, stop sequences and constraints are those of the record. The record does not hold the options \
that load the model: give the model, --quantize or --dtype, --kv, --lora and --device as for the command that wrote it. Without \
--quantize and --dtype the weights are loaded as stored. A record of another model, weight format, KV cache dtype, device or context \
length is refused. Requests with images or audio are not replayed: the record does not hold the files. Exit codes: 0 if the tokens of all \
replayed requests are equal, 1 if not, or if none was replayed.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Record of requests, which --record wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    model: ModelPath,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args, interrupt: &Interrupt) -> Result<ExitCode> {
    let name = || args.file.display().to_string();
    let record = RecordReader::new(BufReader::new(File::open(&args.file).with_context(name)?));
    let record = record.with_context(name)?;
    if args.run.context.is_none() {
        check_context(record.header(), args)?;
    }
    let mut run = args.run.clone();
    run.context = run.context.or(NonZeroUsize::new(record.header().context_tokens));
    let engine = model::exact_engine(args.model.get(), &run)?;
    check_model(record.header(), &engine, &args.file)?;
    let cancel = CancelHandle::new();
    let _guard = interrupt.during(cancel.clone());
    let mut counts = Counts::default();
    for (number, request) in (1..).zip(record) {
        let request = request.with_context(name)?;
        let outcome = match engine.replay(&request, &cancel) {
            Err(lm_session::Error::UnknownMedia { .. }) => None,
            outcome => Some(outcome.with_context(|| format!("request {number}"))?),
        };
        counts.count(outcome.as_ref());
        println!("request {number}: {}", describe(outcome.as_ref(), &request, &engine));
    }
    if counts.equal + counts.different + counts.left_out == 0 {
        bail!("{} holds no requests", args.file.display());
    }
    println!("{} equal, {} different, {} not replayed", counts.equal, counts.different, counts.left_out);
    if counts.equal + counts.different == 0 {
        bail!("no request of {} can be replayed", args.file.display());
    }
    Ok(if counts.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks that the model holds the context of the record, before it is loaded with that context.
fn check_context(header: &RecordHeader, args: &Args) -> Result<()> {
    let folder = model::folder_with(args.model.get(), args.run.load.mmproj.as_deref())?;
    let most = folder.config()?.max_position_embeddings;
    ensure!(
        header.context_tokens <= most,
        "{}: recorded with the model {} and a context of {} tokens, and {} holds {most}: give the model that recorded it",
        args.file.display(),
        header.model,
        header.context_tokens,
        folder.name(),
    );
    Ok(())
}

/// Checks that the record is of this model, and notes another build.
fn check_model(header: &RecordHeader, engine: &Engine, record: &Path) -> Result<()> {
    let here = engine.record_header();
    ensure!(
        header.fingerprint == here.fingerprint,
        "{}: recorded with the model {} of fingerprint {:.16}, this one is {} of fingerprint {:.16}; the model, its weight format, the \
         KV cache and the device have to be the same",
        record.display(),
        header.model,
        header.fingerprint,
        here.model,
        here.fingerprint,
    );
    ensure!(
        header.context_tokens == here.context_tokens,
        "{}: recorded with a context of {} tokens, this one has {}",
        record.display(),
        header.context_tokens,
        here.context_tokens,
    );
    if header.build != here.build {
        eprintln!("note: recorded by version {}, this is {}", header.build, here.build);
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    equal: usize,
    different: usize,
    left_out: usize,
}

impl Counts {
    fn count(&mut self, outcome: Option<&Replayed>) {
        match outcome {
            Some(Replayed::Equal) => self.equal += 1,
            None | Some(Replayed::Custom) => self.left_out += 1,
            Some(_) => self.different += 1,
        }
    }
}

/// Describes the outcome; `None` for a request with images or audio.
fn describe(outcome: Option<&Replayed>, request: &RequestRecord, engine: &Engine) -> String {
    let Some(outcome) = outcome else {
        return "not replayed: its prompt has images or audio, whose files the record does not hold"
            .to_owned();
    };
    let tokens = request.tokens.len();
    let token = |id: &Option<TokenId>| match id {
        None => "the end".to_owned(),
        Some(id) if (*id as usize) < engine.tokenizer().vocab_size() => {
            let text = String::from_utf8_lossy(engine.tokenizer().token_bytes(*id)).into_owned();
            format!("{id} {}", json_line(&text))
        }
        Some(id) => id.to_string(),
    };
    match outcome {
        Replayed::Equal => format!("{}, equal", counted(tokens, "token")),
        Replayed::Token { at, recorded, replayed } => format!(
            "differs at token {at} of {tokens}: {} in the record, {} here",
            token(recorded),
            token(replayed)
        ),
        Replayed::End { recorded, replayed } => {
            format!(
                "{}, equal; the end is {} in the record, {} here",
                counted(tokens, "token"),
                end(recorded),
                end(replayed)
            )
        }
        _ => "not replayed: a constraint or a filter of the caller took part".to_owned(),
    }
}

fn end(end: &RecordedEnd) -> String {
    json_line(end)
}
