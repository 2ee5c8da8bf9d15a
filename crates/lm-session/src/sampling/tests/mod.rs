//! Tests of sampling as a whole.

mod distribution;

use std::sync::Arc;

use super::*;

type Build = fn(&FilterContext<'_>) -> Option<Box<dyn LogitsFilter>>;

fn apply(build: Build, params: &SamplerParams, row: &[f32], history: &History<'_>) -> TokenLogits {
    let mut logits = TokenLogits::new(row).unwrap();
    let tokenizer = Arc::new(crate::testing::tokenizer());
    if let Some(mut filter) = build(&FilterContext { params, tokenizer: &tokenizer }) {
        filter.begin(history.prompt);
        history.generated.iter().for_each(|&token| filter.accepted(token));
        filter.apply(&mut logits, history);
    }
    logits
}

/// Logits after the filter built from `params`, which removes no token.
pub(super) fn filtered(build: Build, params: &SamplerParams, row: &[f32], history: &History<'_>) -> Vec<f32> {
    let logits = apply(build, params, row, history);
    assert_eq!(logits.ids().len(), row.len());
    logits.values().to_vec()
}

/// Applies the filter built from `params` and checks the remaining logits.
pub(super) fn check_filter(build: Build, params: SamplerParams, row: &[f32], expected: &[(TokenId, f32)]) {
    let history = History { prompt: &[0, 1, 1], generated: &[2, 2, 3] };
    let logits = apply(build, &params, row, &history);
    let left: Vec<_> = logits.ids().iter().copied().zip(logits.values().iter().copied()).collect();
    let close = |a: f32, b: f32| a == b || (a - b).abs() <= 1e-6 * b.abs().max(1.0);
    let equal =
        left.len() == expected.len() && left.iter().zip(expected).all(|(a, b)| a.0 == b.0 && close(a.1, b.1));
    assert!(equal, "{params:?} on {row:?}: {left:?}, expected {expected:?}");
}
