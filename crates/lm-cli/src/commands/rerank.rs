//! `lm rerank`: documents by their relevance to a query, one JSON line each.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use lm_api::{RerankRequest, Reranker};
use serde_json::{Value, json};

use crate::args::{RunArgs, refuse_model};
use crate::interrupt::Interrupt;
use crate::json_lines::{note_on_terminal, values};
use crate::model;

const EXAMPLES: &str = "\
A line is {\"index\", \"relevance_score\", \"document\": {\"text\"}}, the most relevant document first. The score is that of \
a cross-encoder such as bge-reranker for the pair, or the probability, from 0 to 1, with which the model answers yes rather than no to \
whether the document answers the query: for rerankers in the form of Qwen3-Reranker, whose prompt is used.

With - or without DOCUMENT, a line of standard input is a JSON string, or an object with the field text.

Examples:
  lm rerank 'Where is Paris?' 'In France.' 'It rains.' -m Qwen/Qwen3-Reranker-0.6B
  lm rerank 'Where is Paris?' --top-n 3 -m ./Qwen3-Reranker-0.6B < documents.jsonl";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The query
    query: String,
    /// Documents; - is standard input, as JSON Lines [default: -]
    #[arg(value_name = "DOCUMENT")]
    documents: Vec<String>,
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-Reranker-0.6B [default: the embedded model]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Number of documents to print [default: all]
    #[arg(long, value_name = "N")]
    top_n: Option<NonZeroUsize>,
    /// Task of a causal model, in a sentence [default: that of web searches]
    #[arg(long, value_name = "TEXT")]
    instruction: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

/// Ranks the documents.
///
/// # Errors
/// When the model cannot be loaded or is no reranker, the input is invalid, the output fails, or Ctrl-C ends
/// the run.
pub fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    args.run.refuse_generation_options("rerank")?;
    for text in [&args.query].into_iter().chain(&args.documents) {
        refuse_model(
            text,
            args.model.as_deref(),
            "a text",
            "`-` reads such a document as JSON from standard input",
        )?;
    }
    let documents = documents(&args.documents)?;
    let engine = model::exact_engine(args.model.as_deref(), &args.run)?;
    let mut request = RerankRequest::new(&args.query, documents);
    request.top_n = args.top_n.map(NonZeroUsize::get);
    request.return_documents = true;
    request.instruction.clone_from(&args.instruction);
    let adapter = model::adapter(&engine);
    let _guard = interrupt.during(request.cancel.clone());
    let (ranked, _) = Reranker::new(engine, adapter).rank(&request).map_err(|error| anyhow!("{error}"))?;
    let mut out = io::stdout().lock();
    for ranked in ranked {
        writeln!(out, "{}", ranked.json(&request))?;
    }
    Ok(())
}

/// Documents of the arguments; those of standard input in place of `-`.
fn documents(given: &[String]) -> Result<Vec<String>> {
    let stdin = [String::from("-")];
    let given = if given.is_empty() { &stdin[..] } else { given };
    let mut documents = Vec::new();
    for text in given {
        if text != "-" {
            documents.push(text.clone());
            continue;
        }
        note_on_terminal();
        for line in values(io::stdin().lock()) {
            let line = line.context("the input cannot be read")?.map_err(|message| anyhow!(message))?;
            documents.push(document(line)?);
        }
    }
    match documents.len() {
        0 => Err(anyhow!("there are no documents, expected at least one")),
        _ => Ok(documents),
    }
}

fn document(line: Value) -> Result<String> {
    let text = line.get("text").cloned().unwrap_or(line);
    match text {
        Value::String(text) => Ok(text),
        other => Err(anyhow!("expected a string or an object with `text`, got {}", json!(other))),
    }
}
