//! User-defined filters, and the seeds of generations.

use crate::support;
use std::sync::{Arc, Mutex};

use crate::support::{endless, generate, last_error, random_engine};
use lm_session::{
    CancelHandle, Constraint, ConstraintSpec, EngineSettings, Error, FilterFactory, Finished, GenerateParams,
    History, LogitsFilter, SamplerParams, Session, SessionEvent, TokenId, TokenLogits,
};

/// Records its calls.
#[derive(Debug)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    prompt: Vec<TokenId>,
    accepted: Vec<TokenId>,
}

impl LogitsFilter for Recorder {
    fn begin(&mut self, prompt: &[TokenId]) {
        *self.0.lock().unwrap() = Recorded { prompt: prompt.to_vec(), accepted: Vec::new() };
    }

    fn accepted(&mut self, token: TokenId) {
        self.0.lock().unwrap().accepted.push(token);
    }

    fn apply(&mut self, _: &mut TokenLogits, history: &History<'_>) {
        let recorded = self.0.lock().unwrap();
        assert_eq!((&recorded.prompt[..], &recorded.accepted[..]), (history.prompt, history.generated));
    }
}

/// Panics in the third step.
#[derive(Debug)]
struct Poison;

impl LogitsFilter for Poison {
    fn apply(&mut self, _: &mut TokenLogits, history: &History<'_>) {
        assert!(history.generated.len() < 2, "poison");
    }
}

fn filtered(filter: FilterFactory) -> GenerateParams {
    let sampler = Some(SamplerParams { filters: vec![filter], ..SamplerParams::default() });
    GenerateParams { sampler, max_output_tokens: Some(20), ..GenerateParams::default() }
}

#[test]
fn filter_sees_sampled_forced_and_continued_tokens() {
    let engine = random_engine(EngineSettings::default());
    let recorded = Arc::new(Mutex::new(Recorded::default()));
    let filter = {
        let recorded = recorded.clone();
        FilterFactory::new(move || Recorder(recorded.clone()))
    };
    let choice = ConstraintSpec::Regex("x(forced|other)[a-z]{6}y".to_owned());
    let constraint: Box<dyn Constraint> = engine.compile(&choice).unwrap().start();
    let mut session = endless(&engine);
    session.prefill(&[1, 2, 3]).unwrap();
    let params = GenerateParams { constraint: Some(constraint), ..filtered(filter.clone()) };
    let written = support::ids(session.generate(params)).unwrap();
    let known = std::mem::take(&mut *recorded.lock().unwrap());
    assert_eq!(known.prompt, [1, 2, 3]);
    assert!(known.accepted.len() > 4 && written.starts_with(&known.accepted), "{known:?} of {written:?}");

    let params = GenerateParams { continued: 2, max_output_tokens: Some(4), ..filtered(filter) };
    support::ids(session.generate(params)).unwrap();
    let known = std::mem::take(&mut *recorded.lock().unwrap());
    assert_eq!(known.prompt, [&[1, 2, 3], &written[..written.len() - 2]].concat());
    assert!(known.accepted.starts_with(&written[written.len() - 2..]), "{known:?}");
}

#[test]
fn filter_panic_fails_only_its_request() {
    let engine = random_engine(EngineSettings::default());
    let after = |ids: &[TokenId]| {
        let mut session = endless(&engine);
        session.prefill(ids).unwrap();
        session
    };
    let expected = generate(&mut after(&[4, 5, 6]), 30).unwrap();
    let factory: fn() -> Poison = || panic!("poison");
    for (filter, tokens) in [(FilterFactory::new(|| Poison), 2), (FilterFactory::new(factory), 0)] {
        let mut other = after(&[4, 5, 6]);
        let reading = std::thread::spawn(move || generate(&mut other, 30).unwrap());
        let mut session = after(&[1, 2, 3]);
        let error = last_error(session.generate(filtered(filter)));
        assert!(matches!(&error, Error::WorkerPanicked { message } if message == "poison"), "{error}");
        assert_eq!(session.tokens().len(), 3 + tokens);
        assert_eq!(reading.join().unwrap(), expected);
        assert_eq!(session.prefill(&[9]).unwrap().cached_tokens, 3 + tokens, "the pool is kept");
    }
}

fn sampled(session: &mut Session, sampler: SamplerParams) -> (Vec<TokenId>, Finished) {
    session.sync(&[1, 2, 3], &CancelHandle::new()).unwrap();
    let params =
        GenerateParams { sampler: Some(sampler), max_output_tokens: Some(30), ..GenerateParams::default() };
    let (mut ids, mut last) = (Vec::new(), None);
    for event in session.generate(params) {
        match event.unwrap() {
            SessionEvent::Token { id, .. } => ids.push(id),
            SessionEvent::Finished(finished) => last = Some(finished),
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
        }
    }
    (ids, last.unwrap())
}

#[test]
fn reported_seed_repeats_a_generation() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let sampler = SamplerParams { temperature: 5.0, xtc_probability: 0.5, ..SamplerParams::default() };
    let (ids, finished) = sampled(&mut session, sampler.clone());
    let (others, other) = sampled(&mut session, sampler.clone());
    assert!(finished.seed.is_some() && finished.seed != other.seed, "{finished:?}, {other:?}");
    assert_ne!(ids, others);
    let (repeated, again) = sampled(&mut session, SamplerParams { seed: finished.seed, ..sampler });
    assert_eq!((repeated, again.seed), (ids, finished.seed));
    assert_eq!(sampled(&mut session, SamplerParams::default()).1.seed, None, "greedy");
}
