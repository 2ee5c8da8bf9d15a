//! Configuration of a conversation, and options of one turn.

use std::fmt;
use std::time::Instant;

use lm_processors::{
    CallIdForm, Calls, Channel, OnMalformed, Processor, ResponseFormat, ToolChoice, UnmarkedCalls,
};
use lm_session::{CancelHandle, Constraint, Engine, ImageOptions, SamplerParams, SessionConfig};
use lm_template::{Map, Polyfills, Preface, PromptTemplate, Value};

use crate::media::MediaSettings;
use crate::overflow::Overflow;
use crate::rendered::ContentTokens;
use crate::thinking::ThinkingConfig;
use crate::tools_note::ToolsNote;

/// Configuration of a conversation. The default is greedy, with the model's own template and dialect.
#[derive(Clone, Default)]
pub struct ConversationConfig {
    /// Initial messages, tools and further variables of the template.
    pub preface: Preface,
    /// Sampler, stop strings and limits.
    pub session: SessionConfig,
    /// Replaces the model's chat template.
    pub template: Option<PromptTemplate>,
    /// Allowed changes of the conversation for features that the template lacks; all by default.
    /// [`RenderedPrompt::polyfills`](crate::RenderedPrompt::polyfills) lists the changes made.
    pub polyfills: Polyfills,
    /// Replaces the dialect detected from the chat template: by that of a family
    /// ([`lm_processors::by_name`]), or by a processor of the program.
    pub processor: Option<Processor>,
    /// Handling of a malformed tool call: the turn fails (the default), or the call becomes text.
    pub on_malformed: OnMalformed,
    /// Permission for added tokens of the tokenizer in messages and tools; denied by default.
    pub content_tokens: ContentTokens,
    /// Constraint of optional tool calls to the tools' schemas during generation.
    pub constrain_calls: ConstrainCalls,
    /// Reading of replies that are nothing but one JSON call, without the dialect's markers; `None` (the
    /// default): the dialect's rule.
    pub unmarked_calls: Option<UnmarkedCalls>,
    /// Instruction after the system message of prompts with tools; none by default.
    pub tools_note: ToolsNote,
    /// Channels that replace the dialect's: texts of a reply besides its answer, between markers. `None` (the
    /// default): the dialect's, which is `reasoning` if the model has one. An empty list disables channels.
    /// Thinking switches and limits apply to the first.
    ///
    /// The grammar of tool calls ignores them: with tools, a marker that is an added token outside of the
    /// dialect cannot be generated unless [`ConstrainCalls::No`] is set.
    pub channels: Option<Vec<Channel>>,
    /// Reasoning before the answers; the template's default by default.
    pub thinking: ThinkingConfig,
    /// Outcome of a reply that reaches a token limit: complete by default.
    pub on_token_limit: OnTokenLimit,
    /// Handling of a prompt that exceeds the context: an error by default.
    pub overflow: Overflow,
    /// Prefills the preface in [`Conversation::new`](crate::Conversation::new), which waits for it; false by
    /// default.
    pub prefill_on_init: bool,
    /// Images and audio in messages, if the model reads them: files are not opened by default.
    pub media: MediaSettings,
    /// Form of the ids of calls whose model writes none; counted by default.
    pub call_ids: CallIdForm,
}

/// Outcome of a reply that reaches its token limit or the end of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTokenLimit {
    /// The turn is complete, and [`Finished::reason`](crate::Finished::reason) names the limit.
    /// [`Conversation::continue_reply`](crate::Conversation::continue_reply) continues it.
    #[default]
    Finish,
    /// The turn fails with [`Error::TokenLimit`](crate::Error::TokenLimit).
    Error,
}

/// Constraint of optional tool calls (`tool_choice` auto) to the tools' schemas during generation.
///
/// Turns that require a call, forbid calls or ask for a format are always constrained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConstrainCalls {
    /// Constrained: a started call names a declared tool, matches its schema as far as a grammar can express
    /// it, and ends within the token limit.
    #[default]
    Yes,
    /// Unconstrained: the model's text is parsed, and may not be a valid call.
    No,
}

impl ConversationConfig {
    /// Creates the config recommended by the model: the default, with the sampler of its generation config,
    /// or [`SamplerParams::for_chat`] for a model with a chat template and without such a config.
    pub fn from_engine(engine: &Engine) -> Self {
        let config = engine.generation_config();
        let sampler = match engine.chat_template() {
            Some(_) => SamplerParams::for_chat(config),
            None => SamplerParams::from_generation_config(config),
        };
        Self { session: SessionConfig { sampler, ..SessionConfig::default() }, ..Self::default() }
    }

    /// Replaces the preface.
    pub fn with_preface(mut self, preface: Preface) -> Self {
        self.preface = preface;
        self
    }
}

impl fmt::Debug for ConversationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationConfig")
            .field("preface", &self.preface)
            .field("session", &self.session)
            .field("template", &self.template.as_ref().map(PromptTemplate::source))
            .field("polyfills", &self.polyfills)
            .field("processor", &self.processor.as_ref().map(|processor| processor.name()))
            .field("on_malformed", &self.on_malformed)
            .field("content_tokens", &self.content_tokens)
            .field("constrain_calls", &self.constrain_calls)
            .field("unmarked_calls", &self.unmarked_calls)
            .field("tools_note", &self.tools_note)
            .field("channels", &self.channels)
            .field("thinking", &self.thinking)
            .field("on_token_limit", &self.on_token_limit)
            .field("overflow", &self.overflow)
            .field("prefill_on_init", &self.prefill_on_init)
            .field("media", &self.media)
            .field("call_ids", &self.call_ids)
            .finish()
    }
}

/// Treatment of a call that a token limit cut off, and that its grammar then closed with the shortest valid
/// values: `{"text": ""}` instead of the text that the model was writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutCalls {
    /// It is not among the calls; [`Reply::cut_call`](crate::Reply::cut_call) has the part that the model
    /// wrote.
    #[default]
    Omit,
    /// It is among the calls. Its arguments fit, and are not the model's: it must not run unseen.
    Complete,
}

/// Effect of a cancelled turn on the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCancel {
    /// The history is as before the turn.
    #[default]
    Rollback,
    /// The turn's messages and the beginning of the reply are added to the history: text and reasoning,
    /// without calls. The turn ends with [`ConversationEvent::Finished`](crate::ConversationEvent::Finished).
    /// A turn that the conversation ends itself (`abort`, `set_history`, the start of another turn) leaves no
    /// trace.
    KeepPartial,
}

/// Options of one turn, on top of its conversation's configuration.
#[derive(Debug, Clone, Default)]
pub struct TurnOptions {
    /// Replaces the conversation's sampler.
    pub sampler: Option<SamplerParams>,
    /// Replaces the conversation's limit.
    pub max_output_tokens: Option<usize>,
    /// Stop strings in addition to the conversation's.
    pub stop: Vec<String>,
    /// Variables of the template, such as `enable_thinking`; they override the preface's.
    pub extra_context: Map<String, Value>,
    /// Tool choice; auto by default.
    pub tool_choice: ToolChoice,
    /// Number of tool calls; any by default.
    pub calls: Calls,
    /// Treatment of a call that a token limit cut off; omitted by default.
    pub cut_calls: CutCalls,
    /// Format of a text answer; free by default.
    pub response_format: Option<ResponseFormat>,
    /// Reasoning before the answer, and its token limit; the conversation's by default.
    pub thinking: ThinkingConfig,
    /// Replaces the conversation's handling of malformed tool calls.
    pub on_malformed: Option<OnMalformed>,
    /// Replaces the conversation's constraint of optional tool calls.
    pub constrain_calls: Option<ConstrainCalls>,
    /// Replaces the conversation's outcome of a reply that reaches a token limit.
    pub on_token_limit: Option<OnTokenLimit>,
    /// Replaces the conversation's handling of a prompt that exceeds the context.
    pub overflow: Option<Overflow>,
    /// Reports [`ConversationEvent::Logprobs`](crate::ConversationEvent::Logprobs), with this many most
    /// probable tokens each; `None` (the default): not reported.
    pub logprobs: Option<usize>,
    /// Reports [`ConversationEvent::PromptLogprobs`](crate::ConversationEvent::PromptLogprobs), with this
    /// many most probable tokens each. The whole prompt then runs, even if it is cached. `None` (the
    /// default): not reported.
    pub prompt_logprobs: Option<usize>,
    /// Group of the turn, which takes a [`CancelHandle::child`] of it.
    /// [`Turn::canceller`](crate::Turn::canceller) cancels the turn alone.
    pub cancel: CancelHandle,
    /// Effect of a cancellation, or of a passed deadline, on the history; none by default.
    pub on_cancel: OnCancel,
    /// Time at which the turn ends with [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded); never by
    /// default.
    pub deadline: Option<Instant>,
    /// Turns of a higher priority are admitted first, prefilled first and preempted last. Default 0.
    pub priority: i32,
    /// Options of the images of the turn's messages, in place of the conversation's
    /// ([`MediaSettings::images`]). The messages keep them in later turns, until the history is replaced.
    pub media: Option<ImageOptions>,
    /// Replaces the conversation's processor in this turn, such as one with other settings. The history is
    /// rendered by it, too, and the reply is read by it.
    pub processor: Option<Processor>,
    /// User-defined constraint from the first token of the reply; it replaces the one derived from
    /// `tool_choice`, `calls` and `response_format`.
    pub constraint: Option<Box<dyn Constraint>>,
}
