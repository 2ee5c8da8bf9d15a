//! Failing requests, alone and in a batch.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};

use crate::support::{generate, hooked_engine, last_error, prompt, random_engine, random_model, runs};
use futures_core::Stream;
use lm_model::testing::HookedLm;
use lm_model::{Batch, Logits};
use lm_session::testing::{loaded, tokenizer};
use lm_session::{
    Engine, EngineSettings, Error, GenerateParams, Generation, Result, Session, SessionConfig, SessionEvent,
    TokenId,
};

/// Token on which the hooked model panics.
const PANICS: u32 = 250;

/// Creates a hook that panics on [`PANICS`], and whose first pass waits until the sender is dropped.
fn waiting_hook() -> (impl Fn(&Batch) -> lm_model::Result<()> + Send + Sync, Sender<()>) {
    let (open, opened) = channel::<()>();
    let opened = Mutex::new(Some(opened));
    let before = move |batch: &Batch| {
        if let Some(opened) = opened.lock().unwrap().take() {
            let _ = opened.recv();
        }
        assert!(!runs(batch, PANICS), "token {PANICS} is poison");
        Ok(())
    };
    (before, open)
}

/// Creates an engine that panics on [`PANICS`].
fn poisoned_engine() -> Engine {
    hooked_engine(EngineSettings::default(), waiting_hook().0).0
}

/// Output ids, each with the bits of its log probability.
type Bits = Vec<(TokenId, u32)>;

fn submit(session: &mut Session, prompt: &[TokenId]) -> Generation {
    let params =
        GenerateParams { logprobs: Some(0), max_output_tokens: Some(8), ..GenerateParams::default() };
    session.submit(prompt, params).unwrap()
}

fn bits(generation: Generation) -> Result<Bits> {
    let bits = |event| match event {
        Ok(SessionEvent::Token { id, logprobs, .. }) => Some(Ok((id, logprobs.unwrap().logprob.to_bits()))),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    };
    generation.filter_map(bits).collect()
}

/// Runs a request with the token `poison` together with seven others; `during` gets all generations once the
/// first pass waits; returns its outcome. Checks that the others end with the bits that they have alone, and
/// that they run as a batch at the end.
fn among_eight(
    poison: TokenId,
    before: impl Fn(&Batch) -> lm_model::Result<()> + Send + Sync + 'static,
    during: impl FnOnce(&[Generation]),
) -> Result<Bits> {
    let (engine, model) = hooked_engine(EngineSettings::default(), before);
    let mut prompts: Vec<Vec<TokenId>> = (0..8).map(|seed| prompt(seed, 40)).collect();
    prompts[2][35] = poison;
    let mut sessions: Vec<_> = (0..8).map(|_| engine.session(SessionConfig::default()).unwrap()).collect();
    let generations: Vec<Generation> =
        sessions.iter_mut().zip(&prompts).map(|(session, prompt)| submit(session, prompt)).collect();
    during(&generations);
    let mut outcomes: Vec<Result<Bits>> = generations.into_iter().map(bits).collect();
    let poisoned = outcomes.remove(2);
    prompts.remove(2);
    for (prompt, outcome) in prompts.iter().zip(outcomes) {
        let alone = random_engine(EngineSettings::default());
        let mut session = alone.session(SessionConfig::default()).unwrap();
        assert_eq!(outcome.unwrap(), bits(submit(&mut session, prompt)).unwrap());
    }
    let sequences: Vec<usize> = model.calls().iter().map(Vec::len).collect();
    assert!(sequences.contains(&7), "batching is on again: {sequences:?}");
    poisoned
}

fn fails_alone(poison: TokenId) -> Error {
    let (before, open) = waiting_hook();
    among_eight(poison, before, |_| drop(open)).unwrap_err()
}

fn alone(prompt: &[u32], max_output_tokens: usize) -> Vec<u32> {
    let engine = random_engine(EngineSettings::default());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(prompt).unwrap();
    generate(&mut session, max_output_tokens).unwrap()
}

#[test]
fn rejected_batch_fails_only_the_culprit() {
    let unknown = tokenizer().logits_width() as u32;
    let error = fails_alone(unknown);
    assert!(matches!(error, Error::Model(lm_model::Error::Batch { .. })), "{error}");
}

#[test]
fn panic_fails_only_the_culprit() {
    let error = fails_alone(PANICS);
    let Error::WorkerPanicked { message } = error else { panic!("{error}") };
    assert!(message.contains("poison"), "{message}");
}

#[test]
fn batching_resumes_after_the_culprit_is_cancelled() {
    let (reach, reached) = channel();
    let (open, opened) = channel::<()>();
    let (first, open_first) = waiting_hook();
    let opened = Mutex::new(opened);
    // The batch with the poison fails while its request is being cancelled.
    let before = move |batch: &Batch| {
        if runs(batch, PANICS) {
            let _ = reach.send(());
            let _ = opened.lock().unwrap().recv();
        }
        first(batch)
    };
    let outcome = among_eight(PANICS, before, |generations| {
        drop(open_first);
        reached.recv().unwrap();
        generations[2].canceller().cancel();
        drop(open);
    });
    assert_eq!(outcome.unwrap(), [], "cancelled before its first token");
}

#[test]
fn requests_fail_until_the_pool_is_allocated() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let (count, inner) = (attempts.clone(), Arc::new(random_model()));
    let no_memory = || lm_model::Error::SeveralModels { location: "no memory".to_owned(), names: Vec::new() };
    // The first pool is there; a panic takes it, and the next two attempts fail.
    let allocate = move |_| match count.fetch_add(1, Ordering::Relaxed) {
        1 | 2 => Err(no_memory()),
        _ => Ok(()),
    };
    let poison = |batch: &Batch| {
        assert!(!runs(batch, PANICS), "poison");
        Ok(())
    };
    let model = HookedLm::new(inner).before_allocation(allocate).before_pass(poison);
    let engine = Engine::new(loaded(model), EngineSettings::default()).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    assert!(matches!(session.prefill(&[1, PANICS]), Err(Error::WorkerPanicked { .. })));
    let error = session.prefill(&[1, 2, 3]).unwrap_err();
    assert!(matches!(error, Error::CacheFull { free_pages: 0, .. }), "{error}");
    session.prefill(&[1, 2, 3]).unwrap();
    assert_eq!(generate(&mut session, 5).unwrap(), alone(&[1, 2, 3], 5));
    assert_eq!(attempts.load(Ordering::Relaxed), 4);
}

/// A waker that panics: what a task's executor may do to the engine's thread.
struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("poison");
    }
}

#[test]
fn panic_in_a_waker_is_contained() {
    let (before, open) = waiting_hook();
    let (engine, _) = hooked_engine(EngineSettings::default(), before);
    let mut sessions: Vec<_> = (0..2).map(|_| engine.session(SessionConfig::default()).unwrap()).collect();
    let mut poisoned = Box::pin(submit(&mut sessions[0], &prompt(1, 20)).into_stream());
    let waker = Arc::new(PanickingWaker).into();
    assert!(poisoned.as_mut().poll_next(&mut Context::from_waker(&waker)).is_pending());
    let other = submit(&mut sessions[1], &prompt(2, 20));
    drop(open);
    let other = bits(other).unwrap();
    let engine = random_engine(EngineSettings::default());
    let expected = |seed| {
        let mut session = engine.session(SessionConfig::default()).unwrap();
        bits(submit(&mut session, &prompt(seed, 20))).unwrap()
    };
    assert_eq!(other, expected(2));
    // Its own reply is complete as well.
    let own: Vec<_> = futures_executor::block_on_stream(poisoned).collect();
    let own: Vec<_> = own.into_iter().map(Result::unwrap).collect();
    let ids = own.iter().filter_map(|event| match event {
        SessionEvent::Token { id, .. } => Some(*id),
        _ => None,
    });
    assert!(ids.eq(expected(1).into_iter().map(|(id, _)| id)));
}

#[test]
fn session_continues_after_its_failure() {
    let engine = poisoned_engine();
    let mut other = engine.session(SessionConfig::default()).unwrap();
    other.prefill(&prompt(2, 40)).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&prompt(1, 40)).unwrap();
    let error = session.prefill(&[5, PANICS]).unwrap_err();
    assert!(matches!(error, Error::WorkerPanicked { .. }), "{error}");
    assert_eq!(session.tokens(), prompt(1, 40), "the failed tokens are not kept");
    assert_eq!(generate(&mut session, 8).unwrap(), alone(&prompt(1, 40), 8));
    // The contents of the pool after the panic are undefined, so none of it is reused.
    assert_eq!(other.prefill(&[9]).unwrap().cached_tokens, 0);
    assert_eq!(generate(&mut other, 8).unwrap(), alone(&[prompt(2, 40), vec![9]].concat(), 8));
}

#[test]
fn failure_in_decode_is_the_last_event() {
    let engine = poisoned_engine();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&[1, 2, 3]).unwrap();
    let sampler = lm_session::SamplerParams { logit_bias: vec![(PANICS, 100.0)], ..Default::default() };
    let generation = session.generate(GenerateParams { sampler: Some(sampler), ..GenerateParams::default() });
    assert!(matches!(last_error(generation), Error::WorkerPanicked { .. }));
    assert_eq!(session.tokens(), [1, 2, 3, PANICS]);
    assert_eq!(session.rewind(3), 0, "nothing of the pool is used again");
    session.prefill(&[1, 2, 3]).unwrap();
    assert_eq!(generate(&mut session, 5).unwrap(), alone(&[1, 2, 3], 5));
}

#[test]
fn panic_outside_the_model_keeps_the_engine() {
    // The model returns no row of logits once, although one was requested.
    let broken = AtomicBool::new(true);
    let rowless = move |_: Option<&Batch>, logits: Logits| match broken.swap(false, Ordering::Relaxed) {
        true => Logits::new(Vec::new(), logits.width(), [0]),
        false => logits,
    };
    let model = HookedLm::new(Arc::new(random_model())).map_logits(rowless);
    let engine = Engine::new(loaded(model), EngineSettings::default()).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let error = session.prefill(&[1, 2, 3]).unwrap_err();
    assert!(matches!(error, Error::WorkerPanicked { .. }), "{error}");
    session.prefill(&[1, 2, 3]).unwrap();
    assert_eq!(generate(&mut session, 5).unwrap(), alone(&[1, 2, 3], 5));
}

#[test]
fn formatted_panic_message_is_kept() {
    let before = |batch: &Batch| -> lm_model::Result<()> { panic!("poison {}", batch.sequences.len()) };
    let (engine, _) = hooked_engine(EngineSettings::default(), before);
    let error = engine.session(SessionConfig::default()).unwrap().prefill(&[1]).unwrap_err();
    assert!(matches!(&error, Error::WorkerPanicked { message } if message == "poison 1"), "{error}");
}
