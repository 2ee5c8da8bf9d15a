//! `lm embed`: embeddings of texts, one JSON line each.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, bail};
use lm_api::EmbeddingEncoding;
use lm_session::{CancelHandle, EmbedInput, EmbedParams, EmbeddingConfig, Engine, Error, Pooling};
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
their cosine similarity. A folder with modules.json of sentence-transformers decides the pooling, layers after it, whether vectors have \
length 1, the maximum number of tokens, and the prompts.

With - or without TEXT, a line of standard input is a JSON string, a JSON list of token ids, or an object:
  text       the text
  ids        token ids in its place, used as they are

Texts get the prompt and the tokens that tokenizer.json puts around one, such as BOS; special tokens spelled in them are plain text. \
Each line has one answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  lm embed 'The weather in Paris' 'Paris in spring' -m Qwen/Qwen3-0.6B
  lm embed --prompt query 'Where is it warm?' -m Qwen/Qwen3-Embedding-0.6B
  lm embed --prompt document -m ./Qwen3-Embedding-0.6B < texts.jsonl > vectors.jsonl
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
    /// Reduction of the tokens' hidden states to one vector [default: the model's own, or else mean]
    #[arg(long, value_enum)]
    pooling: Option<PoolingArg>,
    /// Prompt before each text: the name of one of the model's (query, document), or a text [default: the
    /// model's default]
    #[arg(long, value_name = "NAME|TEXT")]
    prompt: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PoolingArg {
    /// Mean over all tokens
    Mean,
    /// The last token
    Last,
    /// The first token
    Cls,
}

impl From<PoolingArg> for Pooling {
    fn from(arg: PoolingArg) -> Self {
        match arg {
            PoolingArg::Mean => Self::Mean,
            PoolingArg::Last => Self::Last,
            PoolingArg::Cls => Self::Cls,
        }
    }
}

/// Embeds each text.
///
/// # Errors
/// When the model cannot be loaded or has no such prompt, input or output fails, Ctrl-C ends a text, or a
/// text was answered with an error.
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
    let prompt = prompt(engine.embedding_config(), args.prompt.as_deref())?;
    let cancel = CancelHandle::new();
    let params = EmbedParams {
        pooling: args.pooling.map(Pooling::from),
        normalize: None,
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
        answer(&engine, prompt, &params, &line)
    })
}

/// Prompt of this name, or with this text; a single word is a name.
fn prompt<'a>(config: &'a EmbeddingConfig, given: Option<&'a str>) -> Result<&'a str> {
    let Some(given) = given else { return Ok(config.default_prompt()) };
    let is_word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    match config.prompt(given) {
        Some(prompt) => Ok(prompt),
        None if given.is_empty() || !is_word(given) => Ok(given),
        None => bail!(
            "--prompt {given}: the model has no prompt of this name, expected one of {}, or a text of several words",
            config.prompt_names().join(", ")
        ),
    }
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

fn answer(engine: &Engine, prompt: &str, params: &EmbedParams, line: &Value) -> Result<Value> {
    let input = match Input::read(line) {
        Ok(Input::Ids(ids)) => Ok(ids.into()),
        Ok(Input::Text(text)) => EmbedInput::of_text(engine, prompt, &text),
        Err(cause) => return Ok(bad_line(cause)),
    };
    let input = match input {
        Ok(input) => input,
        Err(cause) => return Ok(error("tokenizer", format_args!("{:#}", anyhow::Error::from(cause)))),
    };
    if let Err(cause) = prompt_ids::check_known(&input.ids, engine.model_info().logits_width) {
        return Ok(error("unknown_id", cause));
    }
    embedding(engine, params, &input)
}

fn embedding(engine: &Engine, params: &EmbedParams, input: &EmbedInput) -> Result<Value> {
    let tokens = input.ids.len();
    match engine.embed_input(input, params) {
        Ok(vector) => Ok(json!({"embedding": EmbeddingEncoding::Float.json(&vector), "tokens": tokens})),
        Err(Error::Cancelled) => Err(Error::Cancelled.into()),
        Err(cause) => Ok(error("embedding", format_args!("{:#}", anyhow::Error::from(cause)))),
    }
}
