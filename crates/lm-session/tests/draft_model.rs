//! Speculative decoding with a draft model gives what plain decoding gives.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{FULL, NEAR, STATE, endless, prompt, random_model};
use lm_model::LayerCache;
use lm_model::testing::HookedLm;
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    DraftModel, Engine, EngineSettings, Error, GenerateParams, LoadOptions, LoadedModel, ModelFolder, Result,
    SamplerParams, Session, SessionEvent, Speculation, TokenId, Usage, WeightFormat,
};

/// Drafts of the model in every step, and none by prompt lookup.
const ALWAYS: Speculation = Speculation { max_draft: 5, min_match: usize::MAX, break_even: Some(0.0) };

fn draft_of(layers: &[LayerCache], seed: u64) -> FakeLm {
    FakeLm::random(seed, tokenizer().logits_width()).with_layers(layers.iter().copied())
}

/// Settings with a draft model, or without one.
fn settings(draft: Option<LoadedModel>) -> EngineSettings {
    EngineSettings { draft_model: draft.map(DraftModel::new), speculation: ALWAYS, ..Default::default() }
}

fn engine(layers: &[LayerCache], settings: EngineSettings) -> Engine {
    Engine::new(loaded(random_model().with_layers(layers.iter().copied())), settings).unwrap()
}

fn sampled(seed: u64) -> Option<SamplerParams> {
    Some(SamplerParams { temperature: 0.8, top_k: 20, seed: Some(seed), ..SamplerParams::default() })
}

/// Token events of a reply to `ids`, with their log probabilities; and the usage.
fn reply(
    session: &mut Session,
    ids: &[TokenId],
    sampler: Option<SamplerParams>,
) -> Result<(Vec<SessionEvent>, Usage)> {
    let params =
        GenerateParams { sampler, logprobs: Some(2), max_output_tokens: Some(50), ..Default::default() };
    let (mut tokens, mut usage) = (Vec::new(), Usage::default());
    for event in session.submit(ids, params)? {
        match event? {
            SessionEvent::Finished(finished) => usage = finished.usage,
            event @ SessionEvent::Token { .. } => tokens.push(event),
            _ => {}
        }
    }
    Ok((tokens, usage))
}

#[test]
fn tokens_equal_plain_decoding() {
    for layers in [vec![FULL], vec![NEAR, FULL, NEAR]] {
        let plain = engine(&layers, settings(None));
        // A twin, a model of another seed, and one with other layers.
        for (draft, accepts) in
            [(draft_of(&layers, 11), true), (draft_of(&layers, 5), false), (draft_of(&[FULL], 3), false)]
        {
            let drafting = engine(&layers, settings(Some(loaded(draft))));
            let mut all_accepted = true;
            for seed in 0..6 {
                let ids = prompt(seed as u32, 5 + 31 * seed as usize);
                for sampler in [None, sampled(seed)] {
                    let greedy = sampler.is_none();
                    let run = |engine| reply(&mut endless(engine), &ids, sampler.clone()).unwrap();
                    let (expected, found) = (run(&plain), run(&drafting));
                    assert_eq!(expected.0, found.0, "{layers:?} {seed} {greedy}");
                    assert_eq!(expected.1.drafted_tokens, 0);
                    assert!(found.1.drafted_tokens > 0);
                    all_accepted &= !greedy || found.1.accepted_tokens == found.1.drafted_tokens;
                }
            }
            assert_eq!(all_accepted, accepts, "{layers:?}");
        }
    }
}

#[test]
fn drafts_work_for_batches_forks_and_turns() {
    let plain = engine(&[FULL], settings(None));
    let turns = |engine: &Engine, index: u64| {
        let mut session = endless(engine);
        let first =
            reply(&mut session, &prompt(index as u32, 20 + 9 * index as usize), sampled(index)).unwrap();
        let mut fork = session.fork().unwrap();
        let next = |session: &mut Session, more| {
            let ids = [session.tokens(), prompt(more, 7)].concat();
            reply(session, &ids, None).unwrap().0
        };
        (first.0, next(&mut session, 1), next(&mut fork, 2))
    };
    let alone: Vec<_> = (0..6).map(|index| turns(&plain, index)).collect();
    for kv_cache_tokens in [None, Some(320)] {
        let with_draft = settings(Some(loaded(draft_of(&[FULL], 11))));
        let engine = engine(&[FULL], EngineSettings { kv_cache_tokens, ..with_draft });
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..6)
                .map(|index| {
                    scope.spawn({
                        let engine = &engine;
                        move || turns(engine, index)
                    })
                })
                .collect();
            for (found, expected) in running.into_iter().zip(&alone) {
                assert_eq!(found.join().unwrap(), *expected, "{kv_cache_tokens:?}");
            }
        });
    }
}

#[test]
fn failed_draft_model_is_not_used_again() {
    let plain = reply(&mut endless(&engine(&[FULL], settings(None))), &prompt(1, 30), None).unwrap();
    for panics in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let fails = move |_: &_| match count.fetch_add(1, Ordering::Relaxed) {
            0..3 => Ok(()),
            _ if panics => panic!("poison"),
            _ => Err(lm_model::Error::SeveralModels { location: "poison".to_owned(), names: Vec::new() }),
        };
        let draft = HookedLm::new(Arc::new(draft_of(&[FULL], 11))).before_pass(fails);
        let engine = engine(&[FULL], settings(Some(loaded(draft))));
        let found = reply(&mut endless(&engine), &prompt(1, 30), None).unwrap();
        assert_eq!(found.0, plain.0);
        assert_eq!(calls.load(Ordering::Relaxed), 4, "it is not asked again");
    }
}

#[test]
fn draft_ends_with_the_context_of_its_model() {
    let draft = draft_of(&[FULL], 11).with_context_len(64);
    let engine = engine(&[FULL], settings(Some(loaded(draft))));
    let (tokens, usage) = reply(&mut endless(&engine), &prompt(1, 40), None).unwrap();
    assert_eq!(tokens.len(), 50);
    assert!((5..24).contains(&usage.drafted_tokens), "{usage:?}");
}

#[test]
fn mismatched_draft_models_are_rejected() {
    let model = || loaded(random_model());
    let mut other = model();
    other.tokenizer = Arc::new(lm_session::Tokenizer::from_json(&other_tokenizer()).unwrap());
    let error = Engine::new(model(), settings(Some(other))).unwrap_err();
    assert!(matches!(error, Error::DraftTokenizer { token: 97, .. }), "{error}");
    let error = Engine::new(model(), settings(Some(loaded(draft_of(&[FULL, STATE], 1))))).unwrap_err();
    assert!(matches!(error, Error::DraftStates { .. }), "{error}");
}

/// The tokenizer of the tests with two ids swapped: those of `a` and `b`.
fn other_tokenizer() -> Vec<u8> {
    let mut json: serde_json::Value =
        serde_json::from_slice(lm_model::testing::tokenizer_json().as_ref()).unwrap();
    let vocab = json["model"]["vocab"].as_object_mut().unwrap();
    let (a, b) = (vocab["a"].clone(), vocab["b"].clone());
    (vocab["a"], vocab["b"]) = (b, a);
    serde_json::to_vec(&json).unwrap()
}

#[test]
fn quantised_draft_model_survives_a_reload() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/qwen3-tiny");
    let folder = ModelFolder::open(folder).unwrap();
    let options = |quantization| LoadOptions { quantization, ..LoadOptions::default() };
    let draft = folder.load(&options(Some(WeightFormat::Q8)), &mut |_| {}).unwrap();
    let load = |settings| Engine::load(&folder, &options(None), settings, &mut |_| {}).unwrap();
    let (plain, drafting) = (load(settings(None)), load(settings(Some(draft))));
    for round in 0..2 {
        let run = |engine| reply(&mut endless(engine), &prompt(round, 25), None).unwrap();
        let ((expected, _), (found, usage)) = (run(&plain), run(&drafting));
        assert_eq!(found, expected);
        assert!(usage.accepted_tokens > 10, "{usage:?}");
        assert!(drafting.unload().unwrap());
    }
}

#[test]
fn draft_cost_includes_row_and_draft_step() {
    let rows = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = rows.clone();
    let count = move |batch: &lm_model::Batch| {
        let len = |input: &lm_model::Input| match input {
            lm_model::Input::Ids(ids) => ids.len(),
            _ => 0,
        };
        seen.lock().unwrap().push(batch.sequences.iter().map(|sequence| len(&sequence.input)).sum::<usize>());
        Ok(())
    };
    let model = HookedLm::new(Arc::new(random_model())).before_pass(count);
    let draft = settings(Some(loaded(draft_of(&[FULL], 11))));
    let speculation = Speculation { break_even: None, ..ALWAYS };
    let engine = Engine::new(loaded(model), EngineSettings { speculation, ..draft }).unwrap();
    reply(&mut endless(&engine), &prompt(1, 10), None).unwrap();
    // Before anything is measured, a row costs a quarter of a step, and so does a token of the draft model:
    // one of probability 0.7 pays, two of 0.49 do not.
    assert_eq!(rows.lock().unwrap()[..2], [10, 2]);
}

#[test]
fn draft_rows_stay_within_the_context() {
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = longest.clone();
    let note = move |batch: &lm_model::Batch| {
        for sequence in &batch.sequences {
            let lm_model::Input::Ids(ids) = &sequence.input else { panic!("ids") };
            seen.fetch_max(sequence.cached_len + ids.len(), Ordering::Relaxed);
        }
        Ok(())
    };
    let draft = HookedLm::new(Arc::new(draft_of(&[FULL], 11).with_context_len(64))).before_pass(note);
    let engine = engine(&[FULL], settings(Some(loaded(draft))));
    reply(&mut endless(&engine), &prompt(1, 40), None).unwrap();
    assert!((50..=64).contains(&longest.load(Ordering::Relaxed)), "{longest:?}");
}
