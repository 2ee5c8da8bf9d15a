//! Saving and restoring of a conversation.

use lm_session::{SaveOptions, SavedTokens};
use lm_template::{GenerationPrompt, Message, Preface};

use crate::conversation::Conversation;
use crate::error::Result;
use crate::saved::SavedConversation;

impl Conversation {
    /// Returns the messages and tools as data, without the running turn: for a file, or to edit them.
    pub fn saved(&self) -> SavedConversation {
        let Preface { messages, tools, .. } = self.preface.clone();
        SavedConversation { tools, preface: messages, history: self.history(), cache: None }
    }

    /// [`saved`](Self::saved) with options: KV pages, on request and up to the limit. Also returns the
    /// outcome.
    ///
    /// ```
    /// use lm_conversation::{Conversation, ConversationConfig, PromptTemplate, SaveOptions, SavedTokens};
    ///
    /// # let engine = lm_session::testing::scripted_engine(["Hello!", "Fine."]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// let mut conversation = Conversation::new(&engine, config.clone())?;
    /// conversation.send("Hi.")?;
    /// let (saved, outcome) = conversation.save(SaveOptions { cache: Some(64 << 20) })?;
    /// assert!(matches!(outcome, SavedTokens::Saved { .. }));
    ///
    /// let mut conversation = Conversation::new(&engine, config)?;
    /// let cached = conversation.restore(saved)?;
    /// assert!(conversation.send("How are you?")?.finish.usage.cached_tokens >= cached);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the engine has stopped.
    pub fn save(&self, options: SaveOptions) -> Result<(SavedConversation, SavedTokens)> {
        let saved = self.saved();
        if options.cache.is_none() {
            return Ok((saved, SavedTokens::NotAsked));
        }
        // Tokens of other messages, as of an undone turn, are not part of it.
        let Ok(rendered) = self.render(Vec::<Message>::new(), GenerationPrompt::Omit) else {
            return Ok((saved, SavedTokens::NothingCached)); // A template needs a message.
        };
        let (cache, outcome) = self.shared.lock().session.save_prefix(&rendered.ids, options)?;
        Ok((SavedConversation { cache, ..saved }, outcome))
    }

    /// Replaces the messages of preface and history, and takes the KV pages, if any: the next turn then
    /// prefills the new tokens only. The tools of this conversation are kept. A running turn is cancelled.
    /// Returns the number of tokens whose pages are cached; 0 if the pool has no room for them.
    ///
    /// The pages are shared with other conversations of the engine that have the same prefix, so they must
    /// come from a trusted source.
    ///
    /// ```
    /// use lm_conversation::{Conversation, ConversationConfig, PromptTemplate, SavedConversation};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("chat.json");
    /// # let engine = lm_session::testing::scripted_engine(["Hello!", "Fine."]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// let mut conversation = Conversation::new(&engine, config.clone())?;
    /// conversation.send("Hi.")?;
    /// conversation.saved().write(&path)?;
    /// drop(conversation); // Or the end of the program.
    ///
    /// let mut conversation = Conversation::new(&engine, config)?;
    /// conversation.restore(SavedConversation::read(&path)?)?;
    /// assert_eq!(conversation.send("How are you?")?.text(), "Fine.");
    /// assert_eq!(conversation.history().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`lm_session::Error::ForeignCache`] and the other errors of [`lm_session::Session::restore_cache`] for
    /// KV pages that are not of this model. The conversation is then unchanged; without
    /// [`SavedConversation::cache`] the messages can be.
    pub fn restore(&mut self, saved: SavedConversation) -> Result<usize> {
        let SavedConversation { preface, history, cache, .. } = saved;
        self.abort();
        let cached = match &cache {
            Some(cache) if self.shared.lock().session.restore_cache(cache)? => cache.tokens.len(),
            _ => 0,
        };
        self.set_history(history);
        self.preface.messages = preface;
        Ok(cached)
    }
}
