//! Constraints that are slow, panic or call the engine affect only their own request.

use crate::support;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::{AllowAll, endless, generate, last_error, random_engine};
use lm_session::{
    CancelHandle, Engine, EngineSettings, Error, FinishReason, GenerateParams, SessionEvent, TokenId,
};

fn constrained(before: impl Fn() + Clone + Send + 'static, cancel: CancelHandle) -> GenerateParams {
    let constraint = Some(Box::new(AllowAll { before, state_bytes: 0 }) as _);
    GenerateParams { constraint, cancel, max_output_tokens: Some(20), ..GenerateParams::default() }
}

/// Creates a hook that reports its arrival, and waits until the sender is dropped.
fn gate() -> (impl Fn() + Clone + Send + 'static, Receiver<()>, Sender<()>) {
    let (arrive, arrived) = channel();
    let (open, opened) = channel::<()>();
    let opened = Arc::new(Mutex::new(opened));
    let wait = move || {
        let _ = arrive.send(());
        let _ = opened.lock().unwrap().recv();
    };
    (wait, arrived, open)
}

#[test]
fn others_generate_while_a_mask_is_computed() {
    let engine = random_engine(EngineSettings::default());
    let (wait, arrived, open) = gate();
    let mut slow = endless(&engine);
    slow.prefill(&[1, 2, 3]).unwrap();
    let slow = slow.generate(constrained(wait, CancelHandle::new()));
    arrived.recv().unwrap();
    let mut other = endless(&engine);
    other.prefill(&[4, 5, 6]).unwrap();
    assert_eq!(generate(&mut other, 50).unwrap().len(), 50);
    drop(open);
    let finished = slow.last().unwrap().unwrap();
    let SessionEvent::Finished(finished) = finished else { panic!("{finished:?}") };
    assert_eq!((finished.reason, finished.usage.output_tokens), (FinishReason::MaxOutputTokens, 20));
}

#[test]
fn generation_is_cancelled_during_mask_computation() {
    let engine = random_engine(EngineSettings::default());
    let (wait, arrived, open) = gate();
    let cancel = CancelHandle::new();
    let mut session = endless(&engine);
    session.prefill(&[1, 2, 3]).unwrap();
    let mut generation = session.generate(constrained(wait, cancel.clone()));
    arrived.recv().unwrap();
    cancel.cancel();
    let event = generation.next().unwrap().unwrap();
    let SessionEvent::Finished(finished) = event else { panic!("{event:?}") };
    assert_eq!(finished.reason, FinishReason::Cancelled);
    let expected = generate(&mut endless_after(&engine, &[1, 2, 3]), 9).unwrap();
    assert_eq!(generate(&mut session, 9).unwrap(), expected, "the mask of the cancelled one still waits");
    drop(open);
}

fn endless_after(engine: &Engine, ids: &[TokenId]) -> lm_session::Session {
    let mut session = endless(engine);
    session.prefill(ids).unwrap();
    session
}

#[test]
fn constraint_panic_fails_only_its_request() {
    let engine = random_engine(EngineSettings::default());
    let expected = generate(&mut endless_after(&engine, &[4, 5, 6]), 30).unwrap();
    let mut other = endless_after(&engine, &[4, 5, 6]);
    let reading = std::thread::spawn(move || generate(&mut other, 30).unwrap());
    let mut session = endless_after(&engine, &[1, 2, 3]);
    let error = last_error(session.generate(constrained(|| panic!("poison"), CancelHandle::new())));
    let Error::WorkerPanicked { message } = error else { panic!("{error}") };
    assert_eq!(message, "poison");
    assert_eq!(reading.join().unwrap(), expected);
    assert_eq!(session.tokens(), [1, 2, 3]);
    assert_eq!(session.prefill(&[9]).unwrap().cached_tokens, 3, "the pool is kept");
}

#[test]
fn constraint_may_ask_the_engine() {
    let engine = random_engine(EngineSettings::default());
    let asked = Mutex::new(engine.clone());
    let asked = Arc::new(asked);
    let ask = move || {
        assert!(asked.lock().unwrap().cache_stats().unwrap().total_pages > 0);
    };
    let mut session = endless_after(&engine, &[1, 2, 3]);
    let events = session.generate(constrained(ask, CancelHandle::new()));
    assert_eq!(support::ids(events).unwrap().len(), 20);
}

/// Panics when it is dropped.
#[derive(Clone)]
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "poison");
    }
}

#[test]
fn panic_in_constraint_drop_is_contained() {
    let engine = random_engine(EngineSettings::default());
    let expected = generate(&mut endless_after(&engine, &[4, 5, 6]), 30).unwrap();
    let mut session = endless_after(&engine, &[1, 2, 3]);
    for cancelled in [false, true] {
        let cancel = CancelHandle::new();
        if cancelled {
            cancel.cancel();
        }
        let poison = PanicsInDrop;
        let before = move || {
            let _held = &poison;
        };
        let params = GenerateParams { max_output_tokens: Some(3), ..constrained(before, cancel) };
        let last = session.generate(params).last().unwrap().unwrap();
        assert!(matches!(last, SessionEvent::Finished(_)), "{last:?}");
    }
    let mut other = endless(&engine);
    assert_eq!(other.prefill(&[4, 5, 6]).unwrap().cached_tokens, 0, "a prompt shorter than a page");
    assert_eq!(generate(&mut other, 30).unwrap(), expected);
    assert_eq!(session.prefill(&[9]).unwrap().prefilled_tokens, 2, "the pool is kept");
}
