//! Events of `lm generate --json`: one object per line, distinguished by `type`.

use lm_conversation::ConversationEvent;
use lm_session::{FinishReason, Finished};
use serde_json::{Value, json};

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
    json!({
        "type": "finished",
        "finish_reason": reason(&finished.reason),
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
        },
        "timing": {
            "ttft_ms": timing.ttft.map(ms),
            "prefill_ms": ms(timing.prefill),
            "decode_ms": ms(timing.decode),
            "prefill_tokens_per_second": timing.prefill_tokens_per_second(),
            "decode_tokens_per_second": timing.decode_tokens_per_second(),
        },
    })
}

fn reason(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::EndToken => "end_token",
        FinishReason::StopString(_) => "stop_string",
        FinishReason::MaxOutputTokens => "max_output_tokens",
        FinishReason::ContextFull => "context_full",
        FinishReason::Cancelled => "cancelled",
    }
}
