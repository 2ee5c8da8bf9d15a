//! `logprobs` of a choice.

use lm_conversation::{ScoredToken, TokenLogprob};
use serde_json::{Value, json};

/// Log probability reported for a probability of zero: JSON has no infinity.
const IMPOSSIBLE: f32 = -9999.0;

/// Creates the `logprobs` object of a choice or a chunk.
pub(crate) fn logprobs(tokens: &[ScoredToken]) -> Value {
    json!({"content": scores(tokens), "refusal": null})
}

/// Creates the list of tokens with their log probabilities.
pub(crate) fn scores(tokens: &[ScoredToken]) -> Value {
    tokens.iter().map(scored).collect()
}

fn scored(scored: &ScoredToken) -> Value {
    let mut json = token(&scored.token);
    json["top_logprobs"] = scored.top.iter().map(token).collect();
    json
}

fn token(token: &TokenLogprob) -> Value {
    let text = String::from_utf8_lossy(&token.bytes);
    json!({"token": text, "logprob": finite(token.logprob), "bytes": token.bytes})
}

/// Log probability as a number of JSON.
pub(crate) fn finite(logprob: f32) -> f32 {
    logprob.max(IMPOSSIBLE)
}
