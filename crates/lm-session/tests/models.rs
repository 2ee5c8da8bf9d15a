//! Models that are unloaded and loaded again, and several of them under one memory budget.

use crate::support;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{endless, gated, generate, ids, random_engine};
use lm_session::{
    Engine, EngineSettings, Error, GenerateParams, LoadOptions, MemoryRequest, ModelFolder, Models, Result,
    TokenId,
};

const NAMES: [&str; 3] = ["llama-tiny", "qwen3-tiny", "gemma2-tiny"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(name)
}

fn settings() -> EngineSettings {
    EngineSettings { kv_cache_tokens: Some(256), ..EngineSettings::default() }
}

fn load(path: &Path, settings: EngineSettings) -> Engine {
    let folder = ModelFolder::open(path).unwrap();
    Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).unwrap()
}

fn registry(budget_bytes: u64, settings: &EngineSettings) -> Models {
    let models = Models::new(budget_bytes);
    for name in NAMES {
        let folder = ModelFolder::open(path(name)).unwrap();
        let request = MemoryRequest { context_tokens: Some(100), ..MemoryRequest::default() };
        models.add(name, folder, &request, LoadOptions::default(), settings.clone()).unwrap();
    }
    models
}

/// A registry whose budget holds `number` of the models, which are about equally large.
fn room_for(number: u64) -> Models {
    room_with(number, &settings())
}

fn room_with(number: u64, settings: &EngineSettings) -> Models {
    let all = registry(u64::MAX, settings).list();
    let needed = all.into_iter().map(|model| model.needed_bytes).max().unwrap();
    registry(needed * number + needed / 2, settings)
}

fn engine(models: &Models, name: &str) -> Result<Engine> {
    models.engine(name, &mut |_| {})
}

fn loaded(models: &Models) -> Vec<String> {
    models.list().into_iter().filter(|model| model.loaded).map(|model| model.name).collect()
}

/// Tokens of two turns with an engine that is never unloaded.
fn expected(name: &str) -> [Vec<TokenId>; 2] {
    let mut session = endless(&load(&path(name), settings()));
    [[3, 1, 4], [1, 5, 9]].map(|prompt| {
        session.prefill(&prompt).unwrap();
        generate(&mut session, 6).unwrap()
    })
}

#[test]
fn sessions_survive_unloading_their_engine() {
    let engine = load(&path(NAMES[0]), settings());
    let [first, second] = expected(NAMES[0]);
    let mut session = endless(&engine);
    session.prefill(&[3, 1, 4]).unwrap();
    assert_eq!(generate(&mut session, 6).unwrap(), first);
    let mut fork = session.fork().unwrap();
    assert!(engine.unload().unwrap());
    assert_eq!(engine.cache_stats().unwrap().total_pages, 0, "the pool is released");
    assert!(engine.unload().unwrap(), "it stays unloaded");
    let kept = session.tokens().len();
    assert_eq!(session.prefill(&[1, 5, 9]).unwrap().prefilled_tokens, kept + 3);
    assert_eq!(generate(&mut session, 6).unwrap(), second);
    assert!(engine.cache_stats().unwrap().total_pages > 0);
    assert!(engine.unload().unwrap());
    assert_eq!(fork.rewind(4), 0, "nothing is cached");
    fork.prefill(&[3, 1, 4]).unwrap();
    assert_eq!(generate(&mut fork, 6).unwrap(), first);
    assert!(engine.unload().unwrap());
    engine.shutdown();
    assert!(matches!(fork.prefill(&[1]), Err(Error::EngineStopped)));
}

#[test]
fn running_or_fileless_model_stays_loaded() {
    let engine = load(&path(NAMES[0]), settings());
    let mut session = endless(&engine);
    session.prefill(&[3, 1, 4]).unwrap();
    let (open, params) = gated();
    let generation = session.generate(params);
    assert!(!engine.unload().unwrap());
    drop(open);
    assert_eq!(ids(generation).unwrap().len(), 3);
    assert!(!random_engine(EngineSettings::default()).unload().unwrap());
}

#[test]
fn idle_model_is_unloaded_after_its_timeout() {
    let keep_alive = Some(Duration::from_millis(20));
    let engine = load(&path(NAMES[0]), EngineSettings { keep_alive, ..settings() });
    let mut session = endless(&engine);
    session.prefill(&[3, 1, 4]).unwrap();
    assert_eq!(generate(&mut session, 6).unwrap(), expected(NAMES[0])[0]);
    // Each request restarts the time.
    std::thread::sleep(Duration::from_millis(100));
    let until = Instant::now() + Duration::from_secs(20);
    while engine.cache_stats().unwrap().total_pages > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(engine.cache_stats().unwrap().total_pages, 0);
    session.prefill(&[1, 5, 9]).unwrap();
    assert_eq!(generate(&mut session, 6).unwrap(), expected(NAMES[0])[1]);
}

#[test]
fn replaced_files_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        for file in std::fs::read_dir(path(name)).unwrap() {
            let file = file.unwrap().path();
            // Removed first: the old file stays mapped as it was.
            let target = folder.path().join(file.file_name().unwrap());
            let _ = std::fs::remove_file(&target);
            std::fs::copy(&file, target).unwrap();
        }
    };
    copy(NAMES[0]);
    let engine = load(folder.path(), settings());
    let mut session = endless(&engine);
    session.prefill(&[3, 1, 4]).unwrap();
    let first = generate(&mut session, 6).unwrap();
    assert!(engine.unload().unwrap());
    copy(NAMES[1]);
    assert!(matches!(session.prefill(&[1]), Err(Error::ModelChanged { .. } | Error::Model(_))));
    copy(NAMES[0]);
    session.rewind(0);
    session.prefill(&[3, 1, 4]).unwrap();
    assert_eq!(generate(&mut session, 6).unwrap(), first);
}

#[test]
fn least_recently_used_model_is_unloaded() {
    let models = room_for(2);
    assert_eq!(loaded(&models), [""; 0], "nothing is loaded before it is used");
    let mut sessions: Vec<_> =
        NAMES[..2].iter().map(|name| endless(&engine(&models, name).unwrap())).collect();
    assert_eq!(loaded(&models), NAMES[..2]);
    for session in &mut sessions {
        session.prefill(&[3, 1, 4]).unwrap();
    }
    assert_eq!(generate(&mut sessions[0], 6).unwrap(), expected(NAMES[0])[0]); // The second one is older now.
    sessions.push(endless(&engine(&models, NAMES[2]).unwrap()));
    assert_eq!(loaded(&models), [NAMES[0], NAMES[2]]);
    // Its session loads it again by itself.
    assert_eq!(generate(&mut sessions[1], 6).unwrap(), expected(NAMES[1])[0]);
    assert_eq!(loaded(&models), NAMES[1..]);
    sessions[0].prefill(&[1, 5, 9]).unwrap();
    assert_eq!(generate(&mut sessions[0], 6).unwrap(), expected(NAMES[0])[1]);
    assert_eq!(loaded(&models).len(), 2);
}

#[test]
fn model_is_reloaded_after_engine_shutdown() {
    let models = room_for(1);
    let first = engine(&models, NAMES[0]).unwrap();
    assert!(!first.is_stopped());
    first.shutdown();
    assert!(first.is_stopped());
    assert_eq!(loaded(&models), [""; 0], "its memory is released");
    let mut session = endless(&engine(&models, NAMES[0]).unwrap());
    session.prefill(&[3, 1, 4]).unwrap();
    assert_eq!(generate(&mut session, 6).unwrap(), expected(NAMES[0])[0]);
    assert_eq!(loaded(&models), [NAMES[0]]);
}

#[test]
fn reload_waits_for_the_last_engine() {
    let models = room_for(1);
    let first = engine(&models, NAMES[0]).unwrap();
    let mut session = endless(&first);
    session.prefill(&[3, 1, 4]).unwrap();
    let (open, params) = gated();
    let generation = session.generate(params);
    let (stopping, again) = (first.clone(), models.clone());
    let stopped = std::thread::spawn(move || stopping.shutdown());
    while !first.is_stopped() {
        std::thread::yield_now();
    }
    let second = std::thread::spawn(move || engine(&again, NAMES[0]).unwrap());
    assert!(!second.is_finished());
    drop(open);
    assert_eq!(ids(generation).unwrap().len(), 3);
    stopped.join().unwrap();
    let second = second.join().unwrap();
    assert_eq!(loaded(&models), [NAMES[0]], "the end of the first one does not count for the second");
    let mut session = endless(&second);
    session.prefill(&[3, 1, 4]).unwrap();
    let (open, params) = gated();
    let generation = session.generate(params);
    assert!(matches!(engine(&models, NAMES[1]), Err(Error::ModelsInUse { .. })));
    drop(open);
    assert_eq!(ids(generation).unwrap().len(), 3);
}

#[test]
fn models_in_use_are_not_unloaded() {
    let models = room_for(1);
    let mut session = endless(&engine(&models, NAMES[0]).unwrap());
    session.prefill(&[3, 1, 4]).unwrap();
    let (open, params) = gated();
    let generation = session.generate(params);
    let Err(Error::ModelsInUse { name, needed_bytes, left_bytes }) = engine(&models, NAMES[1]) else {
        panic!("the first model is in use")
    };
    assert!(name == NAMES[1] && left_bytes < needed_bytes, "{name} {needed_bytes} {left_bytes}");
    assert_eq!(loaded(&models), [NAMES[0]]);
    drop(open);
    assert_eq!(ids(generation).unwrap().len(), 3);
    engine(&models, NAMES[1]).unwrap();
    assert_eq!(loaded(&models), [NAMES[1]]);
}

#[test]
fn names_and_sizes_are_checked() {
    let models = room_for(1);
    assert!(matches!(engine(&models, "other"), Err(Error::UnknownModel { name }) if name == "other"));
    let add = |models: &Models, name: &str| {
        let folder = ModelFolder::open(path(NAMES[0])).unwrap();
        models.add(name, folder, &MemoryRequest::default(), LoadOptions::default(), settings())
    };
    assert!(matches!(add(&models, NAMES[0]), Err(Error::DuplicateModel { name }) if name == NAMES[0]));
    assert!(matches!(add(&Models::new(1 << 20), "large"), Err(Error::DoesNotFit { .. })));
}

#[test]
fn many_threads_share_a_budget_for_one() {
    share_a_budget(&settings());
}

#[test]
fn self_unloading_models_share_a_budget() {
    // About as long as a thread takes between two requests: some models unload themselves while another one
    // asks them to.
    for micros in [1, 50, 200, 1_000, 5_000] {
        share_a_budget(&EngineSettings { keep_alive: Some(Duration::from_micros(micros)), ..settings() });
    }
}

/// Four threads use two models under a budget for one of them.
fn share_a_budget(settings: &EngineSettings) {
    let models = room_with(1, settings);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (models, name) = (models.clone(), NAMES[thread % 2]);
            scope.spawn(move || {
                let expected = expected(name);
                let until = Instant::now() + Duration::from_secs(300);
                let retried = |run: &mut dyn FnMut() -> Result<()>| loop {
                    match run() {
                        Err(Error::ModelsInUse { .. }) if Instant::now() < until => std::thread::yield_now(),
                        outcome => break outcome.unwrap(),
                    }
                };
                for _ in 0..5 {
                    let mut own = None;
                    retried(&mut || {
                        own = Some(engine(&models, name)?);
                        Ok(())
                    });
                    let mut session = endless(&own.unwrap());
                    for (prompt, expected) in [[3, 1, 4], [1, 5, 9]].iter().zip(&expected) {
                        let mut ids = session.tokens();
                        ids.extend(prompt);
                        let mut written = Vec::new();
                        retried(&mut || {
                            let max_output_tokens = Some(6);
                            let params = GenerateParams { max_output_tokens, ..GenerateParams::default() };
                            written = support::ids(session.submit(&ids, params)?)?;
                            Ok(())
                        });
                        assert_eq!(&written, expected, "{name}");
                    }
                }
            });
        }
    });
    assert!(loaded(&models).len() <= 1);
}

#[test]
fn token_of_an_unloaded_model_is_dropped() {
    let engine = load(&path(NAMES[0]), settings());
    let (mut first, mut second) = (endless(&engine), endless(&engine));
    let (open, params) = gated();
    let generation = first.submit(&[2, 7, 1, 8], params).unwrap();
    std::thread::sleep(Duration::from_millis(300)); // Its token is being sampled.
    drop(generation);
    std::thread::scope(|scope| {
        let unloaded = scope.spawn(|| engine.unload().unwrap());
        std::thread::sleep(Duration::from_millis(300)); // The worker waits for the sampling threads.
        let params = GenerateParams { max_output_tokens: Some(6), ..GenerateParams::default() };
        let next = second.submit(&[3, 1, 4], params).unwrap();
        drop(open);
        assert_eq!(ids(next).unwrap(), expected(NAMES[0])[0]);
        assert!(unloaded.join().unwrap());
    });
}
