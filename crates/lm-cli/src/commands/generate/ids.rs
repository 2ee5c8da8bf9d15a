//! `lm generate --ids`: prompts and replies as token ids.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use lm_session::{CancelHandle, Engine, Error, FinishReason, GenerateParams, SessionConfig, SessionEvent};
use lm_tokenizer::TokenId;
use serde_json::json;

use crate::json_lines::{bad_line, error, values};
use crate::prompt_ids;

/// Answers each prompt of `path` with the list of the new ids, including the end token.
///
/// # Errors
/// When the file cannot be read, or `cancel` ends a prompt; the error of a single prompt is its answer.
pub fn continue_all(
    engine: &Engine,
    config: &SessionConfig,
    path: &Path,
    cancel: &CancelHandle,
) -> Result<()> {
    let mut out = io::stdout().lock();
    for line in values(prompt_ids::open(path)?) {
        let answer = match line?.and_then(|line| prompt_ids::ids(&line)) {
            Ok(ids) => match new_ids(engine, config, &ids, cancel) {
                Ok(ids) => json!(ids),
                Err(Error::Cancelled) => return Err(Error::Cancelled.into()),
                Err(cause) => error("generation", format_args!("{:#}", anyhow::Error::from(cause))),
            },
            Err(cause) => bad_line(cause),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
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
        match event? {
            SessionEvent::Token { id, .. } => ids.push(id),
            SessionEvent::Finished(finished) if finished.reason == FinishReason::Cancelled => {
                return Err(Error::Cancelled);
            }
            SessionEvent::Finished(_) => {}
        }
    }
    Ok(ids)
}
