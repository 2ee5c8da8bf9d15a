//! Message of a response, whole.

use lm_conversation::{FinishReason, Reply};
use serde_json::{Value, json};

/// Fields of a message: of a whole one, and of the one that begins a stream.
pub(super) fn message(id: &str, model: &str, content: Vec<Value>, stop: Stop, usage: Value) -> Value {
    json!({
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop.reason,
        "stop_sequence": stop.sequence,
        "usage": usage,
    })
}

/// End of a message.
#[derive(Debug, Default)]
pub(super) struct Stop {
    pub reason: Option<&'static str>,
    pub sequence: Option<String>,
}

impl Stop {
    /// End of a reply. Stop sequences of the server count as an ordinary end; only those of the request are
    /// reported.
    pub fn new(reply: &Reply, sequences: &[String]) -> Self {
        let (reason, sequence) = match &reply.finish.reason {
            FinishReason::ContextFull => ("model_context_window_exceeded", None),
            _ if reply.finish.is_cut_off() => ("max_tokens", None),
            _ if !reply.tool_calls().is_empty() => ("tool_use", None),
            FinishReason::StopString(text) if sequences.contains(text) => {
                ("stop_sequence", Some(text.clone()))
            }
            _ => ("end_turn", None),
        };
        Self { reason: Some(reason), sequence }
    }
}

/// Content of a reply: reasoning, text, calls.
pub(super) fn content(reply: &Reply) -> Vec<Value> {
    let text = reply.text();
    let mut blocks = Vec::new();
    if let Some(reasoning) = &reply.message.reasoning_content {
        blocks.push(json!({"type": "thinking", "thinking": reasoning, "signature": ""}));
    }
    if !text.is_empty() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    let calls = reply.tool_calls().iter();
    blocks.extend(
        calls.map(
            |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}),
        ),
    );
    blocks
}

/// Token counts. Cached tokens of the prompt are not among the `input_tokens` of this API.
pub(super) fn usage(prompt_tokens: usize, cached_tokens: usize, output_tokens: usize) -> Value {
    json!({
        "input_tokens": prompt_tokens.saturating_sub(cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": output_tokens,
    })
}

/// Token counts of a reply.
pub(super) fn reply_usage(reply: &Reply) -> Value {
    let counts = &reply.finish.usage;
    let mut usage = usage(counts.prompt_tokens, counts.cached_tokens, counts.output_tokens);
    usage["output_tokens_details"] = json!({"thinking_tokens": reply.reasoning_tokens});
    usage
}
