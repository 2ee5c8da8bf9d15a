//! Failing requests, alone and in a batch.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use lm_model::{Batch, Embeddings, KvPool, Logits};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    CausalLm, Engine, EngineSettings, Error, GenerateParams, ModelInfo, SessionConfig, TokenId,
};
use support::{generate, hooked_engine, last_error, prompt, random_engine, random_model, runs};

/// Token on which the hooked model panics.
const PANICS: u32 = 250;

/// Creates an engine that panics on [`PANICS`] and whose first forward pass waits for the sender.
fn waiting_engine() -> (Engine, Sender<()>) {
    let (open, opened) = channel();
    let opened = Mutex::new(Some(opened));
    let before = move |batch: &Batch| {
        if let Some(opened) = opened.lock().unwrap().take() {
            let _ = opened.recv();
        }
        assert!(!runs(batch, PANICS), "token {PANICS} is poison");
        Ok(())
    };
    (hooked_engine(EngineSettings::default(), before).0, open)
}

/// Runs a request with the token `poison` together with four others; returns its error, and checks that the others end as if
/// alone.
fn fails_alone(poison: u32) -> Error {
    let (engine, open) = waiting_engine();
    let prompts: Vec<Vec<u32>> = (0..5).map(|seed| prompt(seed, 40)).collect();
    let mut sessions: Vec<_> = (0..5).map(|_| engine.session(SessionConfig::default()).unwrap()).collect();
    std::thread::scope(|scope| {
        let mut waiting = Vec::new();
        for (index, (session, prompt)) in sessions.iter_mut().zip(&prompts).enumerate() {
            waiting.push(scope.spawn(move || {
                let mut prompt = prompt.clone();
                if index == 2 {
                    prompt[35] = poison;
                }
                session.prefill(&prompt)?;
                generate(session, 8)
            }));
        }
        drop(open);
        let mut error = None;
        for (index, thread) in waiting.into_iter().enumerate() {
            match thread.join().unwrap() {
                Ok(ids) => assert_eq!(ids, alone(&prompts[index], 8), "request {index}"),
                Err(found) => {
                    assert_eq!(index, 2, "{found}");
                    error = Some(found);
                }
            }
        }
        error.expect("the poisoned request fails")
    })
}

fn alone(prompt: &[u32], max_output_tokens: usize) -> Vec<u32> {
    let engine = random_engine(EngineSettings::default());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(prompt).unwrap();
    generate(&mut session, max_output_tokens).unwrap()
}

#[test]
fn a_batch_that_the_model_refuses_fails_for_the_one_at_fault() {
    let unknown = tokenizer().logits_width() as u32;
    let error = fails_alone(unknown);
    assert!(matches!(error, Error::Model(lm_model::Error::Batch { .. })), "{error}");
}

#[test]
fn a_panic_fails_the_one_at_fault() {
    let error = fails_alone(PANICS);
    let Error::WorkerPanicked { message } = error else { panic!("{error}") };
    assert!(message.contains("poison"), "{message}");
}

#[test]
fn a_session_goes_on_after_its_failure() {
    let (engine, open) = waiting_engine();
    drop(open);
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
fn a_failure_in_decode_is_the_last_event() {
    let (engine, open) = waiting_engine();
    drop(open);
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

/// A model that violates its contract once: it returns no logits row although one was requested.
struct Rowless {
    inner: FakeLm,
    broken: AtomicBool,
}

impl CausalLm for Rowless {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn new_cache(&self, num_pages: usize) -> lm_model::Result<KvPool> {
        self.inner.new_cache(num_pages)
    }

    fn cache_bytes_per_page(&self) -> usize {
        self.inner.cache_bytes_per_page()
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> lm_model::Result<Logits> {
        let logits = self.inner.forward(batch, cache)?;
        let broken = self.broken.swap(false, Ordering::Relaxed);
        Ok(if broken { Logits::new(Vec::new(), logits.width(), [0]) } else { logits })
    }

    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> lm_model::Result<Embeddings> {
        self.inner.hidden(batch, cache)
    }

    fn head(&self, rows: Embeddings) -> lm_model::Result<Logits> {
        self.inner.head(rows)
    }

    fn embed(&self, ids: &[TokenId]) -> lm_model::Result<Embeddings> {
        self.inner.embed(ids)
    }
}

#[test]
fn a_panic_outside_the_model_ends_the_requests_and_not_the_engine() {
    let model = Rowless { inner: random_model(), broken: AtomicBool::new(true) };
    let engine = Engine::new(loaded(model), EngineSettings::default()).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let error = session.prefill(&[1, 2, 3]).unwrap_err();
    assert!(matches!(error, Error::WorkerPanicked { .. }), "{error}");
    session.prefill(&[1, 2, 3]).unwrap();
    assert_eq!(generate(&mut session, 5).unwrap(), alone(&[1, 2, 3], 5));
}
