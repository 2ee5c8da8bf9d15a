//! Running requests: deadlines, handles, and the interfaces of a generation.

use std::time::{Duration, Instant};

use crate::support::{endless, last, prompt, random_engine, tokens};
use futures_util::StreamExt;
use lm_session::{EngineSettings, FinishReason, GenerateParams, SessionEvent};

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
