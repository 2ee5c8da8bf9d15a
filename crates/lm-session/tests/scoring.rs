//! Scores of prompts and texts, and embeddings, against the model's own forward pass.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{endless, engine_of, generate, kinds, prompt, random_model};
use lm_model::testing::HookedLm;
use lm_model::{Batch, KvPool, LogitRows, Logits, PageId, SequenceInput};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    CancelHandle, CausalLm, EmbedParams, Engine, EngineSettings, Error, FinishReason, GenerateParams,
    KvDtype, LoadOptions, LoadedModel, ModelFolder, PAGE_LEN, Pooling, SessionConfig, SessionEvent, TokenId,
    TokenLogprobs,
};

fn tiny(model: &str) -> LoadedModel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(model);
    let options = LoadOptions { kv_dtype: KvDtype::F16, ..LoadOptions::default() };
    ModelFolder::open(folder).unwrap().load(&options, &mut |_| {}).unwrap()
}

/// One call for all of `ids` in an empty cache, requesting every row.
fn whole(model: &dyn CausalLm, ids: &[TokenId]) -> (Batch, KvPool) {
    let pages = ids.len().div_ceil(PAGE_LEN);
    let cache = model.new_cache(pages).unwrap();
    let groups = cache.layout().groups();
    let before =
        |group: usize| groups[..group].iter().filter(|other| other.space == groups[group].space).count();
    let table = |group: usize| (0..pages).map(|page| (before(group) * pages + page) as PageId).collect();
    let block_tables = (0..groups.len()).map(table).collect();
    let input = SequenceInput { logits: LogitRows::All, block_tables, ..SequenceInput::ids(ids, 0, []) };
    (Batch { sequences: vec![input] }, cache)
}

/// Log probabilities of all tokens except the first, in double precision from the logits of one call; and the
/// best token at each position.
fn reference(model: &dyn CausalLm, ids: &[TokenId]) -> Vec<(f64, TokenId)> {
    let (batch, mut cache) = whole(model, ids);
    let logits = model.forward(&batch, &mut cache).unwrap();
    let score = |(row, &id): (&[f32], &TokenId)| {
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        let best = (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        (f64::from(row[id as usize]) - sum.ln(), best as TokenId)
    };
    logits.sequence(0).rows().zip(&ids[1..]).map(score).collect()
}

fn assert_scores(found: &[TokenLogprobs], expected: &[(f64, TokenId)], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (place, (found, (logprob, best))) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found.logprob) - logprob).abs() < 1e-4, "{what}, {place}: {found:?}, {logprob}");
        assert_eq!((found.top.len(), found.top[0].0), (2, *best), "{what}, {place}");
    }
}

/// Log probabilities of the prompt, the ids of the output, and the finish reason.
fn prompt_logprobs(
    engine: &Engine,
    ids: &[TokenId],
    top: Option<usize>,
    max: usize,
) -> (Vec<Vec<TokenLogprobs>>, Vec<TokenId>, FinishReason) {
    let mut session = endless(engine);
    let params =
        GenerateParams { prompt_logprobs: top, max_output_tokens: Some(max), ..GenerateParams::default() };
    let (mut scores, mut output, mut reason) = (Vec::new(), Vec::new(), None);
    for event in session.submit(ids, params).unwrap() {
        match event.unwrap() {
            SessionEvent::Prefill(_) => {}
            SessionEvent::PromptLogprobs(logprobs) => {
                assert!(output.is_empty(), "before the first token");
                scores.push(logprobs);
            }
            SessionEvent::Token { id, .. } => output.push(id),
            SessionEvent::Finished(finished) => reason = Some(finished.reason),
        }
    }
    (scores, output, reason.unwrap())
}

#[test]
fn prompt_logprobs_equal_a_single_call() {
    for name in ["qwen3-tiny", "gemma3-tiny", "gemma3n-tiny", "gpt-oss-tiny", "lfm2-tiny", "qwen3_5-tiny"] {
        let LoadedModel { model, .. } = tiny(name);
        for (seed, len) in [(1, 1), (2, 2), (3, 33), (4, 90)] {
            let ids = prompt(seed, len);
            let expected = reference(&*model, &ids);
            for prefill_chunk in [7, 512] {
                let settings = EngineSettings { prefill_chunk, ..EngineSettings::default() };
                let engine = Engine::new(tiny(name), settings).unwrap();
                let plain = prompt_logprobs(&engine, &ids, None, 5);
                // The prompt is cached now; it runs again.
                let scored = prompt_logprobs(&engine, &ids, Some(2), 5);
                assert!(plain.0.is_empty() && scored.0.len() == 1, "{name}");
                assert_scores(
                    &scored.0[0],
                    &expected,
                    &format!("{name}, {len} in chunks of {prefill_chunk}"),
                );
                assert_eq!((scored.1, scored.2), (plain.1, plain.2), "{name}");
            }
        }
    }
}

#[test]
fn prompt_is_scored_without_an_output() {
    let engine = engine_of(&kinds()[0], EngineSettings::default());
    let ids = prompt(1, 40);
    let (scores, output, reason) = prompt_logprobs(&engine, &ids, Some(2), 0);
    assert_scores(&scores[0], &reference(&random_model(), &ids), "no output");
    assert_eq!((output.len(), reason), (0, FinishReason::MaxOutputTokens));
}

#[test]
fn generated_text_scores_equal_its_generation() {
    for layers in kinds() {
        let engine = engine_of(&layers, EngineSettings::default());
        let mut session = engine.session(SessionConfig::default()).unwrap();
        session.prefill(&prompt(2, 45)).unwrap();
        let before = session.fork().unwrap();
        let params =
            GenerateParams { logprobs: Some(3), max_output_tokens: Some(40), ..GenerateParams::default() };
        let tokens = session.generate(params).filter_map(|event| match event.unwrap() {
            SessionEvent::Token { id, logprobs, .. } => Some((id, logprobs.unwrap())),
            _ => None,
        });
        let (ids, generated): (Vec<TokenId>, Vec<TokenLogprobs>) = tokens.unzip();
        let score = before.score(&ids, 3, &CancelHandle::new()).unwrap();
        assert_eq!(score.tokens, generated, "the same bits: {layers:?}");
        let sum: f64 = generated.iter().map(|token| f64::from(token.logprob)).sum();
        assert_eq!(score.sum(), sum);
        // The scored session is unchanged.
        assert_eq!(before.tokens(), prompt(2, 45));
        assert!(before.score(&[], 0, &CancelHandle::new()).unwrap().tokens.is_empty());
        let mut goes_on = before;
        assert_eq!(generate(&mut goes_on, ids.len()).unwrap(), ids);
    }
}

#[test]
fn texts_that_cannot_be_scored_are_typed_errors() {
    let engine =
        engine_of(&kinds()[0], EngineSettings { max_context: Some(64), ..EngineSettings::default() });
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let (none, cancelled) = (CancelHandle::new(), CancelHandle::new());
    cancelled.cancel();
    assert!(matches!(session.score(&[], 0, &none), Err(Error::EmptyPrompt)));
    assert!(session.score(&[5], 0, &none).unwrap().tokens.is_empty(), "the first token has no score");
    session.prefill(&prompt(1, 40)).unwrap();
    let long = session.score(&prompt(2, 25), 0, &none);
    assert!(matches!(long, Err(Error::PromptTooLong { prompt_tokens: 65, context_tokens: 64 })));
    assert!(matches!(session.score(&[1, 2], 0, &cancelled), Err(Error::Cancelled)));
    let params = |cancel| EmbedParams { cancel, ..EmbedParams::default() };
    assert!(matches!(engine.embed(&[], &params(none)), Err(Error::EmptyPrompt)));
    assert!(matches!(engine.embed(&[1], &params(cancelled)), Err(Error::Cancelled)));
}

/// A model that records the number of rows of each call that returns logits; after `good` calls, those of the
/// head are NaN.
fn counting(inner: FakeLm, rows: Arc<Mutex<Vec<usize>>>, good: usize) -> HookedLm {
    HookedLm::new(Arc::new(inner)).map_logits(move |batch: Option<&Batch>, logits: Logits| {
        let count = (0..logits.num_sequences()).map(|index| logits.sequence(index).num_rows()).sum();
        let mut calls = rows.lock().unwrap();
        calls.push(count);
        match batch.is_none() && calls.len() > good {
            true => Logits::new(vec![f32::NAN; count * logits.width()], logits.width(), [count]),
            false => logits,
        }
    })
}

#[test]
fn logits_memory_is_bounded() {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let inner = FakeLm::noise(3, 151_936);
    let engine = loaded(counting(inner, rows.clone(), usize::MAX));
    let engine = Engine::new(engine, EngineSettings::default()).unwrap();
    let session = engine.session(SessionConfig::default()).unwrap();
    let score = session.score(&prompt(1, 513), 0, &CancelHandle::new()).unwrap();
    assert_eq!(score.tokens.len(), 512);
    let rows = rows.lock().unwrap().clone();
    // 512 scored rows, and possibly the last row, which every prefill requests.
    assert!((512..=513).contains(&rows.iter().sum::<usize>()), "{rows:?}");
    assert!(rows.iter().all(|&rows| rows <= 32), "{rows:?}");
}

#[test]
fn nan_logits_fail_the_scored_request() {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let inner = FakeLm::random(3, tokenizer().logits_width());
    let engine = loaded(counting(inner, rows, 3));
    let engine = Engine::new(engine, EngineSettings::default()).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let error = session.score(&prompt(1, 200), 0, &CancelHandle::new()).unwrap_err();
    assert!(matches!(error, Error::InvalidLogit { token: 0, .. }), "{error}");
    session.prefill(&prompt(1, 20)).unwrap();
    assert_eq!(generate(&mut session, 5).unwrap().len(), 5);
}

#[test]
fn concurrent_scores_equal_single_scores() {
    let engine = engine_of(&kinds()[0], EngineSettings::default());
    let score = |engine: &Engine, seed: u32| {
        let session = engine.session(SessionConfig::default()).unwrap();
        session.score(&prompt(seed, 70), 2, &CancelHandle::new()).unwrap()
    };
    let alone: Vec<_> = (0..4).map(|seed| score(&engine, seed)).collect();
    for kv_cache_tokens in [None, Some(160)] {
        let settings = EngineSettings { kv_cache_tokens, prefill_chunk: 16, ..EngineSettings::default() };
        let engine = engine_of(&kinds()[0], settings);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (engine, alone) = (&engine, &alone);
                scope.spawn(move || assert_eq!(score(engine, seed), alone[seed as usize]));
                scope.spawn(move || {
                    let mut session = endless(engine);
                    session.prefill(&prompt(seed, 30)).unwrap();
                    assert_eq!(generate(&mut session, 40).unwrap().len(), 40);
                });
            }
        });
    }
}

#[test]
fn embeddings_are_pooled_hidden_states() {
    for name in ["qwen3-tiny", "gemma3-tiny", "gemma3n-tiny", "lfm2-tiny"] {
        let LoadedModel { model, .. } = tiny(name);
        let ids = prompt(5, 75);
        let (batch, mut cache) = whole(&*model, &ids);
        let hidden = model.hidden(&batch, &mut cache).unwrap();
        assert_eq!((hidden.rows(), hidden.hidden_size), (75, model.info().hidden_size));
        let rows: Vec<&[f32]> = hidden.values.chunks_exact(hidden.hidden_size).collect();
        let mean = (0..hidden.hidden_size)
            .map(|index| rows.iter().map(|row| f64::from(row[index])).sum::<f64>() / rows.len() as f64);
        let last = rows[74].iter().map(|&value| f64::from(value));
        let engine =
            Engine::new(tiny(name), EngineSettings { prefill_chunk: 11, ..EngineSettings::default() });
        let engine = engine.unwrap();
        let embed = |pooling| {
            engine.embed(&ids, &EmbedParams { pooling: Some(pooling), ..EmbedParams::default() }).unwrap()
        };
        for (pooling, pooled) in [(Pooling::Mean, mean.collect::<Vec<_>>()), (Pooling::Last, last.collect())]
        {
            let length = pooled.iter().map(|value| value * value).sum::<f64>().sqrt();
            // The second call finds the prompt in the cache.
            for found in [embed(pooling), embed(pooling)] {
                assert_eq!(found.len(), pooled.len());
                for (found, expected) in found.iter().zip(&pooled) {
                    assert!((f64::from(*found) - expected / length).abs() < 1e-5, "{name} {pooling:?}");
                }
            }
        }
    }
}

#[test]
fn prompts_with_a_common_beginning_run_it_once_for_their_next_logits() {
    let rows = Arc::new(AtomicUsize::new(0));
    let counted = rows.clone();
    let count = move |batch: &Batch| {
        counted.fetch_add(batch.sequences.iter().map(SequenceInput::rows).sum(), Ordering::Relaxed);
        Ok(())
    };
    let model = HookedLm::new(Arc::new(random_model())).before_pass(count);
    let engine = Engine::new(loaded(model), EngineSettings::default()).unwrap();
    let begin = prompt(9, 3 * PAGE_LEN);
    let prompts: Vec<_> = (0..6).map(|seed| [begin.clone(), prompt(seed, 5)].concat()).collect();
    let cancel = CancelHandle::new();
    let logits = engine.next_logits(prompts.clone(), &[3, 7, TokenId::MAX], None, &cancel);
    let logits: Vec<_> = logits.map(Result::unwrap).collect();
    assert_eq!(rows.load(Ordering::Relaxed), begin.len() + 6 * 5);
    let session = engine.session(SessionConfig::default()).unwrap();
    for (ids, logits) in prompts.iter().zip(logits) {
        let [three, seven] =
            [3, 7].map(|id| session.score_after(ids.as_slice(), &[id], 0, &cancel).unwrap().sum());
        assert!((f64::from(logits[0] - logits[1]) - (three - seven)).abs() < 1e-4);
        assert_eq!(logits[2], f32::NEG_INFINITY);
    }
    let error = engine.next_logits([Vec::new()], &[3], None, &cancel).next().unwrap();
    assert!(matches!(error, Err(Error::EmptyPrompt)));
}

#[test]
fn batched_embeddings_equal_single_ones() {
    let engine = engine_of(&kinds()[0], EngineSettings::default());
    let params = EmbedParams::default();
    let texts: Vec<Vec<TokenId>> = (0..20).map(|seed| prompt(seed, 1 + 5 * seed as usize % 40)).collect();
    let alone: Vec<_> = texts.iter().map(|ids| engine.embed(ids, &params).unwrap()).collect();
    let mut with_bad = texts.clone();
    with_bad.insert(10, Vec::new());
    let mut found: Vec<_> = engine.embed_all(with_bad, &params).collect();
    assert!(matches!(found.remove(10), Err(Error::EmptyPrompt)));
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found, alone);
    // A busy engine takes the next texts after its current ones.
    let small =
        EngineSettings { max_running_requests: 1, max_waiting_requests: 2, ..EngineSettings::default() };
    let found: Result<Vec<_>, _> = engine_of(&kinds()[0], small).embed_all(texts, &params).collect();
    assert_eq!(found.unwrap(), alone);
}
