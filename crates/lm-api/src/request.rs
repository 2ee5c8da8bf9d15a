//! Requests in the words of the layers below.

use lm_conversation::{ConversationConfig, Message, Preface, TokenId, TurnOptions};
use lm_processors::by_name;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin_tools::BuiltinTool;
use crate::client_tools::ClientTools;
use crate::ollama::KeepAlive;
use crate::sampling::SamplingFields;

/// Treatment of conversations that do not fit the context.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Truncation {
    Auto,
    Disabled,
}

/// A request of any API in the words of the layers below: messages, tools, and the options of one turn.
///
/// ```
/// use lm_api::{ChatRequest, ToolChoice};
/// use serde_json::json;
///
/// let request = ChatRequest::from_json(json!({
///     "model": "any",
///     "messages": [
///         {"role": "system", "content": "Be brief."},
///         {"role": "user", "content": [{"type": "text", "text": "How is the weather in Paris?"}]},
///     ],
///     "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
///     "tool_choice": "required",
///     "temperature": 0.5,
///     "max_completion_tokens": 100,
/// }))?;
/// assert_eq!((request.preface.messages.len(), request.last.content.text().as_str()), (1, "How is the weather in Paris?"));
/// assert_eq!(request.turn.tool_choice, ToolChoice::Required);
/// assert_eq!(request.sampling.temperature, Some(0.5));
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChatRequest {
    /// Names of the wire's fields, for errors.
    pub(crate) names: FieldNames,
    /// Name of the model, if the request has one.
    pub model: Option<String>,
    /// All messages but the last, the tools, and variables of the chat template.
    pub preface: Preface,
    /// The last message.
    pub last: Message,
    /// Tool choice, number of calls, response format, thinking and log probabilities.
    pub turn: TurnOptions,
    /// Sampling parameters.
    pub sampling: SamplingFields,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// Ids of tokens that end a reply, beside the model's.
    pub stop_ids: Vec<TokenId>,
    /// Maximum number of output tokens, with the name of the field that sets it.
    pub max_output_tokens: Option<(&'static str, usize)>,
    /// Number of choices, `n`; at least 1.
    pub choices: usize,
    /// Streaming of the response, if it is requested.
    pub stream: Option<StreamOptions>,
    /// Continues the last message, which is the assistant's; the response has the new text only.
    pub continues: bool,
    /// Number of output tokens before which no token ends a reply; a given beginning counts.
    pub min_output_tokens: usize,
    /// Excludes the tokens that end a reply, as benchmarks do: it continues to its token limit or a stop
    /// sequence.
    pub ignores_end: bool,
    /// Name of the dialect that replaces the model's, of the extension `format`; a known one.
    pub dialect: Option<String>,
    /// Drops the oldest messages of a conversation that does not fit the context.
    pub truncates: bool,
    /// Time for which the model stays in memory after the request; `None` is the server's own.
    pub keep_alive: Option<KeepAlive>,
    /// Turns reasoning on if the model's template can.
    pub(crate) reasons: bool,
    /// True if thinking that is asked of a model without a reasoning channel is ignored: Claude Code asks for
    /// it by default.
    pub(crate) may_ignore_thinking: bool,
    /// Tools as the client knows them.
    pub(crate) client_tools: ClientTools,
    /// Types of messages' contents that are left out.
    pub(crate) left_out: Vec<String>,
}

/// Names of a wire's fields, for errors of layers that do not know the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldNames {
    /// Conversation.
    pub messages: &'static str,
    /// Tools.
    pub tools: &'static str,
    /// Path of the name in a tool.
    pub tool_name: &'static str,
    /// Path of the schema in a tool.
    pub tool_schema: &'static str,
    /// Tool choice.
    pub tool_choice: &'static str,
    /// Format of the answer; the one of several fields that the request has.
    pub format: &'static str,
    /// Maximum number of output tokens.
    pub max_output_tokens: &'static str,
    /// Maximum number of reasoning tokens.
    pub max_reasoning_tokens: &'static str,
    /// Stop sequences.
    pub stop: &'static str,
    /// Built-in tools of the API that clients run.
    pub builtin_tools: &'static [BuiltinTool],
}

/// Options of a streamed response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(expecting = "an object")]
#[non_exhaustive]
pub struct StreamOptions {
    /// Reports the usage in an additional last chunk.
    #[serde(default)]
    pub include_usage: bool,
    /// Reports the progress of the prefill before the first token: `return_progress` of llama.cpp, a field of
    /// the request itself.
    #[serde(skip)]
    pub return_progress: bool,
}

impl ChatRequest {
    /// Creates a request for one answer to a message, without options.
    pub(crate) fn new(names: FieldNames, last: Message) -> Self {
        Self {
            names,
            model: None,
            preface: Preface::default(),
            last,
            turn: TurnOptions::default(),
            sampling: SamplingFields::default(),
            stop: Vec::new(),
            stop_ids: Vec::new(),
            max_output_tokens: None,
            choices: 1,
            stream: None,
            continues: false,
            min_output_tokens: 0,
            ignores_end: false,
            dialect: None,
            truncates: false,
            keep_alive: None,
            reasons: false,
            may_ignore_thinking: false,
            client_tools: ClientTools::default(),
            left_out: Vec::new(),
        }
    }

    /// Types of the tools that were left out: they run on the servers of an API, or are unknown.
    pub fn dropped_tools(&self) -> &[String] {
        &self.client_tools.dropped
    }

    /// Types of the messages' contents that were left out: only the servers of an API can read them.
    pub fn dropped_contents(&self) -> &[String] {
        &self.left_out
    }

    /// Config of the conversation that answers with a choice: `base`, overridden by the request.
    pub fn config(&self, base: &ConversationConfig, choice: usize) -> ConversationConfig {
        let mut config = base.clone();
        config.preface = self.preface.clone();
        config.session.sampler = self.sampling.sampler(&base.session.sampler, choice);
        config.session.stop.extend(self.stop.iter().cloned());
        config.session.stop_ids.extend(&self.stop_ids);
        if let Some((_, limit)) = self.max_output_tokens {
            config.session.max_output_tokens = Some(limit);
        }
        if let Some(dialect) = self.dialect.as_deref().and_then(by_name) {
            config.processor = Some(dialect.into());
        }
        config
    }
}

/// Logs the types of contents that are left out.
pub(crate) fn noted(left_out: Vec<String>) -> Vec<String> {
    if !left_out.is_empty() {
        tracing::warn!(
            kinds = %left_out.join(", "),
            "contents that only the servers of an API can read are left out"
        );
    }
    left_out
}
