//! Repetition, presence and frequency penalties.

use std::collections::{HashMap, VecDeque};

use super::{FilterContext, History, LogitsFilter, TokenLogits};
use lm_tokenizer::TokenId;

/// Divides the positive logits of seen tokens by the penalty and multiplies the negative ones, once per
/// token, over prompt and output.
///
/// # Source
/// Keskar et al., arXiv 1909.05858; `RepetitionPenaltyLogitsProcessor` of Hugging Face transformers.
#[derive(Debug)]
struct Repetition {
    penalty: f32,
    seen: Counts,
}

/// Subtracts from the logits of tokens in the output: `presence` once, `frequency` for each time they occur.
///
/// # Source
/// `presence_penalty` and `frequency_penalty` of OpenAI's chat completions.
#[derive(Debug)]
struct PresenceAndFrequency {
    presence: f32,
    frequency: f32,
    output: Counts,
}

/// Number of occurrences of each token among the last tokens.
#[derive(Debug)]
struct Counts {
    counts: HashMap<TokenId, u32>,
    /// Maximum number of last tokens.
    window: Option<usize>,
    /// The last tokens, oldest first, with a window.
    last: VecDeque<TokenId>,
}

pub(super) fn repetition(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    let filter = Repetition { penalty: params.repetition_penalty, seen: Counts::new(params.penalty_window) };
    (filter.penalty != 1.0).then(|| Box::new(filter) as _)
}

pub(super) fn presence_and_frequency(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    let (presence, frequency) = (params.presence_penalty, params.frequency_penalty);
    let filter = PresenceAndFrequency { presence, frequency, output: Counts::new(params.penalty_window) };
    (presence != 0.0 || frequency != 0.0).then(|| Box::new(filter) as _)
}

impl Counts {
    fn new(window: Option<usize>) -> Self {
        Self { counts: HashMap::new(), window, last: VecDeque::new() }
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.last.clear();
    }

    fn push(&mut self, token: TokenId) {
        *self.counts.entry(token).or_insert(0) += 1;
        let Some(window) = self.window else { return };
        self.last.push_back(token);
        if self.last.len() > window
            && let Some(oldest) = self.last.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
    }
}

impl LogitsFilter for Repetition {
    fn begin(&mut self, prompt: &[TokenId]) {
        self.seen.clear();
        prompt.iter().for_each(|&token| self.seen.push(token));
    }

    fn accepted(&mut self, token: TokenId) {
        self.seen.push(token);
    }

    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let penalty = self.penalty;
        for &id in self.seen.counts.keys() {
            logits.update_token(id, |value| if value < 0.0 { value * penalty } else { value / penalty });
        }
    }
}

impl LogitsFilter for PresenceAndFrequency {
    fn begin(&mut self, _: &[TokenId]) {
        self.output.clear();
    }

    fn accepted(&mut self, token: TokenId) {
        self.output.push(token);
    }

    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        for (&id, &count) in &self.output.counts {
            logits.update_token(id, |value| value - self.presence - self.frequency * count as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    // The history of `check_filter`: prompt 0 1 1, output 2 2 3.

    #[test]
    fn repetition_counts_prompt_and_output_once() {
        for (penalty, window, expected) in [
            (1.0, None, &[(0, 4.0), (1, -4.0), (2, 4.0), (3, 0.0), (4, 4.0)][..]),
            (2.0, None, &[(0, 2.0), (1, -8.0), (2, 2.0), (3, 0.0), (4, 4.0)]),
            (2.0, Some(4), &[(0, 4.0), (1, -8.0), (2, 2.0), (3, 0.0), (4, 4.0)]),
            (0.5, Some(0), &[(0, 4.0), (1, -4.0), (2, 4.0), (3, 0.0), (4, 4.0)]),
        ] {
            let params =
                SamplerParams { repetition_penalty: penalty, penalty_window: window, ..Default::default() };
            check_filter(repetition, params, &[4.0, -4.0, 4.0, 0.0, 4.0], expected);
        }
    }

    #[test]
    fn presence_and_frequency_count_output_only() {
        for (presence, frequency, window, expected) in [
            (0.0, 0.0, None, &[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)][..]),
            (0.5, 0.0, None, &[(0, 1.0), (1, 1.0), (2, 0.5), (3, 0.5)]),
            (0.0, 0.25, None, &[(0, 1.0), (1, 1.0), (2, 0.5), (3, 0.75)]),
            (-1.0, 0.25, Some(2), &[(0, 1.0), (1, 1.0), (2, 1.75), (3, 1.75)]),
        ] {
            let params = SamplerParams {
                presence_penalty: presence,
                frequency_penalty: frequency,
                penalty_window: window,
                ..Default::default()
            };
            check_filter(presence_and_frequency, params, &[1.0; 4], expected);
        }
    }

    #[test]
    fn incremental_counts_equal_a_recount() {
        let tokens: Vec<TokenId> = (0..200u32).map(|i| i.wrapping_mul(2_654_435_761) % 7).collect();
        for window in [None, Some(0), Some(1), Some(5), Some(300)] {
            let mut counts = Counts::new(window);
            for len in 1..=tokens.len() {
                counts.push(tokens[len - 1]);
                let last = &tokens[len.saturating_sub(window.unwrap_or(len))..len];
                let mut expected = HashMap::new();
                last.iter().for_each(|&token| *expected.entry(token).or_insert(0) += 1);
                assert_eq!(counts.counts, expected, "{window:?} after {len}");
            }
        }
    }
}
