//! No-repeat n-gram.

use std::collections::HashSet;

use super::suffix_matches::SuffixMatches;
use super::{FilterContext, History, LogitsFilter, TokenLogits};
use lm_tokenizer::TokenId;

/// Masks the tokens that would complete an n-gram of prompt and output. If that would mask every token, which
/// happens under a constraint, no token is masked.
///
/// # Source
/// Paulus et al., arXiv 1705.04304; `NoRepeatNGramLogitsProcessor` of Hugging Face transformers.
#[derive(Debug)]
struct NoRepeatNgram {
    size: usize,
    text: SuffixMatches,
}

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let size = context.params.no_repeat_ngram_size;
    (size > 0).then(|| Box::new(NoRepeatNgram { size, text: SuffixMatches::default() }) as _)
}

impl LogitsFilter for NoRepeatNgram {
    fn begin(&mut self, prompt: &[TokenId]) {
        self.text.begin(prompt);
    }

    fn accepted(&mut self, token: TokenId) {
        self.text.push(token);
    }

    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let repeats = self.text.continuations(0).filter(|(_, len)| len + 1 >= self.size);
        let banned: HashSet<TokenId> = repeats.map(|(token, _)| token).collect();
        let allowed = |id: TokenId, value: f32| value > f32::NEG_INFINITY && !banned.contains(&id);
        let any_left = logits.ids().iter().zip(logits.values()).any(|(&id, &value)| allowed(id, value));
        if any_left {
            for &id in &banned {
                logits.update_token(id, |_| f32::NEG_INFINITY);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::{check_filter, filtered};

    const MASKED: f32 = f32::NEG_INFINITY;

    #[test]
    fn repeated_ngrams_are_masked() {
        // The history of `check_filter`: prompt 0 1 1, output 2 2 3.
        for (size, expected) in [
            (0, [1.0, 1.0, 1.0, 1.0, 1.0]),
            (1, [MASKED, MASKED, MASKED, MASKED, 1.0]),
            (2, [1.0, 1.0, 1.0, 1.0, 1.0]),
            (usize::MAX, [1.0, 1.0, 1.0, 1.0, 1.0]),
        ] {
            let params = SamplerParams { no_repeat_ngram_size: size, ..SamplerParams::default() };
            let expected: Vec<_> = (0..).zip(expected).collect();
            check_filter(filter, params, &[1.0; 5], &expected);
        }
        let params = SamplerParams { no_repeat_ngram_size: 3, ..SamplerParams::default() };
        let history = History { prompt: &[0, 1, 2, 3, 0, 1], generated: &[4, 0, 1] };
        assert_eq!(filtered(filter, &params, &[1.0; 5], &history), [1.0, 1.0, MASKED, 1.0, MASKED]);
    }

    #[test]
    fn last_candidates_are_not_masked() {
        let params = SamplerParams { no_repeat_ngram_size: 1, ..SamplerParams::default() };
        check_filter(filter, params, &[2.0, 1.0, MASKED], &[(0, 2.0), (1, 1.0), (2, MASKED)]);
    }
}
