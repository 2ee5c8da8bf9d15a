//! Durations of a reply in the spelling of llama.cpp's server.

use std::time::{Duration, Instant};

use lm_conversation::{ConversationEvent, Finished, Reply};
use serde_json::{Value, json};

use crate::request::ChatRequest;

/// Durations of the prefill and the decode, as the `timings` of llama.cpp's server: counts of tokens,
/// milliseconds, and tokens per second.
///
/// `masked` is this server's own: the effect of the reply's constraint, null without one.
pub(crate) fn timings(reply: &Reply) -> Value {
    let Finished { usage, timing, masked, .. } = &reply.finish;
    json!({
        "cache_n": usage.cached_tokens,
        "prompt_n": timing.prefilled_tokens,
        "prompt_ms": milliseconds(timing.prefill),
        "prompt_per_second": timing.prefill_tokens_per_second(),
        "predicted_n": usage.output_tokens,
        "predicted_ms": milliseconds(timing.decode),
        "predicted_per_second": timing.decode_tokens_per_second(),
        "masked": masked.map(|masked| json!({
            "sampled_tokens": masked.sampled,
            "first_token": masked.first,
            "overruled_tokens": masked.overruled,
            "removed_probability": masked.removed,
        })),
    })
}

/// Reports of a prefill, for requests with `return_progress`.
#[derive(Debug)]
pub(crate) struct PromptProgress {
    /// Creation of the writer, if reports are requested.
    since: Option<Instant>,
}

impl PromptProgress {
    /// Creates the reports of a request's response.
    pub(crate) fn new(request: &ChatRequest) -> Self {
        let is_wanted = request.stream.is_some_and(|stream| stream.return_progress);
        Self { since: is_wanted.then(Instant::now) }
    }

    /// Writes `prompt_progress` of an event: tokens of the prompt, those of them that were cached, those
    /// processed so far (cached ones included), and milliseconds since the request began.
    pub(crate) fn of(&self, event: &ConversationEvent) -> Option<Value> {
        let (Some(since), ConversationEvent::Prefill(progress)) = (self.since, event) else { return None };
        Some(json!({
            "total": progress.prompt_tokens,
            "cache": progress.cached_tokens,
            "processed": progress.cached_tokens + progress.prefilled_tokens,
            "time_ms": since.elapsed().as_millis() as u64,
        }))
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
