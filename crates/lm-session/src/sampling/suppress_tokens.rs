//! Suppressed tokens.

use super::{FilterContext, History, LogitsFilter, TokenLogits};
use lm_tokenizer::TokenId;

/// Masks given tokens.
///
/// # Source
/// `SuppressTokensLogitsProcessor` of Hugging Face transformers.
#[derive(Debug)]
struct SuppressTokens(Vec<TokenId>);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let tokens = &context.params.suppress_tokens;
    (!tokens.is_empty()).then(|| Box::new(SuppressTokens(tokens.clone())) as _)
}

impl LogitsFilter for SuppressTokens {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        for &id in &self.0 {
            logits.update_token(id, |_| f32::NEG_INFINITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn suppressed_tokens_are_masked() {
        const MASKED: f32 = f32::NEG_INFINITY;
        for (tokens, expected) in [
            (vec![], [1.0, 2.0, 3.0]),
            (vec![2, 0, 2], [MASKED, 2.0, MASKED]),
            (vec![0, 1, 2], [MASKED, MASKED, MASKED]),
        ] {
            let params = SamplerParams { suppress_tokens: tokens, ..SamplerParams::default() };
            let expected: Vec<_> = (0..).zip(expected).collect();
            check_filter(filter, params, &[1.0, 2.0, 3.0], &expected);
        }
    }
}
