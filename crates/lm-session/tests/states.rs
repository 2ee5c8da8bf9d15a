//! Models with recurrent-state layers in an engine: a session continues with the tokens of a fresh one.

use std::path::Path;
use std::time::Duration;

use crate::support::{endless, generate, pages_held, prompt};
use lm_session::{CancelHandle, Engine, EngineSettings, KvDtype, LoadOptions, ModelFolder, TokenId};

/// Checkpoints with convolutions and attention, and with gated delta nets and attention.
const MODELS: [&str; 2] = ["lfm2-tiny", "qwen3_5-tiny"];

fn engine(model: &str, prefill_chunk: usize) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(model);
    let options = LoadOptions { kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    // A whole chunk each step, although other tests wait for the CPU.
    let step_budget = Duration::MAX;
    let settings = EngineSettings { prefill_chunk, step_budget, ..EngineSettings::default() };
    Engine::load(&ModelFolder::open(folder).unwrap(), &options, settings, &mut |_| {}).unwrap()
}

/// Continuation of `ids` by a fresh engine.
fn alone(model: &str, ids: &[TokenId], count: usize) -> Vec<TokenId> {
    let engine = engine(model, 512);
    let mut session = endless(&engine);
    session.prefill(ids).unwrap();
    generate(&mut session, count).unwrap()
}

#[test]
fn rewind_uses_the_nearest_snapshot() {
    let ids = prompt(6, 110);
    for model in MODELS {
        // A prefill leaves a snapshot at the last page border in each chunk.
        for (chunk, len, reached) in [(512, 100, 96), (512, 90, 0), (40, 90, 64), (40, 63, 32), (32, 96, 96)]
        {
            let engine = engine(model, chunk);
            let mut session = endless(&engine);
            session.prefill(&ids).unwrap();
            assert_eq!(session.rewind(len), reached, "{model}, chunks of {chunk}, back to {len}");
            assert_eq!(session.tokens(), &ids[..reached]);
            let other = [&ids[..len], &[9]].concat();
            let stats = session.prefill(&other[reached..]).unwrap();
            assert_eq!((stats.cached_tokens, stats.prefilled_tokens), (reached, len + 1 - reached));
            assert_eq!(
                generate(&mut session, 8).unwrap(),
                alone(model, &other, 8),
                "{model}, {chunk}, {len}"
            );
        }
    }
}

#[test]
fn second_turn_equals_a_fresh_prefill() {
    for model in MODELS {
        let engine = engine(model, 24);
        let mut session = endless(&engine);
        session.prefill(&prompt(7, 45)).unwrap();
        generate(&mut session, 20).unwrap();
        // As with a chat template: the reply's last tokens are rendered differently, and others follow.
        let kept = session.tokens().len() - 3;
        let second = [&session.tokens()[..kept], &prompt(8, 30)].concat();
        let stats = session.sync(&second, &CancelHandle::new()).unwrap();
        assert_eq!(stats.cached_tokens, kept / 32 * 32, "{model}");
        assert_eq!(generate(&mut session, 8).unwrap(), alone(model, &second, 8), "{model}");
    }
}

#[test]
fn forks_of_one_state_are_independent() {
    let ids = prompt(9, 70);
    for model in MODELS {
        let engine = engine(model, 512);
        let mut one = endless(&engine);
        one.prefill(&ids).unwrap();
        let before = pages_held(&engine);
        let mut two = one.fork().unwrap();
        assert_eq!(pages_held(&engine), before, "a fork takes no page");
        two.prefill(&[7]).unwrap();
        one.prefill(&[8]).unwrap();
        let expected = |last| alone(model, &[&ids[..], &[last]].concat(), 8);
        assert_eq!(generate(&mut one, 8).unwrap(), expected(8), "{model}");
        assert_eq!(generate(&mut two, 8).unwrap(), expected(7), "{model}");
    }
}

#[test]
fn concurrent_sessions_equal_single_ones() {
    for model in MODELS {
        let engine = engine(model, 16);
        std::thread::scope(|scope| {
            for (seed, len) in [(1, 1), (2, 31), (3, 33), (4, 80)] {
                let engine = &engine;
                scope.spawn(move || {
                    let mut session = endless(engine);
                    session.prefill(&prompt(seed, len)).unwrap();
                    let got = generate(&mut session, 20).unwrap();
                    assert_eq!(got, alone(model, &prompt(seed, len), 20), "{model}, prompt of {len}");
                });
            }
        });
    }
}
