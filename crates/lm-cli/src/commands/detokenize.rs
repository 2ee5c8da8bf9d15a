//! `lm detokenize`: decodes token ids to texts, over JSON Lines.

use anyhow::Result;
use lm_tokenizer::{SpecialTokens, Tokenizer};
use serde_json::{Value, json};

use crate::args::ModelPath;
use crate::json_lines::{answer_values, bad_line, error};
use crate::{model, prompt_ids};

const EXAMPLES: &str = "\
A line of standard input is a JSON list of token ids, or an object with such a list as `ids`.

The answer is {\"text\": \"..\"} or {\"error\": {\"kind\", \"message\"}}. Kinds: unknown_id, bad_line.
Bytes that are not UTF-8 are written as U+FFFD.
Each line has one answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  echo '[9906, 11, 1917]' | lm detokenize ./Llama-3.2-1B
  lm tokenize < texts.jsonl | lm detokenize";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Leave special tokens out of the text
    #[arg(long)]
    skip_special: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let tokenizer = model::folder(args.model.get())?.tokenizer()?;
    let special = if args.skip_special { SpecialTokens::Skip } else { SpecialTokens::Keep };
    answer_values(|line| answer(&tokenizer, special, &line))
}

fn answer(tokenizer: &Tokenizer, special: SpecialTokens, line: &Value) -> Value {
    let ids = match prompt_ids::ids(line) {
        Ok(ids) => ids,
        Err(cause) => return bad_line(cause),
    };
    let known = tokenizer.vocab_size().max(tokenizer.logits_width());
    match prompt_ids::check_known(&ids, known) {
        Err(cause) => error("unknown_id", cause),
        Ok(()) => json!({"text": tokenizer.decode(&ids, special)}),
    }
}
