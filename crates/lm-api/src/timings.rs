//! Durations of a reply in the spelling of llama.cpp's server.

use std::time::Duration;

use lm_conversation::{Finished, Reply};
use serde_json::{Value, json};

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

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
