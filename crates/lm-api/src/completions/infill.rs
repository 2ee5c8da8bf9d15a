//! llama.cpp's `/infill`.

use lm_conversation::{ConversationEvent, Reply};
use lm_session::FinishReason;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::request::CompletionRequest;
use crate::chat_completions::OutputFields;
use crate::error::{ApiError, Result};
use crate::fields::Fields;
use crate::limits::Limits;
use crate::request::ChatRequest;
use crate::request_body::RequestBody;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};
use crate::sampling::SamplingFields;
use crate::text_inputs::TextInputs;
use crate::timings::timings;

/// Body of `/infill`.
pub(super) const BODY: RequestBody = RequestBody {
    name: "InfillRequest",
    groups: &[Body::json_schema, OutputFields::json_schema, SamplingFields::json_schema],
    unsupported: &[&[("input_extra", &["[]"])]],
    example: r#"{"input_prefix": "def add(a, b):\n    ", "n_predict": 8}"#,
};

#[derive(Deserialize, JsonSchema)]
struct Body {
    /// Text before the gap.
    input_prefix: Option<String>,
    /// Text after the gap.
    input_suffix: Option<String>,
    /// Text between the prefix and the gap.
    prompt: Option<String>,
    /// Name or alias of a model; the server's first model if absent.
    #[serde(rename = "model")]
    _model: Option<String>,
    /// Maximum number of output tokens; -1 and -2 are no limit, as is none.
    #[serde(rename = "n_predict")]
    #[schemars(range(min = -2))]
    _n_predict: Option<i64>,
}

impl CompletionRequest {
    /// Body of llama.cpp's `/infill`.
    pub const INFILL: &RequestBody = &BODY;

    /// Reads a body of llama.cpp's `/infill`: `input_prefix`, `input_suffix`, `prompt` after the prefix, and
    /// the fields of completions. Without a suffix the text is continued; without `n_predict` there is no
    /// token limit.
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn infill_from_json(body: Value, limits: &Limits) -> Result<Self> {
        let fields = Fields::open(body, &BODY)?;
        let mut members = fields.values().clone();
        let body: Body = fields.into_group()?;
        members.retain(|name, _| !["input_prefix", "input_suffix", "prompt"].contains(&name.as_str()));
        let before = body.input_prefix.unwrap_or_default() + &body.prompt.unwrap_or_default();
        let after = body.input_suffix.unwrap_or_default();
        if before.is_empty() && after.is_empty() {
            return Err(ApiError::missing("input_prefix"));
        }
        members.insert("prompt".to_owned(), " ".into());
        if !["n_predict", "max_tokens", "max_completion_tokens"]
            .iter()
            .any(|name| members.contains_key(*name))
        {
            members.insert("n_predict".to_owned(), (-1).into());
        }
        let request = Self::from_json_within(Value::Object(members), limits)?;
        let suffix = Some(after).filter(|after| !after.is_empty());
        Ok(Self { prompts: TextInputs::one("input_prefix", before), suffix, ..request })
    }
}

/// Writer of the objects of llama.cpp's `/infill`: whole, or one for each piece of the text and a last one.
#[derive(Debug)]
pub struct InfillWriter {
    model: String,
}

impl InfillWriter {
    /// Creates a writer for the response of a model.
    pub fn for_request(_: &ChatRequest, model: &str) -> Self {
        Self { model: model.to_owned() }
    }

    fn last(&self, text: &str, reply: &Reply) -> Value {
        let usage = &reply.finish.usage;
        let (stop_type, stopping_word) = match &reply.finish.reason {
            FinishReason::StopString(text) => ("word", text.as_str()),
            _ if reply.finish.is_cut_off() => ("limit", ""),
            _ => ("eos", ""),
        };
        json!({
            "content": text,
            "stop": true,
            "model": self.model,
            "stop_type": stop_type,
            "stopping_word": stopping_word,
            "tokens_predicted": usage.output_tokens,
            "tokens_evaluated": usage.prompt_tokens,
            "timings": timings(reply),
        })
    }
}

impl ResponseWriter for InfillWriter {
    const FRAMING: Framing = Framing::Events;

    fn object(&mut self, choices: &[Choice]) -> Value {
        let reply = choices.first().map(|choice| &choice.reply);
        reply.map_or_else(|| Value::Object(Map::new()), |reply| self.last(&reply.text(), reply))
    }

    fn frames(&mut self, choice: usize, event: &ConversationEvent) -> Vec<Frame> {
        match event {
            ConversationEvent::Text(text) => {
                vec![Frame::new(json!({"index": choice, "content": text, "stop": false}))]
            }
            ConversationEvent::Finished(reply) => vec![Frame::new(self.last("", reply))],
            _ => Vec::new(),
        }
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        Frame::new(error.to_json())
    }
}
