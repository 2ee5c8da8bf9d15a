//! The adapter in the folder of an audio model (Granite Speech): on for sessions with audio, off for others.

use std::path::Path;
use std::sync::Arc;

use lm_session::testing::audio_file;
use lm_session::{
    AdapterId, CacheSave, CancelHandle, Engine, EngineSettings, Error, GenerateParams, LoadOptions, Media,
    ModelFolder, Prompt, PromptPiece, SaveOptions, Session, SessionConfig, SessionEvent, TokenId,
};

const TEXT: [TokenId; 5] = [3, 14, 15, 9, 2];

fn engine(has_adapter: bool) -> Engine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/audio/granite-speech-tiny");
    let mut loaded = ModelFolder::open(path).unwrap().load(&LoadOptions::default(), &mut |_| {}).unwrap();
    loaded.audio_adapter = loaded.audio_adapter.filter(|_| has_adapter);
    Engine::new(loaded, EngineSettings::default()).unwrap()
}

fn session(engine: &Engine, adapter: Option<AdapterId>) -> Session {
    engine.session(SessionConfig { adapter, ..SessionConfig::default() }).unwrap()
}

/// [`TEXT`], an audio clip, and a token more.
fn heard(engine: &Engine) -> (Vec<TokenId>, [Arc<Media>; 1]) {
    let audio = engine.audio(audio_file(9000, 5)).unwrap();
    let mut ids = TEXT.to_vec();
    for piece in audio.pieces() {
        match piece {
            PromptPiece::Text(text) => ids.extend(engine.tokenizer().encode(text).unwrap()),
            PromptPiece::Rows(rows) => ids.extend(rows),
        }
    }
    ids.push(7);
    (ids, [audio])
}

/// Eight greedy tokens after a prompt, and how many of its tokens were cached.
fn reply(session: &mut Session, ids: &[TokenId], media: &[Arc<Media>]) -> (Vec<TokenId>, usize) {
    let stats = session.sync(Prompt { ids, media }, &CancelHandle::new()).unwrap();
    let params = GenerateParams { max_output_tokens: Some(8), ..GenerateParams::default() };
    let token = |event| match event {
        SessionEvent::Token { id, .. } => Some(id),
        _ => None,
    };
    let tokens = session.generate(params).filter_map(|event| token(event.unwrap())).collect();
    (tokens, stats.cached_tokens)
}

#[test]
fn audio_adapter_is_on_only_with_audio() {
    let (engine, base) = (engine(true), engine(false));
    let adapter = engine.audio_adapter();
    assert_eq!((adapter, base.audio_adapter()), (Some(AdapterId(0)), None));
    let (ids, media) = heard(&engine);
    let (with, _) = reply(&mut session(&engine, adapter), &ids, &media);
    let (text_with, _) = reply(&mut session(&engine, adapter), &TEXT, &[]);
    let (text_without, _) = reply(&mut session(&base, None), &TEXT, &[]);
    assert_ne!(text_with, text_without);
    let (ids_of_base, media_of_base) = heard(&base);
    assert_ne!(reply(&mut session(&base, None), &ids_of_base, &media_of_base).0, with);

    let mut session = session(&engine, None);
    assert_eq!(reply(&mut session, &TEXT, &[]), (text_without.clone(), 0));
    // The text before the audio has keys and values without the adapter: it runs again, or is found in
    // sessions with the adapter.
    assert_eq!(reply(&mut session, &ids, &media).0, with);
    let mut fork = session.fork().unwrap();
    for session in [&mut session, &mut fork] {
        session.rewind(TEXT.len());
        assert_eq!(reply(session, &TEXT, &[]).0, text_without);
        assert_eq!(reply(session, &ids, &media).0, with);
    }
}

#[test]
fn audio_session_pages_are_restored_for_the_adapter() {
    let engine = engine(true);
    let (ids, media) = heard(&engine);
    let mut heard = session(&engine, None);
    let (expected, _) = reply(&mut heard, &ids, &media);
    let (text, _) = reply(&mut session(&engine, None), &TEXT, &[]);
    let CacheSave::Saved(cache) = heard.save_cache(1 << 30).unwrap() else { panic!("it is small") };
    let (saved, _) = heard.save(SaveOptions { cache: Some(1 << 30) }).unwrap();
    drop(heard);
    let (other, mut restored) = (self::engine(true), None);
    for how in 0..2 {
        let mut session = match how {
            0 => other.restore(&saved).unwrap(),
            _ => session(&other, None),
        };
        assert!(how == 0 || session.restore_cache(&cache).unwrap());
        assert_eq!(session.config().adapter, None);
        let (tokens, cached) = reply(&mut session, &ids, &media);
        assert_eq!(tokens, expected);
        assert!(cached > TEXT.len(), "{cached}");
        restored = Some(session);
    }
    // Pages with the adapter serve no text.
    assert_eq!(reply(&mut session(&other, None), &TEXT, &[]), (text.clone(), 0));
    let mut restored = restored.unwrap();
    restored.sync(&TEXT, &CancelHandle::new()).unwrap();
    assert_eq!(reply(&mut restored, &TEXT, &[]).0, text);
    let explicit = self::engine(false);
    assert!(matches!(
        session(&explicit, None).restore_cache(&cache),
        Err(Error::ForeignCache { .. } | Error::ForeignAdapter { .. })
    ));
}
