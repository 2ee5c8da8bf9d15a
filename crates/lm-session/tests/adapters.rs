//! Sessions with different adapters on one engine: each behaves as if alone, and none reuses another
//! adapter's cache.

use std::path::{Path, PathBuf};

use lm_session::{
    AdapterId, Engine, EngineSettings, Error, GenerateParams, LoadOptions, ModelFolder, Session,
    SessionConfig, TokenId,
};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn engine() -> Engine {
    let adapters = ["llama-tiny-all", "llama-tiny-attention"].map(|name| testdata("adapters").join(name));
    let options = LoadOptions { adapters: adapters.into(), ..LoadOptions::default() };
    let folder = ModelFolder::open(testdata("models/llama-tiny")).unwrap();
    Engine::load(&folder, &options, EngineSettings::default(), &mut |_| {}).unwrap()
}

fn session(engine: &Engine, adapter: Option<u32>) -> Session {
    let adapter = adapter.map(AdapterId);
    engine
        .session(SessionConfig { adapter, max_output_tokens: Some(12), ..SessionConfig::default() })
        .unwrap()
}

/// Returns the prompt with the tokens generated after it, and the number of cached prompt tokens.
fn run(session: &mut Session) -> (Vec<TokenId>, usize) {
    let prompt: Vec<TokenId> = (0..80).map(|i| i * 37 % 290).collect();
    let stats = session.prefill(&prompt).unwrap();
    session.generate(GenerateParams::default()).into_text().unwrap();
    (session.tokens().to_vec(), stats.cached_tokens)
}

#[test]
fn prefixes_are_shared_within_an_adapter() {
    let shared = engine();
    let mut texts = Vec::new();
    for adapter in [None, Some(0), Some(1)] {
        let (first, cached) = run(&mut session(&shared, adapter));
        assert_eq!(cached, 0, "adapter {adapter:?} takes what another one has cached");
        let (second, cached) = run(&mut session(&shared, adapter));
        assert_eq!((&second, cached), (&first, 64), "adapter {adapter:?} finds its own prefix");
        assert_eq!(run(&mut session(&engine(), adapter)).0, first, "adapter {adapter:?} alone");
        texts.push(first);
    }
    texts.dedup();
    assert_eq!(texts.len(), 3, "an adapter that changes nothing tests nothing");
}

#[test]
fn fork_keeps_its_adapter() {
    let shared = engine();
    let mut first = session(&shared, Some(0));
    first.prefill(&[5, 6, 7]).unwrap();
    let mut fork = first.fork().unwrap();
    let texts = [&mut first, &mut fork].map(|session| {
        session.generate(GenerateParams::default()).into_text().unwrap();
        session.tokens().to_vec()
    });
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn unknown_adapter_is_an_error() {
    let config = SessionConfig { adapter: Some(AdapterId(2)), ..SessionConfig::default() };
    let error = engine().session(config).unwrap_err();
    assert!(matches!(error, Error::UnknownAdapter { adapter: 2, loaded: 2 }), "{error}");
}
