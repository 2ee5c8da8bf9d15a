//! `lm tokenize`: text → ids and pieces.

use std::io::{self, Read, Write};

use anyhow::{Context, Result};
use lm_model::{TokenId, TokenKind, Tokenizer};
use serde_json::json;

use crate::model;

const EXAMPLES: &str = "\
Examples:
  lm tokenize 'Hello, world'
  lm tokenize --model ./Qwen3-0.6B --json < notes.txt";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The text; standard input without it
    text: Option<String>,
    /// Folder with tokenizer.json; the embedded model without it
    #[arg(long, short, value_name = "MODEL")]
    model: Option<std::path::PathBuf>,
    /// Treat special tokens in the text as text, as for a user's message
    #[arg(long)]
    content: bool,
    /// One JSON object: ids, and each token's id, text and kind
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let tokenizer = model::folder(args.model.as_deref())?.tokenizer()?;
    let text = text_or_stdin(args.text.as_deref())?;
    let ids = if args.content {
        tokenizer.encode_segments(&[lm_model::TextSegment::Content(&text)])?
    } else {
        tokenizer.encode(&text)?
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        let tokens: Vec<_> = ids
            .iter()
            .map(|&id| json!({"id": id, "text": piece(&tokenizer, id), "kind": kind(tokenizer.token_kind(id))}))
            .collect();
        writeln!(out, "{}", json!({"ids": ids, "tokens": tokens}))?;
    } else {
        for &id in &ids {
            writeln!(out, "{id:>7}  {}", quoted(tokenizer.token_bytes(id)))?;
        }
    }
    Ok(out.flush()?)
}

/// The argument, or all of standard input.
pub fn text_or_stdin(text: Option<&str>) -> Result<String> {
    if let Some(text) = text.filter(|text| *text != "-") {
        return Ok(text.to_owned());
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("standard input cannot be read as text")?;
    Ok(text)
}

/// The bytes in quotes; those that are no characters of their own are escaped.
fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// The token's text; a part of a character as U+FFFD.
fn piece(tokenizer: &Tokenizer, id: TokenId) -> String {
    String::from_utf8_lossy(tokenizer.token_bytes(id)).into_owned()
}

fn kind(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Text => "text",
        TokenKind::Added => "added",
        TokenKind::Special => "special",
    }
}
