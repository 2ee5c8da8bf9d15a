//! `lm generate --ids`: prompts and replies as token ids.

use std::io::{self, BufRead};

use anyhow::Result;
use lm_session::{CancelHandle, Engine, Error, FinishReason, GenerateParams, SessionConfig, SessionEvent};
use lm_tokenizer::TokenId;
use serde_json::json;

use crate::json_lines::{answer_lines, bad_line, error, values};
use crate::prompt_ids;

/// Answers each prompt of `input` with the list of the new ids, including the end token.
///
/// # Errors
/// When the input cannot be read, `cancel` ends a prompt, or a line was answered with an error.
pub fn continue_all(
    engine: &Engine,
    config: &SessionConfig,
    input: impl BufRead,
    cancel: &CancelHandle,
) -> Result<()> {
    let width = engine.model_info().logits_width;
    answer_lines(values(input), io::stdout().lock(), |line| {
        let ids = match prompt_ids::ids(&line) {
            Ok(ids) => ids,
            Err(cause) => return Ok(bad_line(cause)),
        };
        if let Err(cause) = prompt_ids::check_known(&ids, width) {
            return Ok(error("generation", cause));
        }
        match new_ids(engine, config, &ids, cancel) {
            Ok(ids) => Ok(json!(ids)),
            Err(Error::Cancelled) => Err(Error::Cancelled.into()),
            Err(cause) => Ok(error("generation", format_args!("{:#}", anyhow::Error::from(cause)))),
        }
    })
}

fn new_ids(
    engine: &Engine,
    config: &SessionConfig,
    prompt: &[TokenId],
    cancel: &CancelHandle,
) -> lm_session::Result<Vec<TokenId>> {
    let mut session = engine.session(config.clone())?;
    let params = GenerateParams { cancel: cancel.clone(), ..GenerateParams::default() };
    let mut ids = Vec::new();
    for event in session.submit(prompt, params)? {
        match event? {
            SessionEvent::Token { id, .. } => ids.push(id),
            SessionEvent::Finished(finished) if finished.reason == FinishReason::Cancelled => {
                return Err(Error::Cancelled);
            }
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) | SessionEvent::Finished(_) => {}
        }
    }
    Ok(ids)
}
