//! Adapters that are loaded and unloaded while the engine runs.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lm_session::testing::scripted_engine;
use lm_session::{
    AdapterId, CacheSave, CancelHandle, EmbedParams, Engine, EngineSettings, Error, FilterFactory,
    GenerateParams, Generation, History, LoadOptions, LogitsFilter, ModelFolder, SamplerParams, SaveOptions,
    SavedSession, Session, SessionConfig, TokenId, TokenLogits,
};

const ALL: &str = "llama-tiny-all";
const ATTENTION: &str = "llama-tiny-attention";

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn adapter(name: &str) -> PathBuf {
    testdata("adapters").join(name)
}

/// An engine with these adapters, loaded with the model.
fn engine(adapters: &[&str]) -> Engine {
    let adapters = adapters.iter().map(|name| adapter(name)).collect();
    let options = LoadOptions { adapters, ..LoadOptions::default() };
    let folder = ModelFolder::open(testdata("models/llama-tiny")).unwrap();
    Engine::load(&folder, &options, EngineSettings::default(), &mut |_| {}).unwrap()
}

fn config(adapter: Option<AdapterId>) -> SessionConfig {
    SessionConfig { adapter, max_output_tokens: Some(24), ..SessionConfig::default() }
}

fn session(engine: &Engine, adapter: Option<AdapterId>) -> Session {
    // No end token ends a text.
    let logit_bias = vec![(297, f32::NEG_INFINITY), (299, f32::NEG_INFINITY)];
    let sampler = SamplerParams { logit_bias, temperature: 1.0, seed: Some(7), ..SamplerParams::default() };
    engine.session(SessionConfig { sampler, ..config(adapter) }).unwrap()
}

fn prompt() -> Vec<TokenId> {
    (0..80).map(|i| i * 37 % 290).collect()
}

/// Returns the generated tokens, and the number of cached prompt tokens.
fn run(session: &mut Session) -> (Vec<TokenId>, usize) {
    let stats = session.prefill(&prompt()).unwrap();
    session.generate(GenerateParams::default()).into_text().unwrap();
    (session.tokens().split_off(80), stats.cached_tokens)
}

/// Tokens of the base model, and those with each adapter loaded with the model.
fn expected() -> [Vec<TokenId>; 3] {
    let engine = engine(&[ALL, ATTENTION]);
    let texts = [None, Some(AdapterId(0)), Some(AdapterId(1))].map(|id| run(&mut session(&engine, id)).0);
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "an adapter that changes nothing tests nothing");
    texts
}

fn is_unloaded(error: &Error, id: AdapterId) -> bool {
    matches!(error, Error::AdapterUnloaded { adapter } if *adapter == id.0)
}

#[test]
fn late_adapter_equals_one_loaded_with_the_model() {
    let [base, all, attention] = expected();
    let engine = engine(&[ATTENTION]);
    let id = engine.load_adapter(adapter(ALL)).unwrap();
    assert_eq!(id, AdapterId(1));
    let names: Vec<_> = engine.adapters().into_iter().map(|(id, info)| (id.0, info.name)).collect();
    assert_eq!(names, [(0, ATTENTION.to_owned()), (1, ALL.to_owned())]);
    for (id, expected) in [(Some(id), all), (None, base), (Some(AdapterId(0)), attention)] {
        assert_eq!(run(&mut session(&engine, id)), (expected, 0), "{id:?}");
    }
    let embedding = |adapter| engine.embed(&[1, 2, 3], &EmbedParams { adapter, ..EmbedParams::default() });
    assert_ne!(embedding(Some(id)).unwrap(), embedding(None).unwrap());
}

#[test]
fn decoding_sessions_keep_their_tokens() {
    let [base, all, _] = expected();
    let engine = engine(&[ALL]);
    let stop = AtomicBool::new(false);
    let loads = thread::scope(|scope| {
        let change = scope.spawn(|| {
            let mut loads = 0;
            while !stop.load(Ordering::Relaxed) {
                let id = engine.load_adapter(adapter(ATTENTION)).unwrap();
                session(&engine, Some(id)).prefill(&prompt()[..40]).unwrap();
                engine.unload_adapter(id).unwrap();
                loads += 1;
            }
            loads
        });
        let decode = |adapter, expected: &[TokenId]| {
            for _ in 0..20 {
                assert_eq!(run(&mut session(&engine, adapter)).0, expected);
            }
        };
        let others = [(None, &base), (Some(AdapterId(0)), &all)];
        let others = others.map(|(id, expected)| scope.spawn(move || decode(id, expected)));
        let ended = others.map(|other| other.join());
        stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
        change.join().unwrap()
    });
    assert!(loads > 0);
    assert_eq!(
        engine.load_adapter(adapter(ATTENTION)).unwrap(),
        AdapterId(1 + loads),
        "no id is given twice"
    );
}

/// Filter that waits in its second step until it is released.
#[derive(Debug)]
struct Gate {
    reached: Sender<()>,
    open: Arc<Mutex<Receiver<()>>>,
}

impl LogitsFilter for Gate {
    fn apply(&mut self, _: &mut TokenLogits, history: &History<'_>) {
        if history.generated.len() == 1 {
            self.reached.send(()).unwrap();
            self.open.lock().unwrap().recv().unwrap();
        }
    }
}

/// A gate, the receiver of its arrival, and the sender that opens it.
fn gate() -> (FilterFactory, Receiver<()>, Sender<()>) {
    let ((reached, at_gate), (open, opened)) = (channel(), channel());
    let opened = Arc::new(Mutex::new(opened));
    let gate = FilterFactory::new(move || Gate { reached: reached.clone(), open: opened.clone() });
    (gate, at_gate, open)
}

/// Submits a request that has started to run and waits for the returned sender.
fn submit_held(session: &mut Session) -> (Generation, Sender<()>) {
    let (gate, at_gate, open) = gate();
    let sampler = SamplerParams { filters: vec![gate], ..session.config().sampler.clone() };
    let params = GenerateParams { sampler: Some(sampler), ..GenerateParams::default() };
    let generation = session.submit(&prompt(), params).unwrap();
    at_gate.recv().unwrap();
    (generation, open)
}

/// Unloads an adapter on another thread.
fn unload(engine: &Engine, id: AdapterId) -> JoinHandle<Result<(), Error>> {
    let engine = engine.clone();
    thread::spawn(move || engine.unload_adapter(id))
}

#[test]
fn unload_waits_for_running_requests() {
    let [base, all, _] = expected();
    let engine = engine(&[]);
    let id = engine.load_adapter(adapter(ALL)).unwrap();
    let mut running = session(&engine, Some(id));
    let (generation, open) = submit_held(&mut running);
    let unloading = unload(&engine, id);
    while !engine.adapters().is_empty() {
        thread::yield_now();
    }
    let error = engine.session(config(Some(id))).unwrap_err();
    assert!(is_unloaded(&error, id), "{error}");
    assert_eq!(run(&mut session(&engine, None)).0, base, "others continue");
    thread::sleep(Duration::from_millis(50));
    assert!(!unloading.is_finished(), "a request still uses it");
    open.send(()).unwrap();
    unloading.join().unwrap().unwrap();
    generation.into_text().unwrap();
    assert_eq!(running.tokens().split_off(80), all);
}

#[test]
fn waiting_request_keeps_its_adapter() {
    let [_, all, _] = expected();
    let folder = ModelFolder::open(testdata("models/llama-tiny")).unwrap();
    let settings = EngineSettings { max_running_requests: 1, ..EngineSettings::default() };
    let engine = Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).unwrap();
    let id = engine.load_adapter(adapter(ALL)).unwrap();
    let (mut first, mut waiting) = (session(&engine, None), session(&engine, Some(id)));
    let (_running, open) = submit_held(&mut first);
    let generation = waiting.submit(&prompt(), GenerateParams::default()).unwrap();
    let unloading = unload(&engine, id);
    thread::sleep(Duration::from_millis(50));
    assert!(!unloading.is_finished(), "a request still waits with it");
    open.send(()).unwrap();
    unloading.join().unwrap().unwrap();
    generation.into_text().unwrap();
    assert_eq!(waiting.tokens().split_off(80), all);
}

#[test]
fn cancelled_request_releases_its_adapter() {
    let engine = engine(&[]);
    let id = engine.load_adapter(adapter(ALL)).unwrap();
    let (mut first, mut second) = (session(&engine, Some(id)), session(&engine, Some(id)));
    let params = || GenerateParams { max_output_tokens: Some(100_000), ..GenerateParams::default() };
    let running = [&mut first, &mut second].map(|session| session.submit(&prompt(), params()).unwrap());
    let unloading = unload(&engine, id);
    let [one, other] = running;
    one.canceller().cancel();
    drop(other);
    unloading.join().unwrap().unwrap();
}

#[test]
fn unloaded_adapter_id_is_never_reused() {
    let engine = engine(&[ALL]);
    let id = AdapterId(0); // Those loaded with the model can be unloaded too.
    let mut opened = session(&engine, Some(id));
    let (text, _) = run(&mut opened);
    engine.unload_adapter(id).unwrap();
    let none = CancelHandle::new();
    let params = || EmbedParams { adapter: Some(id), ..EmbedParams::default() };
    let errors = [
        engine.session(config(Some(id))).map(drop),
        opened.prefill(&[1]).map(drop),
        opened.submit(&prompt(), GenerateParams::default()).map(drop),
        opened.generate(GenerateParams::default()).into_text().map(drop),
        opened.score(&[1], 0, &none).map(drop),
        opened.fork().unwrap().prefill(&[1]).map(drop),
        engine.embed(&[1], &params()).map(drop),
        engine.embed_all([vec![1]], &params()).next().unwrap().map(drop),
        engine.unload_adapter(id),
    ];
    for error in errors {
        let error = error.unwrap_err();
        assert!(is_unloaded(&error, id), "{error}");
    }
    assert_eq!(opened.tokens(), [prompt(), text.clone()].concat(), "a rejected request changes nothing");
    assert_eq!(opened.rewind(80), 0, "nothing is cached");
    let error = engine.unload_adapter(AdapterId(1)).unwrap_err();
    assert!(matches!(error, Error::UnknownAdapter { adapter: 1, loaded: 1 }), "{error}");
    let again = engine.load_adapter(adapter(ALL)).unwrap();
    assert_eq!(again, AdapterId(1));
    assert_eq!(run(&mut session(&engine, Some(again))), (text, 0));
    assert!(engine.session(config(Some(id))).is_err());
}

#[test]
fn unload_drops_only_prefixes_of_the_adapter() {
    let engine = engine(&[ALL]);
    let id = engine.load_adapter(adapter(ATTENTION)).unwrap();
    let others = [None, Some(AdapterId(0))];
    for adapter in others {
        run(&mut session(&engine, adapter));
    }
    // A dropped session is closed in the order of the commands: the statistics see it.
    let before = engine.cache_stats().unwrap();
    run(&mut session(&engine, Some(id)));
    let mut idle = session(&engine, Some(id));
    assert_eq!(run(&mut idle).1, 64);
    let with = engine.cache_stats().unwrap();
    assert!(with.free_pages < before.free_pages && with.reusable_pages >= before.reusable_pages, "{with:?}");
    engine.unload_adapter(id).unwrap();
    assert_eq!(engine.cache_stats().unwrap(), before, "of idle sessions too");
    for adapter in others {
        assert_eq!(run(&mut session(&engine, adapter)).1, 64, "{adapter:?}");
    }
}

#[test]
fn saved_pages_match_an_adapter_by_content() {
    let first = engine(&[]);
    let id = first.load_adapter(adapter(ALL)).unwrap();
    let mut session_of_first = session(&first, Some(id));
    let (text, _) = run(&mut session_of_first);
    let CacheSave::Saved(saved) = session_of_first.save_cache(usize::MAX).unwrap() else {
        panic!("not saved")
    };
    let second = engine(&[]);
    let other = second.load_adapter(adapter(ATTENTION)).unwrap();
    assert_eq!(other, id, "the same id for another adapter");
    let error = session(&second, Some(other)).restore_cache(&saved).unwrap_err();
    assert!(matches!(error, Error::ForeignAdapter { .. }), "{error}");
    let same = second.load_adapter(adapter(ALL)).unwrap();
    let mut restored = session(&second, Some(same));
    assert!(restored.restore_cache(&saved).unwrap());
    restored.rewind(79);
    assert_eq!(restored.prefill(&prompt()[79..]).unwrap().prefilled_tokens, 1);
    restored.generate(GenerateParams::default()).into_text().unwrap();
    assert_eq!(restored.tokens().split_off(80), text);
    second.unload_adapter(same).unwrap();
    assert_eq!(second.cache_stats().unwrap().reusable_pages, 0, "nothing can find restored pages any more");
    assert!(is_unloaded(&restored.restore_cache(&saved).unwrap_err(), same));
    assert!(matches!(restored.save_cache(usize::MAX).unwrap(), CacheSave::NothingCached));
}

#[test]
fn restored_session_finds_its_adapter_under_another_id() {
    let first = engine(&[]);
    let mut original = session(&first, Some(first.load_adapter(adapter(ALL)).unwrap()));
    run(&mut original);
    let (saved, _) = original.save(SaveOptions { cache: Some(usize::MAX) }).unwrap();
    let goes_on = |session: &mut Session| {
        session.generate(GenerateParams::default()).into_text().unwrap();
        session.tokens()
    };
    let expected = goes_on(&mut original);
    let second = engine(&[]);
    second.load_adapter(adapter(ATTENTION)).unwrap();
    assert!(matches!(second.restore(&saved), Err(Error::ForeignAdapter { .. })));
    let same = second.load_adapter(adapter(ALL)).unwrap();
    for saved in [SavedSession { cache: None, ..saved.clone() }, saved] {
        let mut restored = second.restore(&saved).unwrap();
        assert_eq!(restored.config().adapter, Some(same));
        assert_eq!(goes_on(&mut restored), expected, "{:?}", saved.cache);
    }
}

#[test]
fn folder_without_a_matching_adapter_is_an_error() {
    let engine = engine(&[]);
    for folder in [adapter("no-such-folder"), testdata("adapters"), adapter("llama-tiny-bias-some")] {
        let error = engine.load_adapter(&folder).unwrap_err();
        assert!(matches!(error, Error::Model(_)), "{folder:?}: {error}");
    }
    assert!(engine.adapters().is_empty());
    assert_eq!(engine.load_adapter(adapter(ALL)).unwrap(), AdapterId(0));
    let error = scripted_engine(["Hello!"]).load_adapter(adapter(ALL)).unwrap_err();
    assert!(matches!(error, Error::NoAdapters { .. }), "{error}");
    engine.shutdown();
    let error = engine.unload_adapter(AdapterId(0)).unwrap_err();
    assert!(matches!(error, Error::EngineStopped), "{error}");
}

#[test]
fn adapters_survive_unloading_the_model() {
    let [base, all, attention] = expected();
    let engine = engine(&[ALL]);
    let later = engine.load_adapter(adapter(ATTENTION)).unwrap();
    for (id, expected) in [(AdapterId(0), all), (later, attention)] {
        assert!(engine.unload().unwrap());
        assert_eq!(run(&mut session(&engine, Some(id))).0, expected);
    }
    // An adapter unloaded meanwhile is not loaded with the model.
    assert!(engine.unload().unwrap());
    engine.unload_adapter(AdapterId(0)).unwrap();
    assert_eq!(run(&mut session(&engine, None)).0, base);
    assert!(is_unloaded(&engine.session(config(Some(AdapterId(0)))).unwrap_err(), AdapterId(0)));
    assert_eq!(engine.adapters().len(), 1);
}

/// Resident memory in bytes, if the system reports it.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

/// Writes an adapter of 8 MB: the queries of two layers with a rank of 8,192.
fn write_large_adapter(folder: &Path) {
    const RANK: usize = 8_192;
    let (mut header, mut at) = (serde_json::Map::new(), 0);
    for layer in 0..2 {
        for (half, shape) in [("A", [RANK, 64]), ("B", [64, RANK])] {
            let name = format!("base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{half}.weight");
            let end = at + RANK * 64 * 4;
            let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [at, end]});
            header.insert(name, entry);
            at = end;
        }
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + at, 0x3c);
    std::fs::write(folder.join("adapter_model.safetensors"), file).unwrap();
    let config = serde_json::json!({"peft_type": "LORA", "r": RANK, "lora_alpha": 1});
    std::fs::write(folder.join("adapter_config.json"), config.to_string()).unwrap();
}

#[test]
fn unloaded_adapter_memory_is_freed() {
    let Some(_) = resident() else {
        return println!("skipped: this system does not report the resident memory");
    };
    let folder = tempfile::tempdir().unwrap();
    write_large_adapter(folder.path());
    let engine = engine(&[]);
    let cycle = || {
        let id = engine.load_adapter(folder.path()).unwrap();
        session(&engine, Some(id)).prefill(&[1, 2, 3]).unwrap();
        engine.unload_adapter(id).unwrap();
    };
    (0..5).for_each(|_| cycle());
    let before = resident().unwrap();
    (0..40).for_each(|_| cycle());
    let grown = resident().unwrap().saturating_sub(before);
    assert!(grown < 80 << 20, "{grown} bytes after 40 adapters of 8 MB each");
}
