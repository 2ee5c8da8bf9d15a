//! What a conversation starts from, and what one turn may do differently.

use std::fmt;

use lm_processors::{ModelDataProcessor, OnMalformed};
use lm_session::{Engine, SamplerParams, SessionConfig};
use lm_template::{Map, Preface, PromptTemplate, Value};

use crate::rendered::ContentTokens;

/// What a conversation starts from. The default is greedy, with the model's own template and dialect.
#[derive(Clone, Default)]
pub struct ConversationConfig {
    /// First messages, tools and further variables of the template.
    pub preface: Preface,
    /// Sampler, stop strings and limits.
    pub session: SessionConfig,
    /// In place of the model's chat template.
    pub template: Option<PromptTemplate>,
    /// In place of the dialect found by the chat template.
    pub processor: Option<&'static dyn ModelDataProcessor>,
    /// What becomes of a malformed tool call: the turn fails (the default), or it is text.
    pub on_malformed: OnMalformed,
    /// Whether what messages and tools say can spell the tokenizer's added tokens; it cannot by default.
    pub content_tokens: ContentTokens,
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
            .field("processor", &self.processor.map(|processor| processor.name()))
            .field("on_malformed", &self.on_malformed)
            .field("content_tokens", &self.content_tokens)
            .finish()
    }
}

/// What one turn does differently from its conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnOptions {
    /// In place of the conversation's sampler.
    pub sampler: Option<SamplerParams>,
    /// In place of the conversation's limit.
    pub max_output_tokens: Option<usize>,
    /// Stop strings besides the conversation's.
    pub stop: Vec<String>,
    /// Variables of the template, such as `enable_thinking`; they win over the preface's.
    pub extra_context: Map<String, Value>,
}
