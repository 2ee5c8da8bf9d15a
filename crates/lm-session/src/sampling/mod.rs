//! Sampling: logits filters, then a random or greedy choice.

mod argmax;
mod chain;
mod logit_bias;
mod logits;
mod logprobs;
mod min_p;
mod multinomial;
mod repetition_penalty;
mod sampler;
mod temperature;
mod top_k;
mod top_p;

pub use chain::Chain;
pub use logits::TokenLogits;
pub(crate) use logprobs::LogSoftmax;
pub use logprobs::TokenLogprobs;
pub(crate) use sampler::Sampler;

use crate::TokenId;

/// A filter that changes or masks logits before a token is drawn.
///
/// A filter never revives a masked token; [`TokenLogits`] has no method that could.
pub trait LogitsFilter: Send + std::fmt::Debug {
    /// Applies the filter to the logits of the next token of `history`.
    fn apply(&self, logits: &mut TokenLogits, history: &History<'_>);
}

/// Tokens before the one to be sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History<'a> {
    /// Tokens of the session when the generation began.
    pub prompt: &'a [TokenId],
    /// Tokens of the output so far.
    pub generated: &'a [TokenId],
}

impl<'a> History<'a> {
    /// The last `window` tokens of prompt and output together; all of them when `None`.
    pub fn last(&self, window: Option<usize>) -> Self {
        let window = window.unwrap_or(usize::MAX);
        let generated = last(self.generated, window);
        Self { prompt: last(self.prompt, window - generated.len()), generated }
    }
}

fn last(tokens: &[TokenId], count: usize) -> &[TokenId] {
    &tokens[tokens.len().saturating_sub(count)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the filter that `build` makes of `params` and checks the remaining logits.
    pub(super) fn check_filter(
        build: fn(&crate::SamplerParams) -> Option<Box<dyn LogitsFilter>>,
        params: crate::SamplerParams,
        row: &[f32],
        expected: &[(TokenId, f32)],
    ) {
        let mut logits = TokenLogits::new(row).unwrap();
        let history = History { prompt: &[0, 1, 1], generated: &[2, 2, 3] };
        if let Some(filter) = build(&params) {
            filter.apply(&mut logits, &history);
        }
        let left: Vec<_> = logits.ids().iter().copied().zip(logits.values().iter().copied()).collect();
        let close = |a: f32, b: f32| a == b || (a - b).abs() <= 1e-6 * b.abs().max(1.0);
        let equal = left.len() == expected.len()
            && left.iter().zip(expected).all(|(a, b)| a.0 == b.0 && close(a.1, b.1));
        assert!(equal, "{params:?} on {row:?}: {left:?}, expected {expected:?}");
    }

    #[test]
    fn a_window_counts_from_the_last_generated_token() {
        let history = History { prompt: &[1, 2, 3], generated: &[4, 5] };
        for (window, prompt, generated) in [
            (None, &[1, 2, 3][..], &[4, 5][..]),
            (Some(0), &[], &[]),
            (Some(1), &[], &[5]),
            (Some(3), &[3], &[4, 5]),
            (Some(9), &[1, 2, 3], &[4, 5]),
        ] {
            assert_eq!(history.last(window), History { prompt, generated }, "{window:?}");
        }
    }
}
