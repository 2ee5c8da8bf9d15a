//! `lm generate --ids`: prompts and replies as token ids.

use std::io;
use std::path::Path;

use anyhow::Result;
use lm_session::{CancelHandle, Engine, GenerateParams, SessionConfig, SessionEvent};
use lm_tokenizer::TokenId;
use serde_json::{Value, json};

use crate::json_lines::{answer_lines, bad_line, error};
use crate::prompt_ids;

/// Answers each prompt of `path` with the list of the new ids, including the end token.
pub fn continue_all(
    engine: &Engine,
    config: &SessionConfig,
    path: &Path,
    cancel: &CancelHandle,
) -> Result<()> {
    let answer = |line: Value| match prompt_ids::ids(&line) {
        Ok(ids) => new_ids(engine, config, &ids, cancel).map_or_else(
            |cause| error("generation", format_args!("{:#}", anyhow::Error::from(cause))),
            |ids| json!(ids),
        ),
        Err(cause) => bad_line(cause),
    };
    Ok(answer_lines(prompt_ids::open(path)?, io::stdout().lock(), answer)?)
}

fn new_ids(
    engine: &Engine,
    config: &SessionConfig,
    prompt: &[TokenId],
    cancel: &CancelHandle,
) -> lm_session::Result<Vec<TokenId>> {
    let mut session = engine.session(config.clone())?;
    session.sync(prompt, cancel)?;
    let mut ids = Vec::new();
    for event in session.generate(GenerateParams { cancel: cancel.clone(), ..GenerateParams::default() }) {
        if let SessionEvent::Token { id, .. } = event? {
            ids.push(id);
        }
    }
    Ok(ids)
}
