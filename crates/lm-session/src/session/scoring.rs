//! Scores of given texts.

use async_channel::Receiver;
use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::error::{Error, Result};
use crate::generate::{PromptOutput, PromptRows};
use crate::media::{Prompt, ResolvedPrompt};
use crate::sampling::TokenLogprobs;
use crate::scheduler::{Reply, RequestLimits, Task};
use crate::session::Session;

/// Log probabilities of a given text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextScore {
    /// Log probability of each token given all tokens before it. The first token of an empty session has
    /// none.
    pub tokens: Vec<TokenLogprobs>,
}

impl TextScore {
    /// Natural logarithm of the probability of the whole text.
    pub fn sum(&self) -> f64 {
        self.tokens.iter().map(|token| f64::from(token.logprob)).sum()
    }
}

impl Session {
    /// Scores `ids` as the continuation of the session's tokens, with the `top` most probable tokens in each
    /// place. The session does not change.
    ///
    /// Memory holds the logits of some rows at a time, independent of the length of the text.
    ///
    /// ```
    /// use lm_session::{CancelHandle, SessionConfig, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let mut session = engine.session(SessionConfig::default())?;
    /// session.prefill(&engine.tokenizer().encode("Say hello.")?)?;
    /// let text = engine.tokenizer().encode("Hello!")?;
    /// let score = session.score(&text, 0, &CancelHandle::new())?;
    /// assert_eq!(score.tokens.len(), text.len());
    /// assert!(score.sum() < 0.0);
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`] if session and text are empty, [`Error::PromptTooLong`] for both together,
    /// [`Error::Cancelled`], [`Error::Busy`], [`Error::EngineStopped`], [`Error::InvalidLogit`], and the
    /// errors of the model.
    pub fn score(&self, ids: &[TokenId], top: usize, cancel: &CancelHandle) -> Result<TextScore> {
        self.score_after(&self.tokens(), ids, top, cancel)
    }

    /// [`Self::score`] of `ids` as the continuation of `prompt`. Tokens of the session do not run again.
    ///
    /// # Errors
    /// As [`Self::score`].
    pub fn score_after<'a>(
        &self,
        prompt: impl Into<Prompt<'a>>,
        ids: &[TokenId],
        top: usize,
        cancel: &CancelHandle,
    ) -> Result<TextScore> {
        let prompt = prompt.into();
        let whole = [prompt.ids, ids].concat();
        let resolved = self.resolve(Prompt { ids: &whole, media: prompt.media })?;
        if ids.is_empty() {
            return Ok(TextScore::default());
        }
        let rows = PromptRows::logprobs(&whole, prompt.ids.len(), top);
        let mut fork = self.fork()?;
        let common = fork.common(&whole);
        match fork.run_prompt(resolved, common, rows, cancel)? {
            PromptOutput::Logprobs(tokens) => Ok(TextScore { tokens }),
            PromptOutput::Vector(_) | PromptOutput::Logits(_) => Err(Error::EngineStopped), // Not asked for.
        }
    }

    /// Runs a prompt whose first `common` tokens are those of this session, and returns the output of its
    /// rows.
    fn run_prompt(
        &mut self,
        prompt: ResolvedPrompt,
        common: usize,
        rows: PromptRows,
        cancel: &CancelHandle,
    ) -> Result<PromptOutput> {
        prompt_output(&self.begin_prompt(prompt, common, rows, cancel)?)
    }

    /// [`Self::run_prompt`] without waiting for the output.
    pub(crate) fn begin_prompt(
        &mut self,
        prompt: ResolvedPrompt,
        common: usize,
        rows: PromptRows,
        cancel: &CancelHandle,
    ) -> Result<Receiver<Reply>> {
        let limits = RequestLimits { cancel: cancel.child(), ..RequestLimits::default() };
        self.run(prompt, common, Task::Prefill, Some(Box::new(rows)), limits)
    }
}

/// Waits for the output of a prompt's rows.
pub(crate) fn prompt_output(replies: &Receiver<Reply>) -> Result<PromptOutput> {
    match replies.recv_blocking() {
        Ok(Reply::Prompt(output)) => Ok(output),
        Ok(Reply::Failed { error, .. }) => Err(error),
        // The output is sent first; a missing reply means that the worker has ended.
        Ok(Reply::Prefilled { .. } | Reply::Event(_)) | Err(_) => Err(Error::EngineStopped),
    }
}
