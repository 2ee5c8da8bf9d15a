//! Counts and durations of prefills, generations and the KV pool.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Statistics of a [`crate::Session::prefill`] or [`crate::Session::sync`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefillStats {
    /// Tokens of the session that were already in the KV cache, including those found in pages of other
    /// sessions.
    pub cached_tokens: usize,
    /// Processed tokens.
    pub prefilled_tokens: usize,
    /// Time from the call to its answer, including the wait for other sessions.
    pub elapsed: Duration,
}

/// Token counts of one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the session at the start of the generation, without those of `continued_tokens`.
    pub prompt_tokens: usize,
    /// Prompt tokens that were not run for this generation, neither by it nor by the prefills since the
    /// previous one: they were reused from the session itself or from other sessions' pages
    /// ([`crate::PrefixCache`]).
    pub cached_tokens: usize,
    /// Tokens of the output, including the end token and those of `continued_tokens`.
    pub output_tokens: usize,
    /// First output tokens, known at the start of the generation ([`crate::GenerateParams::continued`]).
    pub continued_tokens: usize,
    /// Output tokens that the constraint forced instead of sampling.
    pub forced_tokens: usize,
    /// Draft tokens run ahead ([`crate::Speculation`]).
    pub drafted_tokens: usize,
    /// Draft tokens that became output tokens: each saved a step.
    pub accepted_tokens: usize,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens += other.prompt_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.continued_tokens += other.continued_tokens;
        self.forced_tokens += other.forced_tokens;
        self.drafted_tokens += other.drafted_tokens;
        self.accepted_tokens += other.accepted_tokens;
    }
}

/// Durations of one generation. They include the wait for other sessions, as a caller sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Time to first token: prefills since the previous generation, then the call until the first token was
    /// sampled. Text that a constraint forces before it may be there earlier. `None` when no token was
    /// sampled.
    pub ttft: Option<Duration>,
    /// Prefill time: prefills since the previous generation, then the call until the first logits.
    pub prefill: Duration,
    /// Decode time: from the first sampled token to the last.
    pub decode: Duration,
    /// Prompt tokens run in `prefill`.
    pub prefilled_tokens: usize,
    /// Tokens sampled in `decode`: all except the first.
    pub decoded_tokens: usize,
}

impl Timing {
    /// Prompt tokens run per second; `None` when none were run.
    pub fn prefill_tokens_per_second(&self) -> Option<f64> {
        rate(self.prefilled_tokens, self.prefill)
    }

    /// Tokens sampled per second after the first; `None` when there is at most one.
    pub fn decode_tokens_per_second(&self) -> Option<f64> {
        rate(self.decoded_tokens, self.decode)
    }
}

fn rate(tokens: usize, elapsed: Duration) -> Option<f64> {
    (tokens > 0 && !elapsed.is_zero()).then(|| tokens as f64 / elapsed.as_secs_f64())
}

/// State of the engine's KV pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Pages of the pool. A page holds [`crate::PAGE_LEN`] tokens of a group of layers, or a state; most
    /// models have one group.
    pub total_pages: usize,
    /// Pages whose reference count is 0.
    pub free_pages: usize,
    /// Free pages whose tokens are in the prefix cache for reuse.
    pub reusable_pages: usize,
    /// Pages evicted from sessions for others since the engine started.
    pub evicted_pages: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_tokens_per_second() {
        let timing = Timing {
            prefill: Duration::from_millis(500),
            decode: Duration::from_secs(2),
            prefilled_tokens: 100,
            decoded_tokens: 8,
            ..Timing::default()
        };
        assert_eq!(timing.prefill_tokens_per_second(), Some(200.0));
        assert_eq!(timing.decode_tokens_per_second(), Some(4.0));
        assert_eq!(Timing::default().prefill_tokens_per_second(), None);
    }
}
