//! `lm tokenize`: encodes texts to token ids, over JSON Lines.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use lm_tokenizer::{TextSegment, TokenId, TokenKind, Tokenizer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{ModelPath, PromptSource};
use crate::json_lines::{answer_values, bad_line, error};
use crate::{model, suggestion};

const EXAMPLES: &str = "\
A line of standard input is a JSON string, or an object:
  text       the text
  content    true: as --content

The answer is {\"ids\": [..]} or {\"error\": {\"kind\", \"message\"}}. Kinds: tokenizer, bad_line.
No token is added before or after a text.
Each line has one answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  echo '\"Hello, world\"' | lm tokenize ./Qwen3-0.6B
  lm tokenize ./Qwen3-0.6B --tokens < texts.jsonl
  lm tokenize --text 'Hello, world'";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Print the ids and pieces of TEXT in a readable form and exit
    #[arg(long, short = 'p', value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "file")]
    text: Option<String>,
    /// The same with the text of FILE; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Encode special tokens in the text as plain text, as in a user's message
    #[arg(long)]
    content: bool,
    /// Add `tokens`: each token's id, text and kind (text, added, special)
    #[arg(long, conflicts_with_all = ["text", "file"])]
    tokens: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let tokenizer = model::folder(args.model.get())?.tokenizer()?;
    let source = match (&args.text, &args.file) {
        (Some(text), _) => Some(PromptSource::Text(text)),
        (None, Some(file)) => Some(PromptSource::of_file(file)),
        (None, None) => None,
    };
    match source {
        Some(source) => show(&tokenizer, &encode(&tokenizer, &source.read()?, args.content)?),
        None => answer_values(|line| answer(args, &tokenizer, &line)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    #[serde(default)]
    content: bool,
}

fn answer(args: &Args, tokenizer: &Tokenizer, line: &Value) -> Value {
    let line = match line {
        Value::String(text) => Line { text: text.clone(), content: false },
        Value::Object(_) => match Line::deserialize(line) {
            Ok(line) => line,
            Err(cause) => return bad_line(suggestion::of_json(&cause)),
        },
        _ => return bad_line("expected a string, or an object with `text`"),
    };
    match encode(tokenizer, &line.text, line.content || args.content) {
        Ok(ids) if args.tokens => {
            let tokens: Vec<Value> = ids.iter().map(|&id| token(tokenizer, id)).collect();
            json!({"ids": ids, "tokens": tokens})
        }
        Ok(ids) => json!({"ids": ids}),
        Err(cause) => error("tokenizer", format_args!("{:#}", anyhow::Error::from(cause))),
    }
}

fn encode(tokenizer: &Tokenizer, text: &str, content: bool) -> lm_tokenizer::Result<Vec<TokenId>> {
    let segment = if content { TextSegment::Content(text) } else { TextSegment::Template(text) };
    tokenizer.encode_segments(&[segment])
}

/// Converts a token to JSON; incomplete characters become U+FFFD in its text.
fn token(tokenizer: &Tokenizer, id: TokenId) -> Value {
    let kind = match tokenizer.token_kind(id) {
        TokenKind::Text => "text",
        TokenKind::Added => "added",
        TokenKind::Special => "special",
    };
    json!({"id": id, "text": String::from_utf8_lossy(tokenizer.token_bytes(id)), "kind": kind})
}

/// Prints a line for each token: its id, and its bytes in quotes, escaped if they are not valid UTF-8 on
/// their own.
fn show(tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for &id in ids {
        let bytes = tokenizer.token_bytes(id);
        match std::str::from_utf8(bytes) {
            Ok(text) => writeln!(out, "{id:>7}  {text:?}")?,
            Err(_) => writeln!(out, "{id:>7}  \"{}\"", bytes.escape_ascii())?,
        }
    }
    Ok(out.flush()?)
}
