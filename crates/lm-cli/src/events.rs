//! Events of `lm generate --json`: one object per line, distinguished by `type`. docs/json-output.md
//! describes them.

use lm_conversation::ConversationEvent;
use lm_session::{Engine, FinishReason, Finished};
use lm_template::Message;
use serde_json::{Value, json};

/// Version of all JSON that the program prints: a reader may reject other versions.
pub const VERSION: u32 = 1;

/// First event; the seed is null for greedy sampling.
pub fn start(engine: &Engine, seed: Option<u64>) -> Value {
    json!({"type": "start", "version": VERSION, "model": engine.name(), "seed": seed})
}

/// Converts an event of a conversation; `None` for events that a later event repeats.
pub fn of_conversation(event: &ConversationEvent) -> Option<Value> {
    match event {
        ConversationEvent::Text(text) => Some(json!({"type": "text", "text": text})),
        ConversationEvent::Reasoning(text) => Some(json!({"type": "reasoning", "text": text})),
        ConversationEvent::ToolCall(call) => {
            Some(json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}))
        }
        ConversationEvent::Finished(reply) => {
            let mut event = finished(&reply.finish);
            if !reply.message.tool_calls.is_empty() {
                event["finish_reason"] = "tool_calls".into();
            }
            event["message"] = reply.message.to_json();
            Some(event)
        }
        _ => None,
    }
}

/// Converts the last event: finish reason, token counts, and times in milliseconds.
pub fn finished(finished: &Finished) -> Value {
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
    let Finished { usage, timing, .. } = finished;
    let (reason, detail) = reason(finished);
    json!({
        "type": "finished",
        "finish_reason": reason,
        "finish_detail": detail,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.prompt_tokens + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        },
        "masked": finished.masked.map(|masked| json!({
            "sampled_tokens": masked.sampled,
            "first_token": masked.first,
            "overruled_tokens": masked.overruled,
            "removed_probability": masked.removed,
        })),
        "timing": {
            "ttft_ms": timing.ttft.map(ms),
            "prefill_ms": ms(timing.prefill),
            "decode_ms": ms(timing.decode),
            "prefill_tokens_per_second": timing.prefill_tokens_per_second(),
            "decode_tokens_per_second": timing.decode_tokens_per_second(),
        },
    })
}

/// Last event of a reply that Ctrl-C ended, with the text so far.
pub fn cancelled(text: &str) -> Value {
    let message = Message::assistant(text).to_json();
    json!({"type": "finished", "finish_reason": "cancelled", "finish_detail": "cancelled", "message": message})
}

/// Last event of a reply that failed.
pub fn failed(error: &anyhow::Error) -> Value {
    json!({"type": "error", "error": {"message": crate::failure::message(error)}})
}

/// Finish reason as in OpenAI's chat completions, and the cause in the program's own words.
fn reason(finished: &Finished) -> (&'static str, &'static str) {
    match finished.reason {
        FinishReason::EndToken if finished.steered.is_some() => ("length", "steered"),
        FinishReason::EndToken => ("stop", "end_token"),
        FinishReason::StopString(_) => ("stop", "stop_string"),
        FinishReason::MaxOutputTokens => ("length", "max_tokens"),
        FinishReason::ContextFull => ("length", "context_full"),
        FinishReason::Cancelled => ("cancelled", "cancelled"),
        FinishReason::DeadlineExceeded => ("cancelled", "deadline_exceeded"),
    }
}
