//! Conversation: its history, and the turns that add to it.

use std::sync::Arc;

use lm_processors::{
    FreshCallIds, MarkerTokens, ModelDataProcessor, OnMalformed, ParserOptions, ReadCalls, ToolChoice,
    by_name, detect,
};
use lm_session::{CancelHandle, Engine, GenerateParams, PrefillStats, Session};
use lm_template::{
    ChatTemplates, GenerationPrompt, Map, Message, Origin, PolyfilledPrompt, PolyfilledTemplate, Preface,
    Prompt, PromptTemplate, RenderInput, TemplateChoice, ToolSpec, Value,
};

use crate::config::{ConstrainCalls, ConversationConfig, TurnOptions};
use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply};
use crate::into_messages::IntoMessages;
use crate::marker_tokens::marker_tokens;
use crate::rendered::{ContentTokens, RenderedPrompt, encode};
use crate::reply_reader::ReplyReader;
use crate::reply_rules::{ReplyConstraints, ReplyRules};
use crate::resampling::Resampling;
use crate::stream::Stream;
use crate::thinking::{ModelThinking, ThinkingConfig};
use crate::turn::Turn;

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
    session: Session,
    template: PolyfilledTemplate,
    processor: &'static dyn ModelDataProcessor,
    /// The model's added tokens that occur in the dialect's markers.
    tokens: MarkerTokens,
    on_malformed: OnMalformed,
    content_tokens: ContentTokens,
    constrain_calls: ConstrainCalls,
    preface: Preface,
    tools: Arc<[ToolSpec]>,
    history: Vec<Message>,
    /// The running turn.
    turn: Option<Turn>,
    cancel: CancelHandle,
    /// True if the last turn was cancelled by the handle, which stays set until the next turn.
    was_cancelled: bool,
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
            session: engine.session(session)?,
            template,
            processor,
            tokens: marker_tokens(processor, engine.tokenizer()),
            on_malformed,
            content_tokens,
            constrain_calls,
            tools: preface.tools.clone().into(),
            preface,
            history: Vec::new(),
            turn: None,
            cancel: CancelHandle::new(),
            was_cancelled: false,
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
        for event in self.stream(message, turn)? {
            if let ConversationEvent::Finished(reply) = event? {
                return Ok(reply);
            }
        }
        Err(Error::Cancelled)
    }

    /// Sends a message and streams the reply. Returns after the prefill.
    ///
    /// The turn is added to the history with its last event. Dropping the stream before that cancels it.
    ///
    /// # Errors
    /// See [`Error`]. The conversation is then unchanged; so it is after an error in the stream.
    pub fn stream(&mut self, message: impl IntoMessages, turn: TurnOptions) -> Result<Stream<'_>> {
        self.begin(message, turn)?;
        Ok(Stream::new(self))
    }

    /// [`stream`](Self::stream) without the borrow: its events come from [`next_event`](Self::next_event), and [`abort`](Self::abort) ends
    /// it early. A turn that is still running is ended first.
    ///
    /// # Errors
    /// See [`Error`]. The conversation is then unchanged.
    pub fn begin(&mut self, message: impl IntoMessages, turn: TurnOptions) -> Result<()> {
        self.abort();
        let messages = message.into_messages()?;
        if messages.is_empty() {
            return Err(Error::NoMessage);
        }
        if std::mem::take(&mut self.was_cancelled) {
            self.cancel.reset();
        }
        let mut turn = turn;
        turn.extra_context.extend(self.thinking_variables(turn.thinking)?);
        let PolyfilledPrompt { prompt, polyfills } =
            self.prompt(&messages, GenerationPrompt::Add, &turn.extra_context)?;
        let tail = template_tail(&prompt);
        let in_reasoning = self.processor.opens_reasoning(tail);
        let calls = match turn.tool_choice {
            ToolChoice::None => ReadCalls::Never,
            _ => ReadCalls::WhenDeclared,
        };
        let ReplyConstraints { constraint, form, checks, relaxed, recovery } =
            self.reply_rules(in_reasoning).constraints(&mut turn)?;
        let prefill = self.run_prompt(&prompt)?;
        let TurnOptions { sampler, max_output_tokens, stop, logprobs, .. } = turn;
        let cancel = self.cancel.clone();
        let params =
            GenerateParams { sampler, max_output_tokens, stop, constraint, cancel, continued: 0, logprobs };
        let resampling = checks.map(|checks| Resampling::new(checks, params.clone(), prefill, &self.session));
        self.session.begin(params)?;
        let options = ParserOptions {
            tools: Arc::clone(&self.tools),
            calls,
            form,
            tokens: self.tokens.clone(),
            prompt_tail: Some(tail.into()),
            on_malformed: self.on_malformed,
            on_unfinished: self.on_malformed,
            recovery,
            ..ParserOptions::default()
        };
        let call_ids = FreshCallIds::new(self.preface.messages.iter().chain(&self.history).chain(&messages));
        let turn = Turn::new(messages, ReplyReader::new(self.processor, options, call_ids));
        self.turn = Some(turn.checked(resampling, relaxed).polyfilled(polyfills));
        Ok(())
    }

    /// Prefills the session with the prompt's tokens.
    fn run_prompt(&mut self, prompt: &Prompt) -> Result<PrefillStats> {
        let ids = encode(prompt, self.session.engine().tokenizer(), self.content_tokens)?;
        match self.session.sync(&ids, &self.cancel) {
            Ok(prefill) => Ok(prefill),
            Err(lm_session::Error::Cancelled) => {
                self.was_cancelled = true;
                Err(Error::Cancelled)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn reply_rules(&self, in_reasoning: bool) -> ReplyRules<'_> {
        ReplyRules {
            engine: self.session.engine(),
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
        thinking.variables(ModelThinking { name: self.session.engine().name(), has_channel, switch })
    }

    /// Waits for the next event of the running turn. The last one is [`ConversationEvent::Finished`], with which the turn is added to the
    /// history, or an error, after which the conversation is as before the turn. Returns `None` when there is no turn.
    pub fn next_event(&mut self) -> Option<Result<ConversationEvent>> {
        let mut turn = self.turn.take()?;
        let event = turn.next(&mut self.session);
        match &event {
            Ok(ConversationEvent::Finished(reply)) => {
                self.history.extend(turn.messages);
                self.history.push(reply.message.clone());
            }
            Ok(_) => self.turn = Some(turn),
            Err(error) => {
                self.was_cancelled = matches!(error, Error::Cancelled);
                self.session.abort();
            }
        }
        Some(event)
    }

    /// Ends the running turn, if there is one: the conversation is as before it.
    pub fn abort(&mut self) {
        if self.turn.take().is_some() {
            self.session.abort();
        }
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
        RenderedPrompt::new(&prompt, self.session.engine().tokenizer(), self.content_tokens)
    }

    /// Messages sent and received, without those of the preface.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Replaces the history, for example by a saved one.
    pub fn set_history(&mut self, history: Vec<Message>) {
        self.history = history;
    }

    /// Replaces the messages of the preface, for example by another system prompt; the history stays.
    pub fn set_preface_messages(&mut self, messages: Vec<Message>) {
        self.preface.messages = messages;
    }

    /// Clears the history; the preface stays.
    pub fn reset(&mut self) {
        self.history.clear();
    }

    /// Returns a handle that cancels the running turn, or the next one. A later turn clears it.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
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

    /// Session that runs the turns, for its cache and limits.
    pub fn session(&self) -> &Session {
        &self.session
    }

    fn prompt(
        &self,
        messages: &[Message],
        generation_prompt: GenerationPrompt,
        extra_context: &Map<String, Value>,
    ) -> Result<PolyfilledPrompt> {
        let all = self.preface.messages.iter().chain(&self.history).chain(messages);
        let messages = all.map(|message| self.processor.message_to_template_input(message));
        let messages = messages.collect::<lm_processors::Result<Vec<_>>>()?;
        let mut variables = self.preface.extra_context.clone();
        variables.extend(extra_context.clone());
        let tools = self.processor.format_tools(&self.tools);
        let input =
            RenderInput { messages: &messages, tools: &tools, generation_prompt, extra_context: &variables };
        Ok(self.template.render(&input)?)
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
            .field("session", &self.session)
            .field("processor", &self.processor.name())
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}
