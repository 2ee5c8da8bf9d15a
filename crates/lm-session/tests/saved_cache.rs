//! KV pages that are saved and restored: counts, bits, limits, and pages that do not fit.

use crate::support;
use std::path::Path;

use crate::support::{endless, engine_of, gated, generate, kinds, pages_held, prompt, random_engine};
use lm_session::{
    CacheSave, Engine, EngineSettings, Error, GenerateParams, KvDtype, LoadOptions, ModelFolder, PAGE_LEN,
    PrefixCache, SavedCache, Session, SessionEvent, TokenId,
};

fn saved(session: &Session) -> SavedCache {
    match session.save_cache(usize::MAX).unwrap() {
        CacheSave::Saved(cache) => cache,
        other => panic!("{other:?}"),
    }
}

/// Ids of tokens, and the bits of log probabilities in their places.
type Bits = Vec<(TokenId, Vec<u32>)>;

/// Ids and the bits of the log probabilities of a generation after `ids`, and its cached and prefilled prompt
/// tokens.
fn bits(session: &mut Session, ids: &[TokenId]) -> (Bits, (usize, usize)) {
    let params =
        GenerateParams { max_output_tokens: Some(6), logprobs: Some(9), ..GenerateParams::default() };
    let (mut tokens, mut counts) = (Vec::new(), (0, 0));
    for event in session.submit(ids, params).unwrap() {
        match event.unwrap() {
            SessionEvent::Token { id, logprobs, .. } => {
                let logprobs = logprobs.unwrap();
                let top = logprobs.top.iter().map(|(_, logprob)| logprob.to_bits());
                tokens.push((id, top.chain([logprobs.logprob.to_bits()]).collect()));
            }
            SessionEvent::Finished(done) => {
                counts = (done.usage.cached_tokens, done.timing.prefilled_tokens);
            }
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
        }
    }
    (tokens, counts)
}

/// Saves after a prompt of `len` tokens and a generation, restores in another engine, and compares the next
/// generation.
fn check(load: impl Fn() -> Engine, len: usize, what: &str) {
    let (first, second) = (load(), load());
    let mut session = endless(&first);
    session.prefill(&prompt(1, len)).unwrap();
    generate(&mut session, 5).unwrap();
    let cache = saved(&session);
    assert_eq!(cache.tokens, session.tokens()[..len + 4], "{what}: all that were run");
    let next = [session.tokens(), prompt(2, 7)].concat();
    let mut restored = endless(&second);
    assert!(restored.restore_cache(&cache).unwrap());
    assert_eq!(restored.tokens(), cache.tokens);
    let expected = bits(&mut session, &next);
    assert_eq!(bits(&mut restored, &next), expected, "{what}: the session continues like the saved one");
    assert_eq!(expected.1, (len + 4, 8), "{what}: only new tokens are run");
    drop((session, restored));
    assert_eq!(pages_held(&second), 0, "{what}");
}

#[test]
fn caches_of_every_kind_are_restored() {
    for layers in kinds() {
        for len in [1, 27, 28, 29, 59, 60, 100, 150] {
            check(|| engine_of(&layers, EngineSettings::default()), len, &format!("{layers:?} {len}"));
        }
    }
}

fn tiny(name: &str, kv_dtype: KvDtype) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(name);
    let options = LoadOptions { kv_dtype, ..LoadOptions::default() };
    Engine::load(&ModelFolder::open(folder).unwrap(), &options, EngineSettings::default(), &mut |_| {})
        .unwrap()
}

/// Full attention, windows, shared layers, delta nets and short convolutions.
#[test]
fn restored_caches_equal_the_saved_bits() {
    for name in ["llama-tiny", "gemma3-tiny", "gemma3n-tiny", "qwen3_5-tiny", "lfm2-tiny"] {
        for kv_dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
            let load = || tiny(name, kv_dtype);
            let ids = |session: &mut Session| {
                session.prefill(&(0..75).map(|i| i * 7 % 90).collect::<Vec<TokenId>>()).unwrap();
            };
            let (first, second) = (load(), load());
            let mut session = endless(&first);
            ids(&mut session);
            let cache = saved(&session);
            let next = [session.tokens(), vec![5, 6, 7]].concat();
            let mut restored = endless(&second);
            assert!(restored.restore_cache(&cache).unwrap());
            let (expected, _) = bits(&mut session, &next);
            assert_eq!(bits(&mut restored, &next), (expected.clone(), (75, 3)), "{name} {kv_dtype}");
            let mut fresh = endless(&load());
            assert_eq!(bits(&mut fresh, &next).0, expected, "{name} {kv_dtype}: as in a fresh session");
        }
    }
}

#[test]
fn caches_of_another_model_or_format_are_rejected() {
    let mut session = endless(&tiny("llama-tiny", KvDtype::F16));
    session.prefill(&prompt(1, 40).iter().map(|id| id % 90).collect::<Vec<_>>()).unwrap();
    let cache = saved(&session);
    for (name, kv_dtype) in
        [("llama-tiny", KvDtype::F32), ("llama-tiny", KvDtype::Q8), ("llama-tiny-bias", KvDtype::F16)]
    {
        let mut other = endless(&tiny(name, kv_dtype));
        other.prefill(&[1, 2, 3]).unwrap();
        let error = other.restore_cache(&cache).unwrap_err();
        assert!(matches!(error, Error::ForeignCache { .. }), "{name} {kv_dtype}: {error}");
        assert_eq!(other.tokens(), [1, 2, 3]);
        assert_eq!(other.prefill(&[4]).unwrap().cached_tokens, 3);
    }
    let mut again = endless(&tiny("llama-tiny", KvDtype::F16));
    assert!(again.restore_cache(&cache).unwrap());
}

#[test]
fn mismatched_caches_are_rejected() {
    let engine = random_engine(EngineSettings { max_context: Some(64), ..EngineSettings::default() });
    let mut session = endless(&engine);
    session.prefill(&prompt(1, 40)).unwrap();
    let cache = saved(&session);
    let mut other = endless(&engine);
    let mut rejected = |cache: SavedCache| other.restore_cache(&cache).unwrap_err();
    for pages in [&cache.pages[1..], &[&cache.pages[..], &[0]].concat(), &[]] {
        let error = rejected(SavedCache { pages: pages.into(), ..cache.clone() });
        assert!(
            matches!(error, Error::SavedPages { tokens: 40, found_bytes, .. } if found_bytes == pages.len())
        );
    }
    let longer = SavedCache { tokens: prompt(1, 65), ..cache.clone() };
    assert!(matches!(rejected(longer), Error::PromptTooLong { .. }));
    let two_pages = SavedCache { tokens: prompt(1, 30), ..cache.clone() };
    assert!(matches!(rejected(two_pages), Error::SavedPages { tokens: 30, .. }));
    assert!(matches!(rejected(SavedCache { tokens: vec![], ..cache.clone() }), Error::EmptyPrompt));
    let adapted = SavedCache { adapter: Some(0), ..cache.clone() };
    assert!(matches!(rejected(adapted), Error::ForeignAdapter { expected: None, found: Some(0) }));
    let foreign = SavedCache { fingerprint: String::new(), ..cache.clone() };
    assert!(matches!(rejected(foreign), Error::ForeignCache { .. }));
    assert!(other.restore_cache(&cache).unwrap(), "none of them has changed anything");
}

#[test]
fn limit_is_exact_in_bytes() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    assert_eq!(session.save_cache(usize::MAX).unwrap(), CacheSave::NothingCached);
    session.prefill(&prompt(1, 33)).unwrap();
    let bytes = saved(&session).pages.len();
    assert_eq!(session.save_cache(bytes - 1).unwrap(), CacheSave::TooLarge { bytes });
    assert!(matches!(session.save_cache(bytes).unwrap(), CacheSave::Saved(_)));
    session.prefill(&prompt(2, 31)).unwrap();
    assert_eq!(saved(&session).pages.len(), bytes, "two full pages");
}

#[test]
fn restored_pages_are_shared_with_other_sessions() {
    let (first, second) =
        (random_engine(EngineSettings::default()), random_engine(EngineSettings::default()));
    let mut session = endless(&first);
    session.prefill(&prompt(1, 100)).unwrap();
    let cache = saved(&session);
    let mut sessions: Vec<_> = (0..5).map(|_| endless(&second)).collect();
    for session in &mut sessions {
        assert!(session.restore_cache(&cache).unwrap());
    }
    assert_eq!(pages_held(&second), 100 / PAGE_LEN + 5, "full pages once, the last one by each");
    let stats = endless(&second).prefill(&[prompt(1, 100), vec![7]].concat()).unwrap();
    assert_eq!(stats.cached_tokens, 96);
    let outcomes: Vec<_> = sessions.iter_mut().map(|session| generate(session, 4).unwrap()).collect();
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
    assert_eq!(generate(&mut session, 4).unwrap(), outcomes[0]);
}

#[test]
fn restore_evicts_or_leaves_the_session_empty() {
    let settings = |tokens| EngineSettings { kv_cache_tokens: Some(tokens), ..EngineSettings::default() };
    for layers in kinds() {
        let mut session = endless(&engine_of(&layers, EngineSettings::default()));
        session.prefill(&prompt(1, 200)).unwrap();
        let cache = saved(&session);
        let engine = engine_of(&layers, settings(256));
        let mut idle = endless(&engine);
        idle.prefill(&prompt(3, 250)).unwrap();
        let mut restored = endless(&engine);
        assert!(restored.restore_cache(&cache).unwrap(), "{layers:?}");
        // Both continue correctly.
        let (a, b) = (generate(&mut restored, 3).unwrap(), generate(&mut idle, 3).unwrap());
        assert_eq!(a, generate(&mut session, 3).unwrap(), "{layers:?}");
        let mut alone = endless(&engine_of(&layers, EngineSettings::default()));
        alone.prefill(&prompt(3, 250)).unwrap();
        assert_eq!(b, generate(&mut alone, 3).unwrap(), "{layers:?}");
    }
}

#[test]
fn running_generation_can_be_saved() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    let params = GenerateParams { max_output_tokens: Some(400), ..GenerateParams::default() };
    let mut generation = session.submit(&prompt(1, 50), params).unwrap();
    for event in generation.by_ref() {
        if matches!(event, Ok(SessionEvent::Token { .. })) {
            break;
        }
    }
    let cache = saved(&session);
    let all = support::ids(generation).unwrap();
    assert!((50..=51).contains(&cache.tokens.len()), "{}", cache.tokens.len());
    let mut other = endless(&random_engine(EngineSettings::default()));
    assert!(other.restore_cache(&cache).unwrap());
    let rest = generate(&mut other, 3).unwrap();
    let written = cache.tokens.len() - 50;
    let whole = [session.tokens()[50..51].to_vec(), all].concat();
    assert_eq!(rest, whole[written..written + 3]);
}

/// A copy of llama-tiny with another config, or with the signs of its projections flipped.
fn changed(folder: &Path, change: impl FnOnce(&mut serde_json::Value), flip: bool) -> Engine {
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/llama-tiny");
    let read = |name: &str| std::fs::read(original.join(name)).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&read("config.json")).unwrap();
    change(&mut config);
    let mut weights = read("model.safetensors");
    let start = 8 + u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&weights[8..start]).unwrap();
    let tensors = header.as_object().unwrap().iter().filter(|(name, _)| flip && name.contains("proj"));
    for (_, tensor) in tensors {
        let offset = |at: usize| start + tensor["data_offsets"][at].as_u64().unwrap() as usize;
        let width = if tensor["dtype"] == "F32" { 4 } else { 2 };
        weights[offset(0)..offset(1)].chunks_mut(width).for_each(|value| value[width - 1] ^= 0x80);
    }
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.join("model.safetensors"), weights).unwrap();
    std::fs::write(folder.join("tokenizer.json"), read("tokenizer.json")).unwrap();
    let options = LoadOptions::default();
    let settings = EngineSettings::default();
    Engine::load(&ModelFolder::open(folder).unwrap(), &options, settings, &mut |_| {}).unwrap()
}

#[test]
fn caches_of_other_weights_or_settings_are_rejected() {
    let same = |_: &mut serde_json::Value| {};
    let folders: Vec<_> = (0..5).map(|_| tempfile::tempdir().unwrap()).collect();
    let engine = changed(folders[0].path(), same, false);
    let mut session = endless(&engine);
    session.prefill(&prompt(1, 40)).unwrap();
    let cache = saved(&session);
    assert!(endless(&changed(folders[1].path(), same, false)).restore_cache(&cache).unwrap(), "a copy");
    let others = [
        changed(folders[2].path(), same, true),
        changed(folders[3].path(), |config| config["rms_norm_eps"] = 0.5.into(), false),
        changed(
            folders[4].path(),
            |config| {
                config["rope_theta"] = 100.0.into();
                if let Some(rope) = config.get_mut("rope_parameters").filter(|rope| rope.is_object()) {
                    rope["rope_theta"] = 100.0.into();
                }
            },
            false,
        ),
    ];
    for (index, other) in others.iter().enumerate() {
        let rejected = endless(other).restore_cache(&cache);
        assert!(matches!(rejected, Err(Error::ForeignCache { .. })), "{index}: {rejected:?}");
    }
}

#[test]
fn rejected_cache_leaves_the_session_unchanged() {
    let engine = random_engine(EngineSettings::default());
    let mut session = endless(&engine);
    session.prefill(&prompt(1, 40)).unwrap();
    let cache = saved(&session);
    let short = SavedCache { pages: cache.pages[1..].into(), ..cache.clone() };
    assert!(matches!(session.restore_cache(&short), Err(Error::SavedPages { .. })));
    let mut unknown = cache;
    unknown.tokens[3] = 4_000_000_000;
    let error = session.restore_cache(&unknown).unwrap_err();
    assert!(matches!(error, Error::SavedToken { token: 4_000_000_000, .. }), "{error}");
    assert_eq!(session.tokens(), prompt(1, 40));
    assert_eq!(session.prefill(&[7]).unwrap().cached_tokens, 40);
}

#[test]
fn failed_restore_keeps_no_page() {
    let long = prompt(1, 200);
    let mut session = endless(&random_engine(EngineSettings::default()));
    session.prefill(&[&long[..96], &prompt(2, 100)].concat()).unwrap();
    let cache = saved(&session);
    let engine = random_engine(EngineSettings { kv_cache_tokens: Some(256), ..EngineSettings::default() });
    let (open, params) = gated();
    let mut running = endless(&engine);
    let mut generation = running.submit(&long, params).unwrap();
    while !matches!(generation.next(), Some(Ok(SessionEvent::Prefill(run))) if run.prefilled_tokens == 200) {}
    let mut restored = endless(&engine);
    assert!(!restored.restore_cache(&cache).unwrap(), "the pages are those of a request that runs");
    assert_eq!(restored.tokens(), [0; 0]);
    drop(open);
    generation.for_each(drop);
    drop((running, restored));
    assert_eq!(pages_held(&engine), 0);
}

#[test]
fn save_and_restore_hold_no_pages() {
    for prefix_cache in [PrefixCache::Engine, PrefixCache::Session] {
        for layers in kinds() {
            let engine = engine_of(&layers, EngineSettings { prefix_cache, ..EngineSettings::default() });
            let mut session = endless(&engine);
            session.prefill(&prompt(1, 100)).unwrap();
            let cache = saved(&session);
            let mut restored = endless(&engine);
            restored.prefill(&prompt(2, 50)).unwrap();
            assert!(restored.restore_cache(&cache).unwrap());
            drop((session, restored));
            assert_eq!(pages_held(&engine), 0, "{layers:?}");
            let reusable = engine.cache_stats().unwrap().reusable_pages;
            assert_eq!(reusable == 0, prefix_cache == PrefixCache::Session, "{layers:?}: {reusable}");
        }
    }
}
