//! `lm embed`: embeddings of texts, one JSON line each.

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use lm_api::EmbeddingEncoding;
use lm_session::{CancelHandle, EmbedParams, Engine, Error, Pooling, TextSegment};
use lm_tokenizer::TokenId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{RunArgs, refuse_model};
use crate::interrupt::Interrupt;
use crate::json_lines::{answer_lines, bad_line, error, note_on_terminal, values};
use crate::{model, prompt_ids, suggestion};

const EXAMPLES: &str = "\
The answer to a text is {\"embedding\": [..], \"tokens\": N} or {\"error\": {\"kind\", \"message\"}}. Kinds: tokenizer, unknown_id, \
embedding, bad_line. The vector is the model's last hidden state, pooled over the tokens, and has length 1: the dot product of two is \
their cosine similarity.

With - or without TEXT, a line of standard input is a JSON string, a JSON list of token ids, or an object:
  text       the text
  ids        token ids in its place, used as they are

Texts get the tokens that tokenizer.json puts around one, such as BOS; special tokens spelled in them are plain text. Each line has one \
answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  lm embed 'The weather in Paris' 'Paris in spring' -m Qwen/Qwen3-0.6B
  lm embed --pooling last -m ./Qwen3-Embedding-0.6B < texts.jsonl > vectors.jsonl
  echo '{\"text\": \"Hello\"}' | lm embed - | jq '.embedding | length'

`lm batch` computes many at a time, in the form of OpenAI's embeddings.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Texts; - is standard input, as JSON Lines [default: -]
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Reduction of the tokens' hidden states to one vector
    #[arg(long, value_enum, default_value_t = PoolingArg::Mean)]
    pooling: PoolingArg,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PoolingArg {
    /// Mean over all tokens
    Mean,
    /// The last token
    Last,
}

/// Embeds each text.
///
/// # Errors
/// When the model cannot be loaded, input or output fails, Ctrl-C ends a text, or a text was answered with an
/// error.
pub fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    args.run.refuse_generation_options("embed")?;
    for text in &args.texts {
        refuse_model(
            text,
            args.model.as_deref(),
            "a text",
            "`-` reads such a text as JSON from standard input",
        )?;
    }
    let engine = model::exact_engine(args.model.as_deref(), &args.run)?;
    let cancel = CancelHandle::new();
    let params = EmbedParams {
        pooling: match args.pooling {
            PoolingArg::Mean => Pooling::Mean,
            PoolingArg::Last => Pooling::Last,
        },
        adapter: model::adapter(&engine),
        cancel: cancel.clone(),
    };
    let stdin = [String::from("-")];
    let texts = if args.texts.is_empty() { &stdin[..] } else { &args.texts };
    let lines = texts.iter().flat_map(|text| -> Box<dyn Iterator<Item = _>> {
        match text.as_str() {
            "-" => {
                note_on_terminal();
                Box::new(values(io::stdin().lock()))
            }
            text => Box::new(std::iter::once(Ok(Ok(Value::from(text))))),
        }
    });
    answer_lines(lines, io::stdout().lock(), |line| {
        // While a line is waited for, Ctrl-C ends the program.
        let _guard = interrupt.during(cancel.clone());
        answer(&engine, &params, &line)
    })
}

/// A text, or ids in its place.
enum Input {
    Text(String),
    Ids(Vec<TokenId>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: Option<String>,
    ids: Option<Value>,
}

impl Input {
    fn read(line: &Value) -> Result<Self, String> {
        let line = match line {
            Value::Object(_) => Line::deserialize(line).map_err(|error| suggestion::of_json(&error))?,
            Value::String(text) => Line { text: Some(text.clone()), ids: None },
            ids => Line { text: None, ids: Some(ids.clone()) },
        };
        match line {
            Line { text: Some(text), ids: None } => Ok(Self::Text(text)),
            Line { text: None, ids: Some(ids @ Value::Array(_)) } => prompt_ids::ids(&ids).map(Self::Ids),
            _ => Err("expected a string, a list of token ids, or an object with `text` or `ids`".to_owned()),
        }
    }
}

fn answer(engine: &Engine, params: &EmbedParams, line: &Value) -> Result<Value> {
    let ids = match Input::read(line) {
        Ok(Input::Ids(ids)) => Ok(ids),
        Ok(Input::Text(text)) => engine.tokenizer().encode_with_special_tokens(TextSegment::Content(&text)),
        Err(cause) => return Ok(bad_line(cause)),
    };
    let ids = match ids {
        Ok(ids) => ids,
        Err(cause) => return Ok(error("tokenizer", format_args!("{:#}", anyhow::Error::from(cause)))),
    };
    if let Err(cause) = prompt_ids::check_known(&ids, engine.model_info().logits_width) {
        return Ok(error("unknown_id", cause));
    }
    embedding(engine, params, &ids)
}

fn embedding(engine: &Engine, params: &EmbedParams, ids: &[TokenId]) -> Result<Value> {
    match engine.embed(ids, params) {
        Ok(vector) => Ok(json!({"embedding": EmbeddingEncoding::Float.json(&vector), "tokens": ids.len()})),
        Err(Error::Cancelled) => Err(Error::Cancelled.into()),
        Err(cause) => Ok(error("embedding", format_args!("{:#}", anyhow::Error::from(cause)))),
    }
}
