//! Conversation: its history, and the turns that add to it.

use std::sync::Arc;

use lm_processors::{
    FreshCallIds, MarkerTokens, ModelDataProcessor, OnMalformed, ParserOptions, ReadCalls, Recovery,
    ReplyForm, ResponseFormat, ToolChoice, by_name, detect,
};
use lm_session::{CancelHandle, Constraint, Engine, GenerateParams, PrefillStats, TokenId};
use lm_template::{
    ChatTemplates, GenerationPrompt, Map, Message, Origin, PolyfilledPrompt, PolyfilledTemplate, Preface,
    Prompt, PromptTemplate, RenderInput, TemplateChoice, ToolSpec, Value,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::{ConstrainCalls, ConversationConfig, OnCancel, TurnOptions};
use crate::error::{Error, Result};
use crate::event::Reply;
use crate::into_messages::IntoMessages;
use crate::marker_tokens::marker_tokens;
use crate::rendered::{ContentTokens, RenderedPrompt, encode};
use crate::reply_reader::ReplyReader;
use crate::reply_rules::{ReplyConstraints, ReplyRules};
use crate::resampling::Resampling;
use crate::saved::SavedConversation;
use crate::shared::Shared;
use crate::thinking::{ModelThinking, ThinkingConfig};
use crate::turn::{Turn, TurnSetup};
use crate::typed_answer;

/// Dialect in which [`PolyfilledTemplate`] declares tools if the template does not support them.
const TEXT_DIALECT: &str = "hermes";

/// A conversation with a model: its history, and the turns that add to it.
///
/// Each turn renders the whole conversation with the model's chat template; only the tokens that differ from those already run are
/// prefilled. A turn that fails or is cancelled leaves no trace.
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
    engine: Engine,
    shared: Shared,
    template: PolyfilledTemplate,
    processor: &'static dyn ModelDataProcessor,
    /// The model's added tokens that occur in the dialect's markers.
    tokens: MarkerTokens,
    on_malformed: OnMalformed,
    content_tokens: ContentTokens,
    constrain_calls: ConstrainCalls,
    preface: Preface,
    tools: Arc<[ToolSpec]>,
}

impl Conversation {
    /// Creates a conversation. Nothing runs yet.
    ///
    /// # Errors
    /// When there is no chat template, it does not compile, or the session config is invalid.
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
        } = config;
        let template = match template {
            Some(template) => template,
            None => model_template(engine, &preface)?,
        };
        let template = PolyfilledTemplate::new(template, polyfills);
        let processor = processor.unwrap_or_else(|| dialect(&template, engine.name(), &preface.tools));
        Ok(Self {
            engine: engine.clone(),
            shared: Shared::new(engine.session(session)?),
            template,
            processor,
            tokens: marker_tokens(processor, engine.tokenizer()),
            on_malformed,
            content_tokens,
            constrain_calls,
            tools: preface.tools.clone().into(),
            preface,
        })
    }

    /// Sends a message and waits for the whole reply.
    ///
    /// # Errors
    /// See [`Error`]. The conversation is then unchanged.
    pub fn send(&mut self, message: impl IntoMessages) -> Result<Reply> {
        self.send_with(message, TurnOptions::default())
    }

    /// Sends a message with its own options and waits for the whole reply.
    ///
    /// # Errors
    /// See [`Error`]. The conversation is then unchanged.
    pub fn send_with(&mut self, message: impl IntoMessages, turn: TurnOptions) -> Result<Reply> {
        self.stream(message, turn)?.into_reply()
    }

    /// Sends a message and waits for an answer of a Rust type, which is generated to the type's JSON schema.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct City {
    ///     name: String,
    ///     people: u32,
    /// }
    ///
    /// # let engine = lm_session::testing::scripted_engine([r#"{"name":"Paris","people":2100000}"#]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// let city: City = conversation.ask("What is the capital of France?")?;
    /// assert_eq!((city.name.as_str(), city.people), ("Paris", 2_100_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidAnswer`] for an answer that a limit has cut; see [`Error`]. The turn is in the history then.
    pub fn ask<T: JsonSchema + DeserializeOwned>(&mut self, message: impl IntoMessages) -> Result<T> {
        let format = Some(ResponseFormat::JsonSchema(typed_answer::schema::<T>()));
        let options =
            TurnOptions { response_format: format, tool_choice: ToolChoice::None, ..TurnOptions::default() };
        let text = self.send_with(message, options)?.text();
        serde_json::from_str(&text).map_err(|error| Error::InvalidAnswer {
            path: String::new(),
            message: error.to_string(),
            text,
        })
    }

    /// Starts a turn with a message: options, then [`TurnBuilder::start`].
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// use lm_conversation::OnCancel;
    ///
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// let turn = conversation.turn("Hi.").on_cancel(OnCancel::KeepPartial).start()?;
    /// turn.canceller().cancel();
    /// let reply = turn.into_reply()?;
    /// assert_eq!(conversation.history(), [lm_conversation::Message::user("Hi."), reply.message]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn turn<M: IntoMessages>(&mut self, message: M) -> TurnBuilder<'_, M> {
        TurnBuilder { conversation: self, message, options: TurnOptions::default() }
    }

    /// Sends a message and streams the reply. Returns at once; the prompt is prefilled behind it. A turn that is still running is
    /// cancelled first.
    ///
    /// # Errors
    /// See [`Error`]. The conversation is then unchanged; so it is after an error in the turn.
    pub fn stream(&mut self, message: impl IntoMessages, options: TurnOptions) -> Result<Turn> {
        let messages = message.into_messages()?;
        if messages.is_empty() {
            return Err(Error::NoMessage);
        }
        self.shared.lock().end_turn();
        let mut options = options;
        options.extra_context.extend(self.thinking_variables(options.thinking)?);
        let PolyfilledPrompt { prompt, polyfills } =
            self.prompt(&messages, GenerationPrompt::Add, &options.extra_context)?;
        let ids = encode(&prompt, self.engine.tokenizer(), self.content_tokens)?;
        let tail = template_tail(&prompt);
        let ReplyConstraints { constraint, form, checks, relaxed, recovery } =
            self.reply_rules(self.processor.opens_reasoning(tail)).constraints(&mut options)?;
        // Without a grammar, a call cannot be required.
        let call_required =
            form.is_some() && matches!(options.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        let parser = self.parser_options(&options.tool_choice, form, tail, recovery);
        let cancel = options.cancel.child();
        let on_cancel = options.on_cancel;
        let params = generate_params(options, constraint, cancel.clone());
        let mut state = self.shared.lock();
        let resampling = checks.map(|checks| {
            Resampling::new(checks, params.clone(), &state.session.config().sampler, ids.len())
        });
        let generation = state.session.submit(&ids, params)?;
        let call_ids = FreshCallIds::new(self.preface.messages.iter().chain(&state.history).chain(&messages));
        drop(state);
        let setup = TurnSetup {
            shared: self.shared.begin(cancel.clone()),
            cancel,
            on_cancel,
            messages,
            reader: ReplyReader::new(self.processor, parser, call_ids),
            resampling,
            call_required,
            relaxed,
            polyfills,
            tokenizer: self.engine.tokenizer().clone(),
        };
        Ok(Turn::new(setup, generation))
    }

    fn parser_options(
        &self,
        choice: &ToolChoice,
        form: Option<ReplyForm>,
        tail: &str,
        recovery: Recovery,
    ) -> ParserOptions {
        let calls = match choice {
            ToolChoice::None => ReadCalls::Never,
            _ => ReadCalls::WhenDeclared,
        };
        ParserOptions {
            tools: Arc::clone(&self.tools),
            calls,
            form,
            tokens: self.tokens.clone(),
            prompt_tail: Some(tail.into()),
            on_malformed: self.on_malformed,
            on_unfinished: self.on_malformed,
            recovery,
            ..ParserOptions::default()
        }
    }

    fn reply_rules(&self, in_reasoning: bool) -> ReplyRules<'_> {
        ReplyRules {
            engine: &self.engine,
            processor: self.processor,
            tools: &self.tools,
            tokens: &self.tokens,
            constrain_calls: self.constrain_calls,
            in_reasoning,
        }
    }

    /// Template variables that set the requested thinking mode.
    fn thinking_variables(&self, thinking: ThinkingConfig) -> Result<Map<String, Value>> {
        if thinking.is_default() {
            return Ok(Map::new());
        }
        let switch = self.template.capabilities().thinking.map(|switch| switch.variable);
        let has_channel = !self.processor.channels().is_empty();
        thinking.variables(ModelThinking { name: self.engine.name(), has_channel, switch })
    }

    /// Cancels the running turn, if there is one: the conversation is as before it.
    pub fn abort(&mut self) {
        self.shared.lock().end_turn();
    }

    /// Returns the messages and tools as data, without the running turn: for a file, or to edit them.
    pub fn saved(&self) -> SavedConversation {
        let Preface { messages, tools, .. } = self.preface.clone();
        SavedConversation { tools, preface: messages, history: self.history() }
    }

    /// Replaces the messages of preface and history. The tools stay those of this conversation. A running turn is cancelled.
    pub fn restore(&mut self, saved: SavedConversation) {
        self.set_history(saved.history);
        self.preface.messages = saved.preface;
    }

    /// Creates a conversation with the same configuration and history, without the running turn. It shares the pages of the KV cache.
    ///
    /// # Errors
    /// When the engine has stopped.
    pub fn fork(&self) -> Result<Self> {
        let state = self.shared.lock();
        Ok(Self {
            engine: self.engine.clone(),
            shared: Shared::with_history(state.session.fork()?, state.history.clone()),
            template: self.template.clone(),
            processor: self.processor,
            tokens: self.tokens.clone(),
            on_malformed: self.on_malformed,
            content_tokens: self.content_tokens,
            constrain_calls: self.constrain_calls,
            preface: self.preface.clone(),
            tools: self.tools.clone(),
        })
    }

    /// Runs the prompt of the history and `messages` ahead of a turn that begins with them; waits for it. The history is unchanged. A
    /// running turn is cancelled.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn prefill(&mut self, messages: impl IntoMessages) -> Result<PrefillStats> {
        self.abort();
        let prompt = self.prompt(&messages.into_messages()?, GenerationPrompt::Omit, &Map::new())?.prompt;
        let ids = encode(&prompt, self.engine.tokenizer(), self.content_tokens)?;
        Ok(self.shared.lock().session.sync(&ids, &CancelHandle::new())?)
    }

    /// Counts the tokens of the prompt of a turn with `messages`: preface, history, messages and the opening of the reply. The context
    /// has [`Engine::context_tokens`].
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn count_tokens(&self, messages: impl IntoMessages) -> Result<usize> {
        Ok(self.render(messages, GenerationPrompt::Add)?.ids.len())
    }

    /// Renders the prompt of a turn with these messages without running it: text, ids and masks.
    ///
    /// # Errors
    /// When a message cannot be converted, or the template rejects the conversation.
    pub fn render(
        &self,
        messages: impl IntoMessages,
        generation: GenerationPrompt,
    ) -> Result<RenderedPrompt> {
        let prompt = self.prompt(&messages.into_messages()?, generation, &Map::new())?;
        RenderedPrompt::new(&prompt, self.engine.tokenizer(), self.content_tokens)
    }

    /// Messages sent and received, without those of the preface.
    pub fn history(&self) -> Vec<Message> {
        self.shared.lock().history.clone()
    }

    /// Replaces the history, for example by a saved one. A running turn is cancelled.
    pub fn set_history(&mut self, history: Vec<Message>) {
        let mut state = self.shared.lock();
        state.end_turn();
        state.history = history;
    }

    /// Replaces the messages of the preface, for example by another system prompt; the history stays. A running turn is cancelled.
    pub fn set_preface_messages(&mut self, messages: Vec<Message>) {
        self.abort();
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
    pub fn processor(&self) -> &'static dyn ModelDataProcessor {
        self.processor
    }

    /// The engine that runs the turns.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Tokens of the last turn, prompt and reply: see [`lm_session::Session::tokens`].
    pub fn tokens(&self) -> Vec<TokenId> {
        self.shared.lock().session.tokens()
    }

    fn prompt(
        &self,
        messages: &[Message],
        generation_prompt: GenerationPrompt,
        extra_context: &Map<String, Value>,
    ) -> Result<PolyfilledPrompt> {
        let state = self.shared.lock();
        let all = self.preface.messages.iter().chain(&state.history).chain(messages);
        let messages = all.map(|message| self.processor.message_to_template_input(message));
        let messages = messages.collect::<lm_processors::Result<Vec<_>>>()?;
        drop(state);
        let mut variables = self.preface.extra_context.clone();
        variables.extend(extra_context.clone());
        let tools = self.processor.format_tools(&self.tools);
        let input =
            RenderInput { messages: &messages, tools: &tools, generation_prompt, extra_context: &variables };
        Ok(self.template.render(&input)?)
    }
}

/// A turn that is about to start; see [`Conversation::turn`].
#[must_use = "a turn runs after `start`"]
pub struct TurnBuilder<'a, M> {
    conversation: &'a mut Conversation,
    message: M,
    options: TurnOptions,
}

impl<M: IntoMessages> TurnBuilder<'_, M> {
    /// Sets all options of the turn.
    pub fn options(self, options: TurnOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the effect of a cancellation on the history.
    pub fn on_cancel(mut self, on_cancel: OnCancel) -> Self {
        self.options.on_cancel = on_cancel;
        self
    }

    /// Starts the turn: [`Conversation::stream`].
    ///
    /// # Errors
    /// Those of [`Conversation::stream`].
    pub fn start(self) -> Result<Turn> {
        self.conversation.stream(self.message, self.options)
    }
}

fn generate_params(
    options: TurnOptions,
    constraint: Option<Box<dyn Constraint>>,
    cancel: CancelHandle,
) -> GenerateParams {
    let TurnOptions { sampler, max_output_tokens, stop, logprobs, deadline, priority, .. } = options;
    GenerateParams {
        sampler,
        max_output_tokens,
        stop,
        constraint,
        cancel,
        deadline,
        priority,
        continued: 0,
        logprobs,
    }
}

/// The template's own text at the end of a prompt.
fn template_tail(prompt: &Prompt) -> &str {
    let last = prompt.segments.last().filter(|segment| segment.origin == Origin::Template);
    last.map_or("", |segment| &segment.text)
}

/// Detects the dialect from the template's markers; where tools are declared in text instead of by the template, it is the dialect of
/// that text.
fn dialect(
    template: &PolyfilledTemplate,
    model: &str,
    tools: &[ToolSpec],
) -> &'static dyn ModelDataProcessor {
    let declared = by_name(TEXT_DIALECT).filter(|_| template.declares_in_text(tools));
    declared.unwrap_or_else(|| detect(template.template().source(), model))
}

/// Returns the model's own template: its template for tools when there are any.
fn model_template(engine: &Engine, preface: &Preface) -> Result<PromptTemplate> {
    let templates =
        ChatTemplates::from_files(engine.chat_template().into_iter().flat_map(|files| files.iter()))?;
    if templates.names().next().is_none() {
        return Err(Error::NoChatTemplate { model: engine.name().to_owned() });
    }
    let choice = if preface.tools.is_empty() { TemplateChoice::Default } else { TemplateChoice::Tools };
    Ok(templates.get(choice)?)
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("processor", &self.processor.name())
            .field("history", &self.history())
            .finish_non_exhaustive()
    }
}
