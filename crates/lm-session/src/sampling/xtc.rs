//! XTC sampling (exclude top choices).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::sampler::unit_interval;
use super::weights::{exp, sum};
use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Stream of the random number generator, separate from the stream of the token choice with the same seed.
const STREAM: u64 = 1;

/// With probability `probability`, removes the tokens that are at least as probable as `threshold`, except
/// the least probable of them (and those equal to it). Has no effect if fewer than two are that probable, so
/// not above a threshold of 0.5.
///
/// # Source
/// P. E. Weidmann, oobabooga/text-generation-webui pull request 6335; `xtc_probability` and `xtc_threshold`
/// of llama.cpp.
#[derive(Debug)]
struct Xtc {
    probability: f64,
    threshold: f64,
    rng: ChaCha8Rng,
}

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    let on = params.xtc_probability > 0.0 && params.xtc_threshold <= 0.5;
    on.then(|| {
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed.unwrap_or_default());
        rng.set_stream(STREAM);
        let (probability, threshold) = (params.xtc_probability.into(), params.xtc_threshold.into());
        Box::new(Xtc { probability, threshold, rng }) as _
    })
}

impl LogitsFilter for Xtc {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let Some(max) = logits.max().filter(|_| unit_interval(&mut self.rng) < self.probability) else {
            return;
        };
        let total = sum(logits.values(), |value| exp(value - max));
        let bound = (self.threshold * total).ln() as f32;
        let choices =
            logits.values().iter().filter(|&&value| value > f32::NEG_INFINITY && value - max >= bound);
        let Some(lowest) = choices.copied().reduce(f32::min) else { return };
        logits.retain(|_, value| value <= lowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn top_choices_are_removed_except_the_last() {
        const MASKED: f32 = f32::NEG_INFINITY;
        let row: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
        for (xtc_probability, xtc_threshold, row, expected) in [
            (0.0, 0.1, &row[..], &[0, 1, 2, 3][..]),
            (1.0, 0.1, &row, &[2, 3]),
            (1.0, 0.2, &row, &[1, 2, 3]),
            (1.0, 0.4, &row, &[0, 1, 2, 3]),
            (1.0, 0.6, &row, &[0, 1, 2, 3]),
            (1.0, 0.0, &row, &[3]),
            (1.0, 0.1, &[1.0, 1.0], &[0, 1]),
            (1.0, 0.1, &[MASKED, 1.0, 0.0], &[0, 2]),
            (1.0, 0.1, &[MASKED], &[0]),
        ] {
            let params = SamplerParams {
                temperature: 1.0,
                xtc_probability,
                xtc_threshold,
                ..SamplerParams::default()
            };
            let expected: Vec<_> = expected.iter().map(|&id| (id, row[id as usize])).collect();
            check_filter(filter, params, row, &expected);
        }
    }
}
