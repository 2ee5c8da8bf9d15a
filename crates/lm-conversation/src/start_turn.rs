//! Start of a turn: prompt, constraint and request.

use std::sync::Arc;

use lm_processors::{
    FreshCallIds, ParserOptions, ReadCalls, Recovery, ReplyForm, ResponseFormat, ToolChoice,
};
use lm_session::{CancelHandle, Constraint, GenerateParams};
use lm_template::{GenerationPrompt, Map, Origin, PolyfilledPrompt, Prompt, Value};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::{OnCancel, TurnOptions};
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::event::Reply;
use crate::into_messages::IntoMessages;
use crate::rendered::encode;
use crate::reply_reader::ReplyReader;
use crate::reply_rules::{ReplyConstraints, ReplyRules};
use crate::resampling::Resampling;
use crate::thinking::{ModelThinking, ThinkingConfig};
use crate::turn::{Turn, TurnSetup};
use crate::typed_answer;

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
        let ReplyConstraints { constraint, form, checks, unenforced, recovery } =
            self.reply_rules(self.processor.opens_reasoning(tail)).constraints(&mut options)?;
        // Without a grammar, a call cannot be required.
        let call_required =
            form.is_some() && matches!(options.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        let parser = self.parser_options(&options.tool_choice, form, tail, recovery);
        let cancel = options.cancel.child();
        let on_cancel = options.on_cancel;
        let mut params = generate_params(options, constraint, cancel.clone());
        let mut state = self.shared.lock();
        let resampling = checks
            .map(|checks| Resampling::new(checks, &mut params, &state.session.config().sampler, ids.len()));
        let resampling = resampling.transpose()?;
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
            unenforced,
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
    GenerateParams {
        sampler: options.sampler,
        max_output_tokens: options.max_output_tokens,
        stop: options.stop,
        deadline: options.deadline,
        priority: options.priority,
        logprobs: options.logprobs,
        constraint,
        cancel,
        ..GenerateParams::default()
    }
}

/// The template's own text at the end of a prompt.
fn template_tail(prompt: &Prompt) -> &str {
    let last = prompt.segments.last().filter(|segment| segment.origin == Origin::Template);
    last.map_or("", |segment| &segment.text)
}
