//! What a conversation starts from, and what one turn may do differently.

use std::fmt;

use lm_processors::{Calls, ModelDataProcessor, OnMalformed, ResponseFormat, ToolChoice};
use lm_session::{Constraint, Engine, SamplerParams, SessionConfig};
use lm_template::{Map, Polyfills, Preface, PromptTemplate, Value};

use crate::rendered::ContentTokens;
use crate::thinking::ThinkingConfig;

/// What a conversation starts from. The default is greedy, with the model's own template and dialect.
#[derive(Clone, Default)]
pub struct ConversationConfig {
    /// First messages, tools and further variables of the template.
    pub preface: Preface,
    /// Sampler, stop strings and limits.
    pub session: SessionConfig,
    /// In place of the model's chat template.
    pub template: Option<PromptTemplate>,
    /// What may be changed in the conversation where the template lacks a thing; all by default.
    /// [`RenderedPrompt::polyfills`](crate::RenderedPrompt::polyfills) names what was.
    pub polyfills: Polyfills,
    /// In place of the dialect found by the chat template.
    pub processor: Option<&'static dyn ModelDataProcessor>,
    /// What becomes of a malformed tool call: the turn fails (the default), or it is text.
    pub on_malformed: OnMalformed,
    /// Whether what messages and tools say can spell the tokenizer's added tokens; it cannot by default.
    pub content_tokens: ContentTokens,
    /// Whether the calls of a model that is free to call are held to the tools' schemas while they are written.
    pub constrain_calls: ConstrainCalls,
}

/// Whether the calls of a model that is free to call are held to the tools' schemas while they are written.
///
/// It says nothing of turns that require a call, forbid calls or ask for a format: those are always constrained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConstrainCalls {
    /// They are: a call that has begun is one of a declared tool, fits its schema as far as a grammar can say it, and ends
    /// before the tokens do.
    #[default]
    Yes,
    /// They are not: what the model writes is read, and may turn out to be no call.
    No,
}

impl ConversationConfig {
    /// The config a model's authors advise: the default, with the sampler of `generation_config.json`, which is greedy
    /// unless that says `do_sample`.
    pub fn from_engine(engine: &Engine) -> Self {
        let sampler = SamplerParams::from_generation_config(engine.generation_config());
        Self { session: SessionConfig { sampler, ..SessionConfig::default() }, ..Self::default() }
    }

    /// The same config with another preface.
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
            .field("processor", &self.processor.map(|processor| processor.name()))
            .field("on_malformed", &self.on_malformed)
            .field("content_tokens", &self.content_tokens)
            .field("constrain_calls", &self.constrain_calls)
            .finish()
    }
}

/// What one turn does differently from its conversation.
#[derive(Debug, Clone, Default)]
pub struct TurnOptions {
    /// In place of the conversation's sampler.
    pub sampler: Option<SamplerParams>,
    /// In place of the conversation's limit.
    pub max_output_tokens: Option<usize>,
    /// Stop strings besides the conversation's.
    pub stop: Vec<String>,
    /// Variables of the template, such as `enable_thinking`; they win over the preface's.
    pub extra_context: Map<String, Value>,
    /// Whether and which tools are called; as the model likes by default.
    pub tool_choice: ToolChoice,
    /// How many tools are called; any number by default.
    pub calls: Calls,
    /// What the answer is, where it is text; free by default.
    pub response_format: Option<ResponseFormat>,
    /// Whether and how long the model reasons before it answers.
    pub thinking: ThinkingConfig,
    /// A constraint of one's own, from the first token of the reply, in place of what `tool_choice`, `calls` and
    /// `response_format` would make.
    pub constraint: Option<Box<dyn Constraint>>,
}
