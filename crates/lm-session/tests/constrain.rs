//! Generations under a constraint, by the engine's public face.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use lm_session::testing::{scripted_engine, tokenizer};
use lm_session::{
    ConstraintSpec, Engine, EngineSettings, FinishReason, Finished, GenerateParams, SamplerParams,
    SessionConfig, SessionEvent, TokenId,
};
use support::random_engine;

/// Ids, text and end of a generation of at most `max_output_tokens` under `spec`.
fn generate(
    engine: &Engine,
    spec: &ConstraintSpec,
    sampler: SamplerParams,
    max_output_tokens: usize,
) -> (Vec<TokenId>, String, Finished) {
    let constraint = Some(engine.compile(spec).unwrap().start());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&support::prompt(1, 5)).unwrap();
    let params = GenerateParams {
        sampler: Some(sampler),
        constraint,
        max_output_tokens: Some(max_output_tokens),
        ..GenerateParams::default()
    };
    let (mut ids, mut whole) = (Vec::new(), String::new());
    for event in session.generate(params) {
        match event.unwrap() {
            SessionEvent::Token { id, text } => {
                ids.push(id);
                whole += &text;
            }
            SessionEvent::Finished(finished) => return (ids, whole, finished),
        }
    }
    panic!("a generation has a last event");
}

fn lark(text: &str, markers: &[&str]) -> ConstraintSpec {
    ConstraintSpec::Lark { text: text.to_owned(), markers: markers.iter().map(|m| m.to_string()).collect() }
}

fn random(seed: u64) -> SamplerParams {
    SamplerParams { temperature: 1.0, seed, ..SamplerParams::default() }
}

#[test]
fn what_must_come_is_not_sampled() {
    let engine = scripted_engine(["never asked"]);
    let spec = lark(
        "start: marker_0 \"{\\\"name\\\": \\\"\" (\"one\"|\"two\") \"\\\"}\" marker_1",
        &["<tool_call>", "<none>"],
    );
    let (ids, text, finished) = generate(&engine, &spec, SamplerParams::default(), 100);
    assert_eq!(Some(ids[0]), tokenizer().token_id("<tool_call>"));
    assert!(
        ["one", "two"].iter().any(|name| text == format!("<tool_call>{{\"name\": \"{name}\"}}<none>")),
        "{text}"
    );
    assert_eq!(finished.reason, FinishReason::EndToken);
    assert!(finished.usage.forced_tokens >= ids.len() - 3, "{:?} of {ids:?}", finished.usage);
}

#[test]
fn random_text_fits_its_grammar() {
    let engine = random_engine(EngineSettings::default());
    for (seed, spec) in (0..5).flat_map(|seed| {
        [
            (seed, ConstraintSpec::Regex("[a-f]{3,9}-[0-9]+x".to_owned())),
            (seed, ConstraintSpec::Choice(vec!["yes".to_owned(), "yes (or so)".to_owned(), "no".to_owned()])),
        ]
    }) {
        let (_, text, finished) = generate(&engine, &spec, random(seed), 400);
        let accepted = engine.compile(&spec).unwrap().check(&text).unwrap();
        assert_eq!(finished.reason, FinishReason::EndToken, "{text}");
        assert_eq!(accepted, lm_session::Acceptance::Accepted, "{text}");
    }
}
