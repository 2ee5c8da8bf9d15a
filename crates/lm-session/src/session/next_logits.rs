//! Logits of given tokens after a prompt.

use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::generate::{PromptOutput, PromptRows};
use crate::ids::AdapterId;
use crate::session::prompts::{RunningPrompt, in_order};

impl Engine {
    /// Computes the logits of `tokens` as the next token after each of several prompts, in order; -infinity
    /// for a token that the model lacks. Up to 8 prompts run or wait at a time; a beginning that they share
    /// is computed once. The ids are used as they are.
    ///
    /// ```
    /// use lm_session::{CancelHandle, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let prompts = [vec![1, 2, 3], vec![1, 2, 4]];
    /// let cancel = CancelHandle::new();
    /// let logits = engine.next_logits(prompts, &[5, 6], None, &cancel);
    /// assert!(logits.map(Result::unwrap).all(|logits| logits.len() == 2));
    /// ```
    ///
    /// # Errors
    /// Each item has the errors of its prompt: [`Error::EmptyPrompt`], [`Error::PromptTooLong`],
    /// [`Error::UnknownAdapter`], [`Error::Cancelled`], [`Error::Busy`], [`Error::EngineStopped`],
    /// [`Error::InvalidLogit`], and the errors of the model.
    pub fn next_logits(
        &self,
        prompts: impl IntoIterator<Item = Vec<TokenId>>,
        tokens: &[TokenId],
        adapter: Option<AdapterId>,
        cancel: &CancelHandle,
    ) -> impl Iterator<Item = Result<Vec<f32>>> {
        let begin = move |ids: &Vec<TokenId>| {
            RunningPrompt::begin(self, ids, || PromptRows::next_logits(ids, tokens), adapter, cancel)
        };
        in_order(self, prompts, begin, |running| match running.wait()? {
            PromptOutput::Logits(values) => Ok(values),
            // Not asked for.
            PromptOutput::Logprobs(_) | PromptOutput::Vector(_) => Err(Error::EngineStopped),
        })
    }
}
