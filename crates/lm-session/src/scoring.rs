//! Scores of given texts, and embeddings.

use lm_tokenizer::TokenId;

use crate::prompt_rows::{PromptOutput, PromptRows};
use crate::request::{Reply, RequestLimits, Task};
use crate::{CancelHandle, Engine, Error, Result, Session, SessionConfig, TokenLogprobs};

/// Log probabilities of a given text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextScore {
    /// Log probability of each token given all tokens before it. The first token of an empty session has none.
    pub tokens: Vec<TokenLogprobs>,
}

impl TextScore {
    /// Natural logarithm of the probability of the whole text.
    pub fn sum(&self) -> f64 {
        self.tokens.iter().map(|token| f64::from(token.logprob)).sum()
    }
}

/// Reduction of the hidden states of a text to one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    Mean,
    /// The last token.
    Last,
}

impl Session {
    /// Scores `ids` as the continuation of the session's tokens, with the `top` most probable tokens in each place. The session does not
    /// change.
    ///
    /// Memory holds the logits of some rows at a time, whatever the length of the text.
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
    /// [`Error::EmptyPrompt`] if session and text are empty, [`Error::PromptTooLong`] for both together, [`Error::Cancelled`],
    /// [`Error::Busy`], [`Error::EngineStopped`], [`Error::InvalidLogit`], and the errors of the model.
    pub fn score(&self, ids: &[TokenId], top: usize, cancel: &CancelHandle) -> Result<TextScore> {
        let before = self.tokens();
        let whole = [&before[..], ids].concat();
        self.check_len(whole.len())?;
        if ids.is_empty() {
            return Ok(TextScore::default());
        }
        let rows = PromptRows::logprobs(&whole, before.len(), top);
        match self.fork()?.run_prompt(&whole, before.len(), rows, cancel)? {
            PromptOutput::Logprobs(tokens) => Ok(TextScore { tokens }),
            PromptOutput::Embedding(_) => Err(Error::EngineStopped), // Not asked for.
        }
    }

    /// Runs `ids`, the first `common` of which are those of this session, and returns the output of their rows.
    fn run_prompt(
        &mut self,
        ids: &[TokenId],
        common: usize,
        rows: PromptRows,
        cancel: &CancelHandle,
    ) -> Result<PromptOutput> {
        let limits = RequestLimits { cancel: cancel.child(), ..RequestLimits::default() };
        let replies = self.run(ids, common, Task::Prefill, Some(Box::new(rows)), limits)?;
        match replies.recv_blocking() {
            Ok(Reply::Prompt(output)) => Ok(output),
            Ok(Reply::Failed { error, .. }) => Err(error),
            // The output comes first; a missing reply means that the worker is gone.
            Ok(Reply::Prefilled { .. } | Reply::Event(_)) | Err(_) => Err(Error::EngineStopped),
        }
    }
}

impl Engine {
    /// Computes the embedding of a text: its pooled final hidden states, as a vector of length 1 and of
    /// [`hidden_size`](crate::ModelInfo::hidden_size) elements.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::Cancelled`], [`Error::Busy`], [`Error::EngineStopped`], and the errors
    /// of the model.
    pub fn embed(&self, ids: &[TokenId], pooling: Pooling, cancel: &CancelHandle) -> Result<Vec<f32>> {
        let mut session = self.session(SessionConfig::default())?;
        session.check_len(ids.len())?;
        match session.run_prompt(ids, 0, PromptRows::pooled(ids, pooling), cancel)? {
            PromptOutput::Embedding(values) => Ok(values),
            PromptOutput::Logprobs(_) => Err(Error::EngineStopped), // Not asked for.
        }
    }
}
