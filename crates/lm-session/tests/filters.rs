//! Logits filters against implementations that are not ours; see `data/filters.py`.

use std::sync::Arc;

use lm_session::testing::tokenizer;
use lm_session::{Chain, History, SamplerParams, TokenId, TokenLogits};
use serde_json::Value;

/// Parameters of a case, with temperature 1 unless it has another one.
fn params(case: &Value) -> SamplerParams {
    let mut params = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    for (name, value) in case["params"].as_object().unwrap() {
        let (float, count) = (|| value.as_f64().unwrap() as f32, || value.as_u64().unwrap() as usize);
        let texts =
            || value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect();
        match name.as_str() {
            "repetition_penalty" => params.repetition_penalty = float(),
            "no_repeat_ngram_size" => params.no_repeat_ngram_size = count(),
            "suppress_tokens" => params.suppress_tokens = ids(value),
            "temperature" => params.temperature = float(),
            "top_k" => params.top_k = count(),
            "top_p" => params.top_p = float(),
            "min_p" => params.min_p = float(),
            "typical_p" => params.typical_p = float(),
            "top_n_sigma" => params.top_n_sigma = float(),
            "xtc_probability" => params.xtc_probability = float(),
            "xtc_threshold" => params.xtc_threshold = float(),
            "dry_multiplier" => params.dry_multiplier = float(),
            "dry_base" => params.dry_base = float(),
            "dry_allowed_length" => params.dry_allowed_length = count(),
            "dry_penalty_last_n" => params.dry_penalty_last_n = Some(count()),
            "dry_sequence_breakers" => params.dry_sequence_breakers = texts(),
            unknown => panic!("the test does not know {unknown}"),
        }
    }
    params
}

fn ids(value: &Value) -> Vec<TokenId> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as TokenId).collect()
}

#[test]
fn filters_equal_the_references() {
    let cases: Value = serde_json::from_str(include_str!("data/filters.json")).unwrap();
    let cases = cases.as_array().unwrap();
    let tokenizer = Arc::new(tokenizer());
    for case in cases {
        let before: Vec<f32> =
            case["logits"].as_array().unwrap().iter().map(|logit| logit.as_f64().unwrap() as f32).collect();
        let expected =
            case["after"].as_array().unwrap().iter().zip(&before).map(|(mark, &before)| match mark {
                Value::Null => f32::NEG_INFINITY,
                Value::Bool(true) => before,
                changed => changed.as_f64().unwrap() as f32,
            });
        let expected: Vec<f32> = expected.collect();
        let (prompt, generated) = (ids(&case["prompt"]), ids(&case["generated"]));
        let params = params(case);
        // The temperature subtracts the highest logit, which changes no probability.
        let highest = expected.iter().copied().fold(f32::MIN, f32::max);
        let shift = if params.temperature == 1.0 { 0.0 } else { highest };
        let mut chain = Chain::new(&params, &tokenizer);
        // Token by token, as in a generation.
        for len in 0..=generated.len() {
            let mut logits = TokenLogits::new(&before).unwrap();
            chain.apply(&mut logits, &History { prompt: &prompt, generated: &generated[..len] });
            if len < generated.len() {
                continue;
            }
            let mut after = vec![f32::NEG_INFINITY; before.len()];
            let left = logits.ids().iter().zip(logits.values());
            left.for_each(|(&id, &value)| after[id as usize] = value);
            for (id, (after, expected)) in after.into_iter().zip(&expected).enumerate() {
                let close =
                    after == *expected || (after + shift - expected).abs() < 2e-5 * expected.abs().max(1.0);
                assert!(close, "{}, token {id}: {after}, expected {expected}", case["params"]);
            }
        }
    }
    assert_eq!(cases.len(), 36, "the number of cases");
}
