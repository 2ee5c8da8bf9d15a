//! Conversation: its history, and the turns that add to it.

use std::sync::Arc;

use lm_processors::{MarkerTokens, ModelDataProcessor, Processor};
use lm_session::{CancelHandle, Engine, PrefillStats, TokenId};
use lm_template::{GenerationPrompt, Map, Message, PolyfilledTemplate, Preface, ToolSpec};

use crate::config::ConversationConfig;
use crate::error::Result;
use crate::into_messages::IntoMessages;
use crate::marker_tokens::marker_tokens;
use crate::model_template::{dialect, model_template};
use crate::rendered::RenderedPrompt;
use crate::shared_state::SharedState;
use crate::turn_settings::{TurnSettings, check_channels};

/// A conversation with a model: its history, and the turns that add to it.
///
/// Each turn renders the whole conversation with the model's chat template; only the tokens that differ from
/// those already run are prefilled. A turn that fails or is cancelled leaves no trace.
///
/// ```
/// use lm_conversation::{Conversation, ConversationConfig, ConversationEvent, PromptTemplate, TurnOptions};
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!", "Still here."]);
/// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
/// // In a program: `Engine::load(..)`, and `ConversationConfig::from_engine(&engine)`.
/// let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
/// let mut conversation = Conversation::new(&engine, config)?;
/// assert_eq!(conversation.send("Hi.")?.text(), "Hello!");
///
/// let mut text = String::new();
/// for event in conversation.stream("Are you there?", TurnOptions::default())? {
///     if let ConversationEvent::Text(piece) = event? {
///         text += &piece;
///     }
/// }
/// assert_eq!(text, "Still here.");
/// assert_eq!(conversation.history().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Conversation {
    pub(crate) engine: Engine,
    pub(crate) shared: SharedState,
    pub(crate) template: PolyfilledTemplate,
    pub(crate) processor: Processor,
    /// The model's added tokens that occur in the dialect's markers.
    pub(crate) tokens: MarkerTokens,
    pub(crate) settings: TurnSettings,
    pub(crate) preface: Preface,
    pub(crate) tools: Arc<[ToolSpec]>,
}

impl Conversation {
    /// Creates a conversation without running the model, unless [`ConversationConfig::prefill_on_init`] is
    /// set.
    ///
    /// # Errors
    /// When there is no chat template, it does not compile, or the config is invalid.
    pub fn new(engine: &Engine, config: ConversationConfig) -> Result<Self> {
        let ConversationConfig {
            preface,
            session,
            template,
            polyfills,
            processor,
            on_malformed,
            content_tokens,
            constrain_calls,
            unmarked_calls,
            tools_note,
            channels,
            thinking,
            on_token_limit,
            overflow,
            prefill_on_init,
            media,
            call_ids,
        } = config;
        check_channels(channels.as_deref().unwrap_or_default())?;
        let template = match template {
            Some(template) => template,
            None => model_template(engine, &preface)?,
        };
        let template = PolyfilledTemplate::new(template, polyfills);
        let processor = processor.unwrap_or_else(|| dialect(&template, engine.name(), &preface.tools).into());
        let settings = TurnSettings {
            on_malformed,
            content_tokens,
            constrain_calls,
            unmarked_calls,
            tools_note,
            channels: channels.map(Into::into),
            thinking,
            on_token_limit,
            overflow,
            prefill_on_init,
            media,
            call_ids,
        };
        let mut conversation = Self {
            engine: engine.clone(),
            shared: SharedState::new(engine.session(session)?),
            template,
            tokens: marker_tokens(&*processor, settings.channels.as_deref(), engine.tokenizer()),
            processor,
            settings,
            tools: preface.tools.clone().into(),
            preface,
        };
        conversation.thinking_variables(thinking)?; // Fails early.
        if prefill_on_init {
            conversation.prefill_preface()?;
        }
        Ok(conversation)
    }

    /// Prefills the common beginning of all prompts: the preface, up to a user's message.
    fn prefill_preface(&mut self) -> Result<()> {
        let Preface { messages, tools, extra_context } = &self.preface;
        if messages.is_empty() && tools.is_empty() && extra_context.is_empty() {
            return Ok(());
        }
        // Templates refuse a conversation without a user's message, or write the start of one.
        let variables = self.thinking_variables(self.settings.thinking)?;
        let prompt = |text: &str| self.prompt(&[Message::user(text)], GenerationPrompt::Add, &variables);
        let ids = |text: &str| -> Result<Vec<TokenId>> { self.ids(&prompt(text)?) };
        let media = prompt("a")?.media;
        let (mut ids, other) = (ids("a")?, ids("1")?);
        ids.truncate(ids.iter().zip(&other).take_while(|(one, other)| one == other).count());
        if !ids.is_empty() {
            let prompt = lm_session::Prompt { ids: &ids, media: &media };
            self.shared.lock().session.sync(prompt, &CancelHandle::new())?;
        }
        Ok(())
    }

    /// The configuration of this conversation, with its current messages.
    pub fn config(&self) -> ConversationConfig {
        let TurnSettings {
            on_malformed,
            content_tokens,
            constrain_calls,
            unmarked_calls,
            tools_note,
            channels,
            thinking,
            on_token_limit,
            overflow,
            prefill_on_init,
            media,
            call_ids,
        } = self.settings.clone();
        ConversationConfig {
            preface: self.preface.clone(),
            session: self.shared.lock().session.config().clone(),
            template: Some(self.template.template().clone()),
            polyfills: self.template.polyfills().clone(),
            processor: Some(self.processor.clone()),
            on_malformed,
            content_tokens,
            constrain_calls,
            unmarked_calls,
            tools_note,
            channels: channels.map(|channels| channels.to_vec()),
            thinking,
            on_token_limit,
            overflow,
            prefill_on_init,
            media,
            call_ids,
        }
    }

    /// Cancels the running turn, if any, also a [detached](crate::Turn::detach) one: the conversation is as
    /// before it.
    pub fn abort(&mut self) {
        self.shared.lock().end_turn();
    }

    /// Cancels the running turn, and waits for a detached one, before the next.
    pub(crate) fn end_running(&mut self) {
        self.shared.wait_detached();
        self.abort();
    }

    /// Creates a conversation with the same configuration and history, without the running turn. It shares
    /// the pages of the KV cache.
    ///
    /// ```
    /// use lm_conversation::{Conversation, ConversationConfig, Message, Preface, PromptTemplate};
    ///
    /// # let engine = lm_session::testing::scripted_engine(["The prefill.", "Paris.", "Rome."]);
    /// # let template = Some(PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?);
    /// let preface = Preface { messages: vec![Message::system("Name the capital.")], ..Preface::default() };
    /// let config = ConversationConfig { prefill_on_init: true, ..ConversationConfig::default() };
    /// # let config = ConversationConfig { template, ..config };
    /// let mut france = Conversation::new(&engine, config.with_preface(preface))?;
    /// let mut italy = france.fork()?; // The preface is in the KV cache once.
    /// assert_eq!(france.send("France")?.text(), "Paris.");
    /// assert_eq!(italy.send("Italy")?.text(), "Rome.");
    /// assert_eq!((france.history().len(), italy.history().len()), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the engine has stopped.
    pub fn fork(&self) -> Result<Self> {
        Ok(self.with_shared(self.shared.fork()?))
    }

    /// Returns another handle of this conversation: both have one history, one session and one running turn.
    /// Preface, tools and settings are copies.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let conversation = Conversation::new(&engine, config)?;
    /// let mut handle = conversation.share();
    /// let worker = std::thread::spawn(move || handle.send("Hi."));
    /// worker.join().expect("no panic")?;
    /// assert_eq!(conversation.history().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn share(&self) -> Self {
        self.with_shared(self.shared.clone())
    }

    /// Replaces the tools that the model may call in turns that are started with this handle.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<ToolSpec>) -> Self {
        self.tools = tools.clone().into();
        self.preface.tools = tools;
        self
    }

    /// Returns another handle of this conversation, with this processor.
    pub(crate) fn with_processor(&self, processor: Processor) -> Self {
        let channels = self.settings.channels.as_deref();
        let tokens = marker_tokens(&*processor, channels, self.engine.tokenizer());
        Self { processor, tokens, ..self.share() }
    }

    fn with_shared(&self, shared: SharedState) -> Self {
        Self {
            engine: self.engine.clone(),
            shared,
            template: self.template.clone(),
            processor: self.processor.clone(),
            tokens: self.tokens.clone(),
            settings: self.settings.clone(),
            preface: self.preface.clone(),
            tools: self.tools.clone(),
        }
    }

    /// Prefills the prompt of the history and `messages` before a turn that starts with them; blocks until it
    /// is done. The history is unchanged. A running turn is cancelled; a detached one is waited for.
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn prefill(&mut self, messages: impl IntoMessages) -> Result<PrefillStats> {
        self.end_running();
        let prompt = self.prompt(&messages.into_messages()?, GenerationPrompt::Omit, &Map::new())?;
        let prompt = lm_session::Prompt { ids: &self.ids(&prompt)?, media: &prompt.media };
        Ok(self.shared.lock().session.sync(prompt, &CancelHandle::new())?)
    }

    /// Counts the tokens of the prompt of a turn with `messages`: preface, history, messages and the opening
    /// of the reply. The context has [`Engine::context_tokens`].
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn count_tokens(&self, messages: impl IntoMessages) -> Result<usize> {
        Ok(self.render(messages, GenerationPrompt::Add)?.ids.len())
    }

    /// Remaining tokens of the context for further messages and replies, after preface and history. Dropped
    /// turns ([`Overflow::DropOldest`](crate::Overflow::DropOldest)) take none.
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn remaining_context(&self) -> Result<usize> {
        let is_empty = self.preface.messages.is_empty() && self.shared.lock().history.is_empty();
        let taken = if is_empty { 0 } else { self.render(Vec::new(), GenerationPrompt::Omit)?.ids.len() };
        Ok(self.engine.context_tokens().saturating_sub(taken))
    }

    /// Renders the prompt of a turn with these messages without running it: text, ids and masks. Messages of
    /// dropped turns are omitted.
    ///
    /// # Errors
    /// When a message cannot be converted, or the template rejects the conversation.
    pub fn render(
        &self,
        messages: impl IntoMessages,
        generation: GenerationPrompt,
    ) -> Result<RenderedPrompt> {
        let prompt = self.prompt(&messages.into_messages()?, generation, &Map::new())?;
        prompt.to_rendered(&self.engine, self.settings.content_tokens)
    }

    /// Messages sent and received, without the preface and the running turn.
    pub fn history(&self) -> Vec<Message> {
        self.shared.lock().history.clone()
    }

    /// Reads the history without a copy. `read` must not use this conversation or its other handles: they
    /// would wait for its end.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// conversation.send("Hi.")?;
    /// let last = conversation.with_history(|history| history.last().map(|message| message.content.text()));
    /// assert_eq!(last.as_deref(), Some("Hello!"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_history<T>(&self, read: impl FnOnce(&[Message]) -> T) -> T {
        read(&self.shared.lock().history)
    }

    /// Replaces the history, for example by a saved one. A running turn is cancelled.
    pub fn set_history(&mut self, history: Vec<Message>) {
        self.shared.lock().set_history(history);
    }

    /// Replaces the messages of the preface, for example by another system prompt; the history stays. A
    /// running turn is cancelled.
    pub fn set_preface_messages(&mut self, messages: Vec<Message>) {
        let mut state = self.shared.lock();
        state.end_turn();
        state.open = None;
        drop(state);
        self.preface.messages = messages;
    }

    /// Clears the history; the preface stays. A running turn is cancelled.
    pub fn reset(&mut self) {
        self.set_history(Vec::new());
    }

    /// The initial messages, tools and variables.
    pub fn preface(&self) -> &Preface {
        &self.preface
    }

    /// Tools that the model may call.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// Dialect of the model.
    pub fn processor(&self) -> &dyn ModelDataProcessor {
        &*self.processor
    }

    /// The engine that runs the turns.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Tokens of the last turn, prompt and reply: see [`lm_session::Session::tokens`].
    pub fn tokens(&self) -> Vec<TokenId> {
        self.shared.lock().session.tokens()
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("processor", &self.processor.name())
            .field("history", &self.history())
            .finish_non_exhaustive()
    }
}
