//! Repetition, presence and frequency penalties.

use std::collections::{BTreeMap, BTreeSet};

use super::{History, LogitsFilter, TokenLogits};
use crate::SamplerParams;

/// Divides the positive logits of seen tokens by the penalty and multiplies the negative ones, once per token, over
/// prompt and output.
///
/// # Source
/// Keskar et al., arXiv 1909.05858; `RepetitionPenaltyLogitsProcessor` of Hugging Face transformers.
#[derive(Debug)]
struct Repetition {
    penalty: f32,
    window: Option<usize>,
}

/// Subtracts from the logits of tokens in the output: `presence` once, `frequency` for each time they occur.
///
/// # Source
/// `presence_penalty` and `frequency_penalty` of OpenAI's chat completions.
#[derive(Debug)]
struct PresenceAndFrequency {
    presence: f32,
    frequency: f32,
    window: Option<usize>,
}

pub(super) fn repetition(params: &SamplerParams) -> Option<Box<dyn LogitsFilter>> {
    let filter = Repetition { penalty: params.repetition_penalty, window: params.penalty_window };
    (filter.penalty != 1.0).then(|| Box::new(filter) as _)
}

pub(super) fn presence_and_frequency(params: &SamplerParams) -> Option<Box<dyn LogitsFilter>> {
    let (presence, frequency) = (params.presence_penalty, params.frequency_penalty);
    let filter = PresenceAndFrequency { presence, frequency, window: params.penalty_window };
    (presence != 0.0 || frequency != 0.0).then(|| Box::new(filter) as _)
}

impl LogitsFilter for Repetition {
    fn apply(&self, logits: &mut TokenLogits, history: &History<'_>) {
        let seen = history.last(self.window);
        let tokens: BTreeSet<_> = seen.prompt.iter().chain(seen.generated).collect();
        for &id in tokens {
            logits.update_token(
                id,
                |value| if value < 0.0 { value * self.penalty } else { value / self.penalty },
            );
        }
    }
}

impl LogitsFilter for PresenceAndFrequency {
    fn apply(&self, logits: &mut TokenLogits, history: &History<'_>) {
        let mut counts = BTreeMap::new();
        for &id in history.last(self.window).generated {
            *counts.entry(id).or_insert(0u32) += 1;
        }
        for (id, count) in counts {
            logits.update_token(id, |value| value - self.presence - self.frequency * count as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
