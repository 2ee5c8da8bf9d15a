//! Start of a turn: prompt, constraint and request.

use std::sync::Arc;

use lm_processors::{Channel, FreshCallIds, ParserOptions, ReadCalls, Recovery, ReplyForm, ToolChoice};
use lm_session::{CancelHandle, Constraint, GenerateParams};
use lm_template::{Map, THINKING_VARIABLES, ThinkingSwitch, Value};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::{OnCancel, TurnOptions};
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::event::Reply;
use crate::into_messages::IntoMessages;
use crate::reply_reader::{Piece, ReplyReader};
use crate::reply_rules::{ReplyConstraints, ReplyRules};
use crate::resampling::Resampling;
use crate::thinking::{ModelThinking, ThinkingConfig, ThinkingMode};
use crate::turn::Turn;
use crate::turn_progress::TurnSetup;
use crate::turn_prompt::TurnPrompt;
use crate::turn_settings::TurnSettings;
use crate::typed_answer::answer_format;
use crate::window::Window;

impl Conversation {
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
    /// [`Error::InvalidAnswer`] for an answer cut by a limit; see [`Error`]. The turn is then in the history.
    pub fn ask<T: JsonSchema + DeserializeOwned>(&mut self, message: impl IntoMessages) -> Result<T> {
        let format = Some(answer_format::<T>());
        let options =
            TurnOptions { response_format: format, tool_choice: ToolChoice::None, ..TurnOptions::default() };
        let reply = self.send_with(message, options)?;
        let text = reply.text();
        let invalid = |message: String, text| Error::InvalidAnswer { path: String::new(), message, text };
        if reply.finish.is_cut_off() {
            // Its end is not the model's, even if it is complete JSON.
            return Err(invalid("it was cut off by the token limit".to_owned(), text));
        }
        serde_json::from_str(&text).map_err(|error| invalid(error.to_string(), text))
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

    /// Sends a message and streams the reply. Returns at once; the prompt is prefilled in the background. A
    /// turn that is still running is cancelled first; a [detached](Turn::detach) one is waited for.
    ///
    /// # Errors
    /// See [`Error`]. The conversation is then unchanged, as after an error in the turn.
    pub fn stream(&mut self, message: impl IntoMessages, mut options: TurnOptions) -> Result<Turn> {
        let messages = message.into_messages()?;
        if messages.is_empty() {
            return Err(Error::NoMessage);
        }
        if let Some(processor) = options.processor.take() {
            return self.with_processor(processor).stream(messages, options);
        }
        self.end_running();
        let settings = self.turn_settings(&mut options)?;
        let limit = options.max_output_tokens.or_else(|| self.output_limit());
        let turn_prompt = self.open(messages, &options, settings.overflow, limit)?;
        self.start(turn_prompt, settings, options)
    }

    /// Continues the last reply, for example one that was cut off by a token limit or a cancellation: the
    /// turn extends the same message, which takes its place in the history when the turn is complete. Events
    /// have only the new text.
    ///
    /// After a turn of this conversation that was cut off, the reply continues from its last token: with a
    /// greedy sampler, it becomes the reply that was not cut off, and no token is prefilled again. Tokens
    /// that ended a constrained text within the limit ([`Steered`](lm_session::Steered)) are removed.
    /// Otherwise, as after [`set_history`](Self::set_history), the prompt is rendered up to the end of the
    /// message's text.
    ///
    /// Options are not inherited from the turn that started the reply: a response format has to be set again.
    /// [`TurnOptions::max_output_tokens`] limits the new tokens;
    /// [`Usage::output_tokens`](crate::Usage::output_tokens) also counts the known ones.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// use lm_conversation::{FinishReason, TurnOptions};
    ///
    /// # let engine = lm_session::testing::scripted_engine(["One, two, three."]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// let short = TurnOptions { max_output_tokens: Some(4), ..TurnOptions::default() };
    /// let reply = conversation.send_with("Count.", short)?;
    /// assert_eq!(reply.finish.reason, FinishReason::MaxOutputTokens);
    /// let reply = conversation.continue_reply(TurnOptions::default())?.into_reply()?;
    /// assert_eq!(reply.text(), "One, two, three.");
    /// assert_eq!(conversation.history()[1], reply.message);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoReply`] when the last message is not the assistant's, has no text or has tool calls;
    /// [`lm_template::Error::ContinueFinalMessage`] when the template does not render its text unchanged; see
    /// [`Error`].
    pub fn continue_reply(&mut self, mut options: TurnOptions) -> Result<Turn> {
        if let Some(processor) = options.processor.take() {
            return self.with_processor(processor).continue_reply(options);
        }
        self.end_running();
        let settings = self.turn_settings(&mut options)?;
        let turn_prompt = self.reopen(&options)?;
        let limit = options.max_output_tokens.or_else(|| self.output_limit());
        options.max_output_tokens = limit.map(|limit| limit.saturating_add(turn_prompt.written));
        self.start(turn_prompt, settings, options)
    }

    /// Token limit of the session's replies.
    fn output_limit(&self) -> Option<usize> {
        self.shared.lock().session.config().max_output_tokens
    }

    /// Settings of a turn; adds the thinking mode to the template's variables, and reads it from them.
    pub(crate) fn turn_settings(&self, options: &mut TurnOptions) -> Result<TurnSettings> {
        let mut settings = self.settings.of_turn(options);
        let given = |name: &str| {
            options.extra_context.get(name).or_else(|| self.preface.extra_context.get(name)).cloned()
        };
        let switched_off = THINKING_VARIABLES.into_iter().find_map(given) == Some(Value::Bool(false));
        if switched_off && settings.thinking.mode == ThinkingMode::Default {
            settings.thinking.mode = ThinkingMode::Off;
        }
        options.thinking = settings.thinking;
        options.extra_context.extend(self.thinking_variables(settings.thinking)?);
        Ok(settings)
    }

    fn start(
        &mut self,
        turn_prompt: TurnPrompt,
        settings: TurnSettings,
        mut options: TurnOptions,
    ) -> Result<Turn> {
        let TurnPrompt { ids, written, tail, .. } = &turn_prompt;
        let ReplyConstraints { constraint, form, checks, unenforced, recovery } =
            self.reply_rules(tail, &settings, &options.extra_context).constraints(&mut options)?;
        // Without a grammar, a call cannot be required.
        let call_required =
            form.is_some() && matches!(options.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        let parser = self.parser_options(&options.tool_choice, form, tail, recovery, &settings);
        let cancel = options.cancel.child();
        let (on_cancel, cut_calls) = (options.on_cancel, options.cut_calls);
        let params = generate_params(options, constraint, cancel.clone());
        let mut params = GenerateParams { continued: *written, ..params };
        let mut state = self.shared.lock();
        let prompt_tokens = ids.len() - written;
        let resampling = checks.map(|checks| {
            Resampling::new(checks, &mut params, &state.session.config().sampler, prompt_tokens)
        });
        let mut resampling = resampling.transpose()?;
        let window = match &turn_prompt.sinks {
            Some(sinks) if resampling.is_none() => {
                Some(Window::new(sinks.clone(), &turn_prompt, &mut params, &state.session)?)
            }
            _ => None,
        };
        let prompt = lm_session::Prompt { ids, media: &turn_prompt.media };
        let mut generation = state.session.submit(prompt, params)?;
        let past = self.preface.messages.iter().chain(&state.history).chain(&turn_prompt.change.messages);
        let mut reader = ReplyReader::new(
            self.processor.clone(),
            parser,
            cut_calls,
            FreshCallIds::of_form(settings.call_ids, past),
        );
        drop(state);
        let pieces: Vec<Piece> = generation.take_continued().into_iter().filter_map(Piece::of).collect();
        pieces.iter().try_for_each(|piece| reader.push(piece, &mut Vec::new()))?;
        if let Some(resampling) = &mut resampling {
            resampling.resume(pieces);
        }
        let setup = TurnSetup {
            engine: self.engine.clone(),
            shared: self.shared.begin(cancel.clone()),
            cancel,
            on_cancel,
            on_token_limit: settings.on_token_limit,
            turn_prompt,
            reader,
            resampling,
            window,
            call_required,
            unenforced,
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
        settings: &TurnSettings,
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
            channels: settings.channels.clone(),
            on_malformed: settings.on_malformed,
            on_unfinished: settings.on_malformed,
            unmarked: settings.unmarked_calls,
            recovery,
            ..ParserOptions::default()
        }
    }

    fn reply_rules(
        &self,
        tail: &str,
        settings: &TurnSettings,
        extra_context: &Map<String, Value>,
    ) -> ReplyRules<'_> {
        let thinks = |switch: ThinkingSwitch| {
            let given = extra_context.get(switch.variable);
            let given = given.or_else(|| self.preface.extra_context.get(switch.variable));
            given.map_or(switch.default, |given| given == true)
        };
        let switch = self.template.capabilities().thinking;
        ReplyRules {
            engine: &self.engine,
            processor: &*self.processor,
            tools: &self.tools,
            tokens: &self.tokens,
            constrain_calls: settings.constrain_calls,
            channels: settings.channels.clone(),
            reasons: switch.map_or_else(|| self.template_has_reasoning(), thinks),
            in_reasoning: self.processor.opens_reasoning(tail),
            in_channel: self.first_channel().is_some_and(|channel| is_open(&channel, tail)),
        }
    }

    /// Returns true if the caller has named the channels, or the template mentions a marker of the reasoning
    /// channel: it opens the channel, or writes or cuts the reasoning of earlier turns. A dialect is shared
    /// by models that reason and models that do not.
    fn template_has_reasoning(&self) -> bool {
        let source = self.template.template().source();
        let mentions = |marker: &str| !marker.trim().is_empty() && source.contains(marker.trim());
        self.settings.channels.is_some()
            || self.first_channel().is_some_and(|channel| mentions(&channel.start) || mentions(&channel.end))
    }

    /// Channel of the reasoning.
    fn first_channel(&self) -> Option<Channel> {
        match &self.settings.channels {
            Some(channels) => channels.first().cloned(),
            None => self.processor.channels().into_iter().next(),
        }
    }

    /// Returns true if the model's dialect, or the configuration, has a channel for reasoning.
    pub fn has_reasoning_channel(&self) -> bool {
        self.first_channel().is_some()
    }

    /// Returns true if the template has a switch for the reasoning that the model's dialect reads.
    pub fn switches_thinking(&self) -> bool {
        self.template.capabilities().thinking.is_some() && self.has_reasoning_channel()
    }

    /// Template variables that set the requested thinking mode.
    pub(crate) fn thinking_variables(&self, thinking: ThinkingConfig) -> Result<Map<String, Value>> {
        if thinking.is_default() {
            return Ok(Map::new());
        }
        let switch = self.template.capabilities().thinking.map(|switch| switch.variable);
        let has_channel = self.has_reasoning_channel();
        thinking.variables(ModelThinking { name: self.engine.name(), has_channel, switch })
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
    /// Same errors as [`Conversation::stream`].
    pub fn start(self) -> Result<Turn> {
        self.conversation.stream(self.message, self.options)
    }
}

fn generate_params(
    options: TurnOptions,
    constraint: Option<Box<dyn Constraint>>,
    cancel: CancelHandle,
) -> GenerateParams {
    GenerateParams {
        sampler: options.sampler,
        max_output_tokens: options.max_output_tokens,
        stop: options.stop,
        deadline: options.deadline,
        priority: options.priority,
        logprobs: options.logprobs,
        prompt_logprobs: options.prompt_logprobs,
        constraint,
        cancel,
        ..GenerateParams::default()
    }
}

/// Returns true if a prompt that ends with `tail` leaves the channel open.
fn is_open(channel: &Channel, tail: &str) -> bool {
    let start = tail.rfind(&*channel.start);
    start.is_some_and(|start| !tail[start + channel.start.len()..].contains(&*channel.end))
}
