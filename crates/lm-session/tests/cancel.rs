//! Cancellation from another thread, and dropped generations.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::support::{generate, hooked_engine, prompt, random_engine};
use lm_session::{
    CancelHandle, EngineSettings, Error, FinishReason, GenerateParams, SamplerParams, SessionConfig,
    SessionEvent,
};

/// Creates a gate in front of every forward pass: `arrived` receives a message for each pass, `open` lets it
/// run.
fn gate() -> (impl Fn() + Send + Sync + 'static, Receiver<()>, Sender<()>) {
    let (arrive, arrived) = channel();
    let (open, opened) = channel();
    let ends = Mutex::new((arrive, opened));
    let wait = move || {
        let ends: &(Sender<()>, Receiver<()>) = &ends.lock().unwrap();
        // After the end of the test, all gates are open.
        let _ = ends.0.send(());
        let _ = ends.1.recv();
    };
    (wait, arrived, open)
}

#[test]
fn cancelled_prefill_stops_in_one_step_and_keeps_rows() {
    let (wait, arrived, open) = gate();
    let settings = EngineSettings { prefill_chunk: 10, ..EngineSettings::default() };
    let (engine, model) = hooked_engine(settings, move |_| {
        wait();
        Ok(())
    });
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let cancel = CancelHandle::new();
    let canceller = std::thread::spawn({
        let cancel = cancel.clone();
        move || {
            for _ in 0..2 {
                arrived.recv().unwrap();
                open.send(()).unwrap();
            }
            arrived.recv().unwrap(); // The third chunk is running.
            cancel.cancel();
        }
    });
    let ids = prompt(1, 100);
    assert!(matches!(session.sync(&ids, &cancel), Err(Error::Cancelled)));
    canceller.join().unwrap();
    assert_eq!(session.tokens(), &ids[..30]);
    assert_eq!(model.calls().len(), 3);
    let stats = session.sync(&ids, &CancelHandle::new()).unwrap();
    assert_eq!((stats.cached_tokens, stats.prefilled_tokens), (30, 70));
}

#[test]
fn generation_is_cancelled_within_one_step() {
    let (wait, arrived, open) = gate();
    let (engine, _) = hooked_engine(EngineSettings::default(), move |_| {
        wait();
        Ok(())
    });
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let cancel = CancelHandle::new();
    let canceller = std::thread::spawn({
        let cancel = cancel.clone();
        move || {
            for _ in 0..4 {
                arrived.recv().unwrap();
                open.send(()).unwrap();
            }
            arrived.recv().unwrap(); // The prompt and three tokens have run; the fourth is running.
            cancel.cancel();
        }
    });
    session.prefill(&[3, 4, 5]).unwrap();
    let params = GenerateParams { cancel: cancel.clone(), ..GenerateParams::default() };
    let events: Vec<_> = session.generate(params).map(|event| event.unwrap()).collect();
    canceller.join().unwrap();
    let Some(SessionEvent::Finished(finished)) = events.last() else { panic!("{events:?}") };
    assert_eq!(finished.reason, FinishReason::Cancelled);
    // One token from the prompt's logits, and one from each of four passes.
    assert_eq!((finished.usage.output_tokens, events.len()), (5, 6));
    assert_eq!(session.tokens().len(), 3 + 5);
}

#[test]
fn cancelled_handle_runs_no_request() {
    let engine = random_engine(EngineSettings::default());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let cancel = CancelHandle::new();
    cancel.cancel();
    assert!(matches!(session.sync(&[1, 2], &cancel), Err(Error::Cancelled)));
    assert!(session.tokens().is_empty());
    session.prefill(&[1, 2]).unwrap();
    let (_, finished) =
        session.generate(GenerateParams { cancel, ..GenerateParams::default() }).into_text().unwrap();
    assert_eq!((finished.reason, finished.usage.output_tokens), (FinishReason::Cancelled, 0));
    assert_eq!(finished.timing.ttft, None);
}

#[test]
fn dropped_generation_keeps_the_tokens_read() {
    let engine = random_engine(EngineSettings::default());
    let mut whole = engine.session(SessionConfig::default()).unwrap();
    whole.prefill(&[9, 8, 7]).unwrap();
    let expected = generate(&mut whole, 30).unwrap();
    for read in [0, 1, 4] {
        let mut session = engine.session(SessionConfig::default()).unwrap();
        session.prefill(&[9, 8, 7]).unwrap();
        let mut generation = session.generate(GenerateParams::default());
        assert_eq!(generation.by_ref().take(read).filter(Result::is_ok).count(), read);
        drop(generation);
        assert_eq!(session.tokens()[3..], expected[..read]);
        assert_eq!(generate(&mut session, 30 - read).unwrap(), expected[read..], "after {read} tokens");
    }
}

#[test]
fn session_change_cancels_unread_tokens() {
    let engine = random_engine(EngineSettings::default());
    for (read, expected) in [(2, FinishReason::Cancelled), (5, FinishReason::MaxOutputTokens)] {
        let mut session = engine.session(SessionConfig::default()).unwrap();
        session.prefill(&[9, 8, 7]).unwrap();
        let params = GenerateParams { max_output_tokens: Some(5), ..GenerateParams::default() };
        let mut generation = session.generate(params);
        while engine.activity().waiting_requests + engine.activity().running_requests > 0 {
            std::thread::yield_now();
        }
        assert_eq!(generation.by_ref().take(read).filter(Result::is_ok).count(), read);
        session.rewind(3);
        let (text, finished) = generation.into_text().unwrap();
        assert_eq!((text.as_str(), finished.reason, finished.usage.output_tokens), ("", expected, read));
    }
}

#[test]
fn dropped_generation_stops() {
    let (engine, model) = hooked_engine(EngineSettings::default(), |_| Ok(()));
    let forbid_end = engine.tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    let sampler = SamplerParams { logit_bias: forbid_end, ..SamplerParams::default() };
    let mut session = engine.session(SessionConfig { sampler, ..SessionConfig::default() }).unwrap();
    session.prefill(&[9, 8, 7]).unwrap();
    drop(session.generate(GenerateParams::default()));
    // The reply follows the handling of the drop.
    let stats = engine.cache_stats().unwrap();
    assert_eq!(stats.total_pages - stats.free_pages, 1);
    let calls = model.calls().len();
    engine.session(SessionConfig::default()).unwrap().prefill(&[1]).unwrap();
    assert_eq!(model.calls().len(), calls + 1);
}

#[test]
fn forgotten_generation_is_harmless() {
    let engine = random_engine(EngineSettings::default());
    let mut whole = engine.session(SessionConfig::default()).unwrap();
    whole.prefill(&[9, 8, 7]).unwrap();
    let expected = generate(&mut whole, 10).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&[9, 8, 7]).unwrap();
    let mut generation = session.generate(GenerateParams::default());
    assert!(generation.by_ref().take(3).all(|event| event.is_ok()));
    std::mem::forget(generation);
    assert_eq!(generate(&mut session, 7).unwrap(), expected[3..]);
}
