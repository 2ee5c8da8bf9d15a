//! Logit bias: additive biases for single tokens.

use super::{FilterContext, History, LogitsFilter, TokenLogits};
use lm_tokenizer::TokenId;

/// Adds a bias to the logits of given tokens; -infinity masks them.
///
/// # Source
/// `logit_bias` of OpenAI's chat completions.
#[derive(Debug)]
struct LogitBias(Vec<(TokenId, f32)>);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    let on = !params.logit_bias.is_empty();
    on.then(|| Box::new(LogitBias(params.logit_bias.clone())) as _)
}

impl LogitsFilter for LogitBias {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        for &(id, bias) in &self.0 {
            logits.update_token(id, |value| value + bias);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn bias_is_added() {
        const MASKED: f32 = f32::NEG_INFINITY;
        for (bias, row, expected) in [
            (vec![(1, 2.5), (1, 1.0)], &[1.0, 2.0][..], &[(0, 1.0), (1, 5.5)][..]),
            (vec![(0, MASKED)], &[1.0, 2.0], &[(0, MASKED), (1, 2.0)]),
            (vec![(0, 100.0)], &[MASKED, 2.0], &[(0, MASKED), (1, 2.0)]),
        ] {
            check_filter(
                filter,
                SamplerParams { logit_bias: bias, ..SamplerParams::default() },
                row,
                expected,
            );
        }
    }
}
