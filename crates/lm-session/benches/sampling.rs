//! Benchmark of the logits filters over a vocabulary of 151,936 tokens:
//! `cargo bench -p lm-session --bench sampling [FILTER]`.
//!
//! Time per token of each filter alone and of usual chains, after 2,000 prompt tokens and some 400 output
//! tokens, on two rows of normally distributed logits: a peaked one (standard deviation 3) and an almost flat
//! one (0.3), whose nucleus is most of the vocabulary. The fastest of 100 steps counts. No model is needed;
//! the load of the logits is part of each figure, the draw of the token is not.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lm_session::testing::tokenizer;
use lm_session::{Chain, History, SamplerParams, TokenId, TokenLogits};

const WIDTH: u32 = 151_936;
const STEPS: usize = 100;

fn main() -> lm_session::Result<()> {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let rows = [3.0, 0.3].map(|deviation| (0..WIDTH).map(|id| deviation * normal(id)).collect::<Vec<f32>>());
    println!("µs per token                 peaked     flat");
    for (name, params) in cases().into_iter().filter(|(name, _)| name.contains(&filter)) {
        let [peaked, flat] = rows.each_ref().map(|row| time(&params, row));
        println!("{name:25} {:9.0} {:8.0}", micros(peaked?), micros(flat?));
    }
    Ok(())
}

fn cases() -> Vec<(&'static str, SamplerParams)> {
    let on = || SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    let chat = || SamplerParams { temperature: 0.7, top_k: 50, top_p: 0.95, repetition_penalty: 1.1, ..on() };
    vec![
        ("none", on()),
        ("repetition_penalty", SamplerParams { repetition_penalty: 1.1, ..on() }),
        ("presence_penalty", SamplerParams { presence_penalty: 0.5, ..on() }),
        ("dry_multiplier", SamplerParams { dry_multiplier: 0.8, ..on() }),
        ("no_repeat_ngram_size", SamplerParams { no_repeat_ngram_size: 3, ..on() }),
        ("suppress_tokens", SamplerParams { suppress_tokens: vec![1, 2, 3], ..on() }),
        ("logit_bias", SamplerParams { logit_bias: vec![(1, 1.0), (2, -1.0)], ..on() }),
        ("temperature", SamplerParams { temperature: 0.7, ..on() }),
        ("top_k 50", SamplerParams { top_k: 50, ..on() }),
        ("top_p 0.95", SamplerParams { top_p: 0.95, ..on() }),
        ("min_p 0.05", SamplerParams { min_p: 0.05, ..on() }),
        ("typical_p 0.9", SamplerParams { typical_p: 0.9, ..on() }),
        ("top_n_sigma 1", SamplerParams { top_n_sigma: 1.0, ..on() }),
        ("xtc_probability 1", SamplerParams { xtc_probability: 1.0, ..on() }),
        ("chat: T, k, p, repetition", chat()),
        ("chat without top_k", SamplerParams { top_k: 0, ..chat() }),
    ]
}

/// Time of one step.
fn time(params: &SamplerParams, row: &[f32]) -> lm_session::Result<Duration> {
    let token = |index: u32| (uniform(index) * 5000.0) as TokenId;
    let (prompt, output): (Vec<TokenId>, Vec<TokenId>) =
        ((0..2000).map(token).collect(), (2000..3000).map(token).collect());
    let mut chain = Chain::new(params, &Arc::new(tokenizer()));
    let mut fastest = Duration::MAX;
    for step in 0..STEPS {
        let history = History { prompt: &prompt, generated: &output[..400 + step] };
        let started = Instant::now();
        let mut logits = TokenLogits::new(row)?;
        chain.apply(black_box(&mut logits), &history);
        fastest = fastest.min(started.elapsed());
    }
    Ok(fastest)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Hash of `index` as a number in `0..=1`.
fn uniform(index: u32) -> f32 {
    let mut x = index.wrapping_mul(2_654_435_761) ^ 0x9E37;
    for (shift, factor) in [(15, 0x2c1b_3c6d), (12, 0x297a_2d39)] {
        x = (x ^ (x >> shift)).wrapping_mul(factor);
    }
    (x ^ (x >> 15)) as f32 / u32::MAX as f32
}

/// Approximately normal number: the sum of twelve uniform ones.
fn normal(index: u32) -> f32 {
    (0..12).map(|term| uniform(12 * index + term)).sum::<f32>() - 6.0
}
