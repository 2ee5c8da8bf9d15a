//! Running requests: deadlines, handles, and the interfaces of a generation.

use std::time::{Duration, Instant};

use crate::support::{endless, last, prompt, random_engine, tokens};
use futures_util::StreamExt;
use lm_session::{EngineSettings, Error, FinishReason, GenerateParams, SessionEvent};

#[test]
fn deadline_ends_a_running_generation() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let deadline = Some(Instant::now() + Duration::from_millis(30));
    let finished = last(session.submit(&[1, 2, 3], GenerateParams { deadline, ..tokens(100_000) }).unwrap());
    assert!(
        matches!(finished.reason, FinishReason::DeadlineExceeded | FinishReason::ContextFull),
        "{finished:?}"
    );
    assert_eq!(session.tokens().len(), 3 + finished.usage.output_tokens);
}

#[test]
fn next_generation_runs_after_a_cancelled_one() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let mut generation = session.submit(&[1, 2, 3], GenerateParams::default()).unwrap();
    let cancel = generation.canceller();
    assert!(generation.by_ref().any(|event| matches!(event, Ok(SessionEvent::Token { .. }))));
    cancel.cancel();
    let reason = last(generation).reason;
    assert!(matches!(reason, FinishReason::Cancelled | FinishReason::ContextFull), "{reason:?}");
    cancel.cancel(); // Too late: it belongs to the generation that has ended.
    assert_eq!(last(session.submit(&[1, 2, 3], tokens(4)).unwrap()).usage.output_tokens, 4);
}

#[test]
fn later_call_ends_a_held_generation() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let old = session.submit(&[1, 2, 3], GenerateParams::default()).unwrap();
    let new = session.submit(&[4, 5, 6], tokens(3)).unwrap();
    assert_eq!(last(new).reason, FinishReason::MaxOutputTokens);
    let tokens = session.tokens();
    let events: Vec<_> = old.collect();
    assert!(!events.iter().any(|event| matches!(event, Ok(SessionEvent::Token { .. }))), "{events:?}");
    assert_eq!(last(events.into_iter()).reason, FinishReason::Cancelled);
    assert_eq!((session.tokens(), tokens.len()), (tokens.clone(), 6));
    drop(session);
    assert_eq!(tokens[..3], [4, 5, 6]);
}

#[test]
fn stream_has_the_events_of_the_iterator() {
    let settings = EngineSettings { prefill_chunk: 4, ..EngineSettings::default() };
    let strip = |event: lm_session::Result<SessionEvent>| match event.unwrap() {
        SessionEvent::Finished(finished) => format!("{:?} {:?}", finished.reason, finished.usage),
        event => format!("{event:?}"),
    };
    let iterated: Vec<_> = {
        let engine = random_engine(settings.clone());
        let mut session = endless(&engine);
        session.submit(&prompt(1, 10), tokens(3)).unwrap().map(strip).collect()
    };
    let engine = random_engine(settings);
    let mut session = endless(&engine);
    let stream = session.submit(&prompt(1, 10), tokens(3)).unwrap().into_stream();
    let streamed: Vec<_> = futures_executor::block_on(stream.map(strip).collect());
    assert_eq!(streamed, iterated);
    let prefills = iterated.iter().filter(|event| event.starts_with("Prefill")).count();
    assert_eq!(prefills, 3, "{iterated:?}");
}

#[test]
fn dropped_session_ends_its_generation() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let generation = session.submit(&[1, 2, 3], GenerateParams::default()).unwrap();
    drop(session);
    let reason = last(generation).reason;
    assert!(matches!(reason, FinishReason::Cancelled | FinishReason::ContextFull), "{reason:?}");
}

#[test]
fn wait_for_an_idle_engine_ends_with_its_last_request() {
    let engine = random_engine(EngineSettings::default());
    engine.wait_idle(Duration::ZERO).unwrap_or_else(|error| assert!(matches!(error, Error::NotIdle { .. })));
    let (mut one, mut other) = (endless(&engine), endless(&engine));
    let running = [one.submit(&[1, 2, 3], tokens(20)).unwrap(), other.submit(&[4, 5], tokens(30)).unwrap()];
    engine.wait_idle(Duration::from_secs(60)).unwrap();
    assert_eq!(engine.activity().running_requests, 0);
    let counts = running.map(|generation| last(generation).usage.output_tokens);
    assert_eq!(counts, [20, 30]);
    // It can be used afterwards.
    assert_eq!(last(one.submit(&[1], tokens(2)).unwrap()).usage.output_tokens, 2);
}

#[test]
fn wait_for_an_idle_engine_has_a_limit_and_waits_for_tasks() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let task = engine.task();
    let timeout = Duration::from_millis(20);
    let error = engine.wait_idle(timeout).unwrap_err();
    assert!(matches!(error, Error::NotIdle { timeout: given } if given == timeout), "{error}");
    assert_eq!(error.to_string(), "the engine is still at work after 0.020 s");
    let worker = std::thread::spawn(move || {
        let finished = last(session.submit(&[1, 2], tokens(5)).unwrap());
        drop(task);
        finished.usage.output_tokens
    });
    engine.wait_idle(Duration::from_secs(60)).unwrap();
    assert_eq!(worker.join().expect("no panic"), 5);
    engine.shutdown();
    assert!(matches!(engine.wait_idle(timeout), Err(Error::EngineStopped)));
}
