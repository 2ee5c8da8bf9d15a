//! Speculative decoding gives what plain decoding gives: tokens, texts, log probabilities, reasons and cached
//! tokens.

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::support::{FULL, NEAR, STATE, endless, engine_of, hooked_engine, ids, kinds, prompt};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    CancelHandle, ConstraintSpec, Engine, EngineSettings, FinishReason, Finished, GenerateParams, Generation,
    KvDtype, LoadOptions, ModelFolder, SamplerParams, Session, SessionConfig, SessionEvent, Speculation,
    TokenId, Usage,
};

/// Draft tokens in every step whose last token has occurred before.
const ALWAYS: Speculation = Speculation { max_draft: 6, min_match: 1, break_even: Some(0.0) };

/// All events of a generation, without its durations and numbers of draft tokens, which are returned
/// separately.
fn events(
    events: impl Iterator<Item = lm_session::Result<SessionEvent>>,
) -> (Vec<SessionEvent>, (usize, usize)) {
    let mut drafts = (0, 0);
    let all = events.map(|event| match event.unwrap() {
        SessionEvent::Finished(finished) => {
            drafts = (finished.usage.drafted_tokens, finished.usage.accepted_tokens);
            let usage = Usage { drafted_tokens: 0, accepted_tokens: 0, ..finished.usage };
            SessionEvent::Finished(Finished { usage, timing: Default::default(), ..finished })
        }
        event => event,
    });
    (all.collect(), drafts)
}

fn with(speculation: Speculation, max_output_tokens: usize) -> GenerateParams {
    let (speculation, max_output_tokens) = (Some(speculation), Some(max_output_tokens));
    GenerateParams { speculation, max_output_tokens, ..GenerateParams::default() }
}

/// A repetitive prompt, so that it has drafts from the first token on.
fn repeating(seed: u32, len: usize) -> Vec<TokenId> {
    let period = prompt(seed, 3 + seed as usize);
    period.into_iter().cycle().take(len).collect()
}

fn tiny(model: &str) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(model);
    let options = LoadOptions { kv_dtype: KvDtype::F16, ..LoadOptions::default() };
    let settings = EngineSettings { speculation: Speculation::OFF, ..EngineSettings::default() };
    Engine::load(&ModelFolder::open(folder).unwrap(), &options, settings, &mut |_| {}).unwrap()
}

#[test]
fn greedy_tokens_equal_plain_decoding() {
    // Full attention; a window; one of each with experts; RoPE that depends on the length, on both sides of
    // the border; shared keys.
    let models = ["qwen3-tiny", "gemma3-tiny", "gpt-oss-tiny", "phi3-tiny", "gemma3n-tiny"];
    for model in models {
        let engine = tiny(model);
        let mut drafts = (0, 0);
        for seed in 0..10 {
            let ids = repeating(seed, 5 + 6 * seed as usize);
            let generate = |speculation| {
                let mut session = endless(&engine);
                let params = with(speculation, 60);
                let (events, drafts) = events(session.submit(&ids, params).unwrap());
                (events, session.tokens(), drafts)
            };
            let (plain, speculative) = (generate(Speculation::OFF), generate(ALWAYS));
            assert_eq!(plain.1, speculative.1, "{model}, prompt {seed}");
            let tokens = |events: &[SessionEvent]| -> Vec<_> {
                events.iter().filter(|event| !matches!(event, SessionEvent::Prefill(_))).cloned().collect()
            };
            let ends = |events: &[SessionEvent]| tokens(events).pop().unwrap();
            assert_eq!(tokens(&plain.0).len(), tokens(&speculative.0).len(), "{model}, prompt {seed}");
            let (SessionEvent::Finished(a), SessionEvent::Finished(b)) =
                (ends(&plain.0), ends(&speculative.0))
            else {
                panic!("a generation ends with its summary")
            };
            assert_eq!((a.reason, a.usage.output_tokens), (b.reason, b.usage.output_tokens));
            assert_eq!(plain.2, (0, 0));
            drafts = (drafts.0 + speculative.2.0, drafts.1 + speculative.2.1);
        }
        assert!(drafts.1 > 0 && drafts.1 < drafts.0, "{model}: {drafts:?}");
    }
}

#[test]
fn models_with_recurrent_states_do_not_speculate() {
    let recurrent = ["lfm2-tiny", "qwen3_5-tiny"].map(tiny);
    let fake = [vec![STATE], vec![FULL, STATE]].map(|layers| engine_of(&layers, EngineSettings::default()));
    for engine in recurrent.iter().chain(&fake) {
        let generate = |speculation| {
            let mut session = endless(engine);
            let (_, drafts) = events(session.submit(&repeating(1, 40), with(speculation, 40)).unwrap());
            assert_eq!(drafts, (0, 0));
            session.tokens()
        };
        assert_eq!(generate(Speculation::OFF), generate(ALWAYS));
    }
}

/// A sampler that draws among few tokens, so that they recur, with filters that look at the whole output.
fn recurring(seed: u64) -> SamplerParams {
    let rare = (0..tokenizer().logits_width() as TokenId).filter(|id| id % 40 != 0 || *id > 239);
    SamplerParams {
        temperature: 1.3,
        repetition_penalty: 1.05,
        frequency_penalty: 0.05,
        dry_multiplier: 0.2,
        xtc_probability: 0.1,
        xtc_threshold: 0.1,
        suppress_tokens: rare.collect(),
        seed: Some(seed),
        ..SamplerParams::default()
    }
}

#[test]
fn seeded_samples_equal_plain_decoding() {
    for layers in [vec![FULL], vec![NEAR, FULL, NEAR]] {
        let engine = engine_of(&layers, EngineSettings::default());
        let mut drafts = (0, 0);
        for seed in 0..12 {
            let generate = |speculation| {
                let sampler = Some(recurring(seed));
                let params = GenerateParams { sampler, logprobs: Some(4), ..with(speculation, 150) };
                let mut session = engine.session(SessionConfig::default()).unwrap();
                session.prefill(&prompt(seed as u32, 10)).unwrap();
                events(session.generate(params))
            };
            let (plain, speculative) = (generate(Speculation::OFF), generate(ALWAYS));
            assert!(plain.0.len() > 100);
            assert_eq!(plain.0, speculative.0, "seed {seed}");
            drafts = (drafts.0 + speculative.1.0, drafts.1 + speculative.1.1);
        }
        assert!(drafts.1 > 50 && drafts.1 < drafts.0 / 2, "{drafts:?}");
    }
}

#[test]
fn samples_have_the_distribution_of_the_model() {
    // Three tokens, three draws: 27 sequences. The model's log probabilities give the expected frequencies.
    const RUNS: u64 = 3000;
    let engine = engine_of(&[FULL], EngineSettings::default());
    let three = engine.compile(&ConstraintSpec::Regex("[abc]{9}".to_owned())).unwrap();
    let ids: Vec<TokenId> = b"abcabcab".iter().map(|&byte| byte.into()).collect();
    let mut found = std::collections::BTreeMap::<Vec<TokenId>, (f64, f64)>::new();
    let mut drafts = (0, 0);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    for seed in 0..RUNS {
        let sampler = SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() };
        let params = GenerateParams {
            sampler: Some(sampler),
            constraint: Some(three.start()),
            logprobs: Some(0),
            ..with(ALWAYS, 9)
        };
        let (mut sequence, mut logprob) = (Vec::new(), 0.0);
        for event in session.submit(&ids, params).unwrap() {
            match event.unwrap() {
                SessionEvent::Token { id, logprobs, .. } if sequence.len() < 3 => {
                    sequence.push(id);
                    logprob += f64::from(logprobs.unwrap().logprob);
                }
                SessionEvent::Finished(finished) => {
                    drafts.0 += finished.usage.drafted_tokens;
                    drafts.1 += finished.usage.accepted_tokens;
                }
                _ => {}
            }
        }
        found.entry(sequence).or_insert((logprob.exp() * RUNS as f64, 0.0)).1 += 1.0;
    }
    assert!(drafts.1 > RUNS as usize && drafts.1 < drafts.0, "{drafts:?}");
    // Sequences with an expected count below five form one class.
    let (usual, rare): (Vec<_>, Vec<_>) = found.into_values().partition(|(expected, _)| *expected >= 5.0);
    let expected_rare = RUNS as f64 - usual.iter().map(|(expected, _)| expected).sum::<f64>();
    let found_rare = rare.iter().map(|(_, found)| found).sum::<f64>();
    assert!(usual.len() >= 6, "{usual:?}");
    let distance = |(expected, found): (f64, f64)| (found - expected).powi(2) / expected.max(1.0);
    let chi_squared: f64 = usual.iter().copied().chain([(expected_rare, found_rare)]).map(distance).sum();
    let freedom = usual.len() as f64;
    // Wilson and Hilferty: the 0.9999 quantile.
    let part = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - part + 3.719 * part.sqrt()).powi(3);
    assert!(chi_squared < limit, "{chi_squared} of {limit}, {freedom} degrees of freedom");
}

#[test]
fn limits_and_constraints_hold_inside_a_draft() {
    let reply = "call(alpha, beta) call(alpha, beta) call(alpha, gamma) end";
    let engine = || {
        let model = FakeLm::scripted(&tokenizer(), [reply, reply]);
        Engine::new(loaded(model), EngineSettings::default()).unwrap()
    };
    let question = tokenizer().encode("write call(alpha, beta) twice").unwrap();
    let mut accepted = 0;
    let mut check = |name: &str, params: &dyn Fn(&Engine) -> GenerateParams| {
        let generate = |speculation| {
            let engine = engine();
            let mut session = engine.session(SessionConfig::default()).unwrap();
            let params = GenerateParams { speculation: Some(speculation), ..params(&engine) };
            let (events, drafts) = events(session.submit(&question, params).unwrap());
            // The next turn finds as much in the cache.
            let next = [session.tokens(), vec![5, 6]].concat();
            let stats = session.sync(&next, &CancelHandle::new()).unwrap();
            (events, stats.cached_tokens, drafts)
        };
        let (plain, speculative) = (generate(Speculation::OFF), generate(ALWAYS));
        assert_eq!((plain.0, plain.1), (speculative.0, speculative.1), "{name}");
        accepted += speculative.2.1;
    };
    for max in 0..60 {
        check("limit", &|_| GenerateParams { max_output_tokens: Some(max), ..GenerateParams::default() });
    }
    for stop in ["beta)", "a, b", ") c", "gam", "all(alpha, g", "nowhere"] {
        check(stop, &|_| GenerateParams { stop: vec![stop.to_owned()], ..GenerateParams::default() });
    }
    let json = "(call\\(alpha, (beta|gamma)\\) ){2,3}end";
    for spec in [json, "(call\\(alpha, beta\\) ){9}", "[a-z(), ]{30,70}"] {
        check(spec, &|engine| {
            let constraint = engine.compile(&ConstraintSpec::Regex(spec.to_owned())).unwrap().start();
            GenerateParams { constraint: Some(constraint), ..with(ALWAYS, 200) }
        });
    }
    assert!(accepted > 500, "{accepted}");
}

#[test]
fn cancelled_draft_keeps_the_tokens_read() {
    for layers in [vec![FULL], vec![NEAR, FULL, NEAR]] {
        let engine = engine_of(&layers, EngineSettings::default());
        let ids = repeating(2, 50);
        let sampler = || Some(SamplerParams { seed: None, temperature: 0.0, ..recurring(0) });
        let mut whole = engine.session(SessionConfig::default()).unwrap();
        let params = |speculation| GenerateParams { sampler: sampler(), ..with(speculation, 80) };
        drop(events(whole.submit(&ids, params(Speculation::OFF)).unwrap()));
        for read in [0, 1, 2, 3, 5, 9, 30] {
            let mut session = engine.session(SessionConfig::default()).unwrap();
            let generation = session.submit(&ids, params(ALWAYS)).unwrap();
            let tokens = generation.filter(|event| matches!(event, Ok(SessionEvent::Token { .. })));
            let read = tokens.take(read).count();
            let so_far = session.tokens();
            assert_eq!(so_far, whole.tokens()[..50 + read]);
            let rest = GenerateParams { continued: read, ..params(ALWAYS) };
            drop(events(session.generate(rest)));
            assert_eq!(session.tokens(), whole.tokens(), "{read} read");
        }
        let mut session = engine.session(SessionConfig::default()).unwrap();
        let mut generation = session.submit(&ids, params(ALWAYS)).unwrap();
        let canceller = generation.canceller();
        let first = generation.by_ref().find(|event| matches!(event, Ok(SessionEvent::Token { .. })));
        assert!(first.is_some());
        canceller.cancel();
        let last = generation.last().unwrap().unwrap();
        let SessionEvent::Finished(finished) = last else { panic!("{last:?}") };
        assert!(matches!(finished.reason, FinishReason::Cancelled | FinishReason::MaxOutputTokens));
        assert!(whole.tokens().starts_with(&session.tokens()));
    }
}

/// Starts request `index` of eight: greedy and sampled ones, prompts of different lengths.
fn start(engine: &Engine, index: u32, speculation: Speculation) -> (Session, Generation) {
    let temperature = f32::from(index.is_multiple_of(2));
    let sampler = Some(SamplerParams { temperature, ..recurring(index.into()) });
    let params = GenerateParams { sampler, logprobs: Some(2), ..with(speculation, 60) };
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let generation = session.submit(&repeating(index, 1 + 13 * index as usize), params).unwrap();
    (session, generation)
}

/// Token events with their log probabilities.
fn scored((_session, generation): (Session, Generation)) -> Vec<SessionEvent> {
    let (mut events, _) = events(generation);
    events.retain(|event| matches!(event, SessionEvent::Token { .. }));
    events
}

#[test]
fn drafts_keep_the_bits_of_other_sequences() {
    let engine = engine_of(&[FULL], EngineSettings::default());
    let alone: Vec<_> = (0..8).map(|index| scored(start(&engine, index, Speculation::OFF))).collect();
    // Plenty of room; and a pool of 192 tokens, which cannot hold all eight.
    for kv_cache_tokens in [None, Some(192)] {
        let settings = EngineSettings { kv_cache_tokens, ..EngineSettings::default() };
        let (open, opened) = channel::<()>();
        let opened = Mutex::new(opened);
        let (engine, model) = hooked_engine(settings, move |_| {
            let _ = opened.lock().unwrap().recv(); // Returns when all requests have been submitted.
            Ok(())
        });
        let speculation = |index| if index % 4 == 3 { Speculation::OFF } else { ALWAYS };
        let started: Vec<_> = (0..8).map(|index| start(&engine, index, speculation(index))).collect();
        drop(open);
        let found: Vec<_> = started.into_iter().map(scored).collect();
        assert_eq!(found, alone, "{kv_cache_tokens:?}");
        let evicted = engine.cache_stats().unwrap().evicted_pages;
        assert_eq!(evicted > 0, kv_cache_tokens.is_some());
        let shared = model.calls().into_iter().filter(|call| call.len() > 1);
        let drafts = shared.flatten().filter(|slots| slots.start > 92 && slots.len() > 1);
        assert!(drafts.count() > 0 || evicted > 0, "drafts beside other sequences");
    }
}

#[test]
fn every_cache_kind_survives_rejected_drafts() {
    for layers in kinds() {
        let engine = engine_of(&layers, EngineSettings::default());
        let run = |speculation| {
            let mut session = engine.session(SessionConfig::default()).unwrap();
            let params = || GenerateParams { sampler: Some(recurring(3)), ..with(speculation, 90) };
            let first = ids(session.submit(&repeating(1, 30), params()).unwrap()).unwrap();
            let mut fork = session.fork().unwrap();
            let second =
                ids(session.submit(&[session.tokens(), prompt(4, 20)].concat(), params()).unwrap()).unwrap();
            let other = ids(fork.submit(&[fork.tokens(), prompt(5, 3)].concat(), params()).unwrap()).unwrap();
            (first, second, other)
        };
        assert_eq!(run(Speculation::OFF), run(ALWAYS), "{layers:?}");
    }
}

#[test]
fn drafts_save_forward_passes() {
    let settings = || EngineSettings { speculation: ALWAYS, ..EngineSettings::default() };
    let (engine, model) = hooked_engine(settings(), |_| Ok(()));
    let mut session = engine.session(SessionConfig::default()).unwrap();
    // A constant reply: its last tokens always predict the next one.
    let sampler = Some(SamplerParams { logit_bias: vec![(7, 1e6)], ..SamplerParams::default() });
    let params = GenerateParams { sampler, max_output_tokens: Some(71), ..GenerateParams::default() };
    let (_, finished) = session.submit(&[1, 2, 3], params).unwrap().into_text().unwrap();
    // The prompt, two steps until a token has occurred twice, then seven tokens a step.
    assert_eq!(finished.usage.output_tokens, 71);
    assert_eq!(model.calls().len(), 2 + 70_usize.div_ceil(7), "{:?}", model.calls());
    assert_eq!(finished.usage.accepted_tokens, 71 - model.calls().len());
}
