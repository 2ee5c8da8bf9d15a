//! Scores of given replies.

use lm_session::{Prompt, TokenId};
use lm_template::Message;
use lm_tokenizer::TextSegment;

use crate::config::TurnOptions;
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::event::ScoredToken;
use crate::into_messages::IntoMessages;

/// Log probabilities of a given reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyScore {
    /// Tokens of the reply, each conditioned on all tokens before it.
    pub tokens: Vec<ScoredToken>,
}

impl ReplyScore {
    /// Natural logarithm of the probability of the whole reply.
    pub fn sum(&self) -> f64 {
        self.tokens.iter().map(|scored| f64::from(scored.token.logprob)).sum()
    }
}

impl Conversation {
    /// Scores `text` as the start of the reply to `messages`, or to the history without them. The
    /// conversation and a running turn are unchanged.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// # let engine = lm_session::testing::scripted_engine(["Paris.", "Paris."]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let conversation = Conversation::new(&engine, config)?;
    /// let score = |reply| conversation.score("What is the capital of France?", reply);
    /// assert!(score("Paris")?.sum() > score("Rome")?.sum());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`score_with`](Self::score_with).
    pub fn score(&self, messages: impl IntoMessages, text: &str) -> Result<ReplyScore> {
        self.score_with(messages, text, TurnOptions::default())
    }

    /// [`score`](Self::score) with the prompt of a turn of these options: the template's variables, thinking,
    /// and handling of overflow. [`TurnOptions::logprobs`] is the number of most probable tokens in each
    /// place, and [`TurnOptions::cancel`] cancels the call; the other options have no effect.
    ///
    /// `text` is the reply as the model writes it, with the dialect's markup: added tokens in it are
    /// recognised. Its tokens follow the prompt, and the distribution is the model's, without the constraints
    /// of the tools.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`lm_session::Error::PromptTooLong`] for prompt and text together; see
    /// [`Error`].
    pub fn score_with(
        &self,
        messages: impl IntoMessages,
        text: &str,
        mut options: TurnOptions,
    ) -> Result<ReplyScore> {
        let messages: Vec<Message> = messages.into_messages()?;
        let settings = self.turn_settings(&mut options)?;
        let turn_prompt = self.open(messages, &options, settings.overflow, Some(0))?;
        let ids = self.engine.tokenizer().encode_segments(&[TextSegment::Template(text)])?;
        let prompt = Prompt { ids: &turn_prompt.ids, media: &turn_prompt.media };
        let scores = self.score_ids(prompt, &ids, &options).map_err(|error| match error {
            lm_session::Error::Cancelled => Error::Cancelled,
            error => error.into(),
        })?;
        let tokenizer = self.engine.tokenizer();
        let tokens = ids.iter().zip(&scores).map(|(&id, score)| ScoredToken::new(id, score, tokenizer));
        Ok(ReplyScore { tokens: tokens.collect() })
    }

    fn score_ids(
        &self,
        prompt: Prompt<'_>,
        text: &[TokenId],
        options: &TurnOptions,
    ) -> lm_session::Result<Vec<lm_session::TokenLogprobs>> {
        let session = self.shared.lock().session.fork()?; // Releases the lock.
        let top = options.logprobs.unwrap_or(0);
        Ok(session.score_after(prompt, text, top, &options.cancel)?.tokens)
    }
}
