//! Pearson's chi-squared test of sampled tokens.

use std::sync::Arc;

use crate::sampling::{History, Sampler, SamplerParams};

const DRAWS: usize = 20_000;
/// Probabilities of a vocabulary. Entropy 1.526.
const PROBABILITIES: [f64; 6] = [0.4, 0.25, 0.15, 0.1, 0.06, 0.04];
/// Quantiles of the chi-squared distribution at 0.999, by degrees of freedom.
const CRITICAL: [f64; 6] = [0.0, 10.83, 13.82, 16.27, 18.47, 20.52];

/// Number of times that each token was drawn.
fn draws(params: &SamplerParams, seeds: impl Iterator<Item = u64>, per_seed: usize) -> [f64; 6] {
    let row = PROBABILITIES.map(|probability| probability.ln() as f32);
    let tokenizer = Arc::new(crate::testing::tokenizer());
    let mut counts = [0.0; 6];
    for seed in seeds {
        let mut sampler =
            Sampler::new(&SamplerParams { seed: Some(seed), ..params.clone() }, &tokenizer).unwrap();
        for _ in 0..per_seed {
            counts[sampler.sample(&row, None, &History::default()).unwrap() as usize] += 1.0;
        }
    }
    counts
}

/// Returns true if the counts are those of weights proportional to `expected`.
fn fits(counts: &[f64; 6], expected: &[f64; 6]) -> bool {
    let (drawn, total): (f64, f64) = (counts.iter().sum(), expected.iter().sum());
    let mut statistic = 0.0;
    for (count, expected) in counts.iter().zip(expected.map(|weight| drawn * weight / total)) {
        if expected == 0.0 && *count > 0.0 {
            return false;
        }
        statistic += if expected > 0.0 { (count - expected).powi(2) / expected } else { 0.0 };
    }
    let possible = expected.iter().filter(|weight| **weight > 0.0).count();
    statistic < CRITICAL[possible - 1]
}

/// Checks that the counts fit the weights, and do not fit weights with one off by 5 % of the total.
fn check(name: &str, counts: [f64; 6], expected: [f64; 6]) {
    assert!(fits(&counts, &expected), "{name}: {counts:?}, expected {expected:?}");
    let total: f64 = expected.iter().sum();
    for index in 0..6 {
        let mut wrong = expected;
        wrong[index] += 0.05 * total;
        assert!(!fits(&counts, &wrong), "{name}: {counts:?} pass for {wrong:?}");
    }
}

#[test]
fn frequencies_equal_filter_probabilities() {
    let sampled = || SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    let [a, b, c, d, e, f] = PROBABILITIES;
    // XTC leaves d, e and f, which together have 0.2, in half of the draws.
    let mixed = |p: f64, left: bool| 0.5 * p + if left { 0.5 * p / 0.2 } else { 0.0 };
    for (name, params, expected) in [
        ("plain", sampled(), PROBABILITIES),
        ("temperature 2", SamplerParams { temperature: 2.0, ..sampled() }, PROBABILITIES.map(f64::sqrt)),
        ("top-k 2", SamplerParams { top_k: 2, ..sampled() }, [a, b, 0.0, 0.0, 0.0, 0.0]),
        ("top-p 0.7", SamplerParams { top_p: 0.7, ..sampled() }, [a, b, c, 0.0, 0.0, 0.0]),
        ("min-p 0.2", SamplerParams { min_p: 0.2, ..sampled() }, [a, b, c, d, 0.0, 0.0]),
        ("typical 0.35", SamplerParams { typical_p: 0.35, ..sampled() }, [0.0, b, c, 0.0, 0.0, 0.0]),
        (
            "XTC 0.5",
            SamplerParams { xtc_probability: 0.5, ..sampled() },
            [
                mixed(a, false),
                mixed(b, false),
                mixed(c, false),
                mixed(d, true),
                mixed(e, true),
                mixed(f, true),
            ],
        ),
    ] {
        check(name, draws(&params, [7].into_iter(), DRAWS), expected);
    }
}

#[test]
fn consecutive_seeds_give_the_distribution() {
    let params = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    check("seeds", draws(&params, 0..DRAWS as u64, 1), PROBABILITIES);
}
