//! Concurrent sessions: each gets the tokens that it gets alone, and none waits for another's reader.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use crate::support::{hooked_engine, ids, prompt, random_engine};
use lm_session::{Engine, EngineSettings, GenerateParams, SamplerParams, SessionConfig, SessionEvent};

/// Prompt and config of one of the eight requests: prompts of different lengths, greedy and sampled.
fn config(index: u32) -> (Vec<u32>, SessionConfig) {
    let temperature = if index.is_multiple_of(3) { 0.0 } else { 0.9 };
    let sampler = SamplerParams {
        temperature,
        top_p: 0.95,
        repetition_penalty: 1.1,
        seed: Some(index.into()),
        ..SamplerParams::default()
    };
    let config = SessionConfig { sampler, max_output_tokens: Some(40), ..SessionConfig::default() };
    (prompt(index, 1 + 23 * index as usize), config)
}

fn alone(engine: &Engine, index: u32) -> Vec<u32> {
    let (prompt, config) = config(index);
    let mut session = engine.session(config).unwrap();
    session.prefill(&prompt).unwrap();
    ids(session.generate(GenerateParams::default())).unwrap()
}

/// Prefills eight sessions from as many threads, then starts all generations before the next forward pass may
/// run. Also returns the number of forward passes with several requests.
fn together(settings: EngineSettings) -> (Vec<Vec<u32>>, usize) {
    let gate = Arc::new(Mutex::new(None::<Receiver<()>>));
    let (engine, model) = hooked_engine(settings, {
        let gate = gate.clone();
        move |_| {
            if let Some(opened) = gate.lock().unwrap().take() {
                let _ = opened.recv();
            }
            Ok(())
        }
    });
    let mut sessions: Vec<_> = (0..8).map(|index| engine.session(config(index).1).unwrap()).collect();
    std::thread::scope(|scope| {
        for (index, session) in (0..).zip(&mut sessions) {
            scope.spawn(move || session.prefill(&config(index).0).unwrap());
        }
    });
    let prefilled = model.calls().len();
    let (open, opened) = channel();
    *gate.lock().unwrap() = Some(opened);
    let generations: Vec<_> =
        sessions.iter_mut().map(|session| session.generate(GenerateParams::default())).collect();
    drop(open);
    let results = generations.into_iter().map(|generation| ids(generation).unwrap()).collect();
    let shared = model.calls()[prefilled..].iter().filter(|call| call.len() > 1).count();
    (results, shared)
}

#[test]
fn eight_concurrent_sessions_equal_single_ones() {
    let reference = random_engine(EngineSettings::default());
    let expected: Vec<_> = (0..8).map(|index| alone(&reference, index)).collect();
    // Plenty of room; and a pool of 256 tokens, which cannot hold all eight (up to 202 tokens each).
    for (kv_cache_tokens, prefill_chunk) in [(None, 512), (None, 7), (Some(256), 64)] {
        let settings = EngineSettings { kv_cache_tokens, prefill_chunk, ..EngineSettings::default() };
        let (got, shared) = together(settings);
        assert_eq!(got, expected, "pool {kv_cache_tokens:?}, chunk {prefill_chunk}");
        assert!(shared > 0, "no forward pass was shared");
    }
}

#[test]
fn sleeping_reader_blocks_no_other() {
    let engine = random_engine(EngineSettings::default());
    let open = |seed| {
        let mut session = engine.session(config(seed).1).unwrap();
        session.prefill(&prompt(seed, 5)).unwrap();
        session
    };
    let (mut slow, mut quick) = (open(1), open(2));
    let mut unread = slow.generate(GenerateParams::default());
    assert!(quick.generate(GenerateParams::default()).into_text().is_ok());
    assert!(matches!(unread.next(), Some(Ok(SessionEvent::Token { .. }))));
}
