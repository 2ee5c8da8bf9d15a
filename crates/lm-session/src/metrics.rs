//! Counts and durations of prefills, generations and the KV pool.

use std::time::Duration;

/// What a [`crate::Session::prefill`] or [`crate::Session::sync`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefillStats {
    /// Tokens of the session that were in the KV cache already, those found in pages of other sessions included.
    pub cached_tokens: usize,
    /// Tokens that were run.
    pub prefilled_tokens: usize,
    /// From the call to its answer, waiting for other sessions included.
    pub elapsed: Duration,
}

/// Token counts of one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that the session held when the generation began.
    pub prompt_tokens: usize,
    /// Those of them that were not run for this generation, neither by it nor by the prefills since the previous one: they
    /// were reused, from the session itself or from what others have left in the cache ([`crate::PrefixCache`]).
    pub cached_tokens: usize,
    /// Tokens generated, the end token included.
    pub output_tokens: usize,
    /// Those of them that were not sampled, because the constraint left no choice.
    pub forced_tokens: usize,
}

/// Durations of one generation. Waiting for other sessions is included: it is what a caller sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Time to first token: prefills since the previous generation, then the call until the first token was sampled.
    /// `None` when no token was sampled.
    pub ttft: Option<Duration>,
    /// Running the prompt: prefills since the previous generation, then the call until the first logits.
    pub prefill: Duration,
    /// From the first sampled token to the last.
    pub decode: Duration,
    /// Prompt tokens run in `prefill`.
    pub prefilled_tokens: usize,
    /// Tokens sampled in `decode`: all but the first.
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
    /// Pages of the pool. A page holds [`crate::PAGE_LEN`] tokens of a group of layers, or a state; most models have one group.
    pub total_pages: usize,
    /// Pages that no session holds.
    pub free_pages: usize,
    /// Those of the free ones whose tokens can still be found and reused.
    pub findable_pages: usize,
    /// Pages taken from a session since the engine started because another one needed them.
    pub evicted_pages: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_tokens_over_seconds() {
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
