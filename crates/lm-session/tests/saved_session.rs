//! Sessions in files: contents, limits, damage, and sessions of other models.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{engine_of, generate, kinds, prompt, random_engine};
use lm_session::{
    Engine, EngineSettings, Error, PAGE_LEN, SamplerParams, SaveOptions, SavedError, SavedSession,
    SavedTokens, Session, SessionConfig, TokenId,
};
use serde_json::{Value, json};

const ALL: SaveOptions = SaveOptions { cache: Some(usize::MAX) };

fn config() -> SessionConfig {
    SessionConfig {
        sampler: SamplerParams { seed: Some(7), temperature: 0.8, top_k: 5, ..SamplerParams::default() },
        stop: vec!["\u{0}never".to_owned()],
        stop_ids: vec![3],
        max_output_tokens: Some(9),
        adapter: None,
    }
}

/// A session of more than two pages after a generation.
fn session(engine: &Engine) -> Session {
    let mut session = engine.session(config()).unwrap();
    session.prefill(&prompt(1, 2 * PAGE_LEN + 5)).unwrap();
    generate(&mut session, 9).unwrap();
    session
}

fn engine() -> Engine {
    random_engine(EngineSettings::default())
}

fn written(folder: &Path, session: &Session, options: SaveOptions) -> (PathBuf, SavedSession, SavedTokens) {
    let path = folder.join("session.json");
    let (saved, outcome) = session.save(options).unwrap();
    saved.write(&path).unwrap();
    (path, saved, outcome)
}

#[test]
fn restored_session_continues_as_the_saved_one() {
    let folder = tempfile::tempdir().unwrap();
    for layers in kinds() {
        let name = format!("{layers:?}");
        let engine = engine_of(&layers, EngineSettings::default());
        let mut original = session(&engine);
        for options in [ALL, SaveOptions::default()] {
            let (path, saved, outcome) = written(folder.path(), &original, options);
            assert_eq!(SavedSession::read(&path).unwrap(), saved, "{name}");
            let other = engine_of(&layers, EngineSettings::default());
            let mut restored = other.restore(&SavedSession::read(&path).unwrap()).unwrap();
            assert_eq!((restored.tokens(), restored.config()), (original.tokens(), &config()), "{name}");
            let stats = restored.prefill(&[5, 6]).unwrap();
            match outcome {
                SavedTokens::Saved { tokens, bytes } => {
                    assert!(stats.cached_tokens >= tokens - 1 && bytes > 0, "{name}: {stats:?}");
                    assert!(tokens + 1 >= original.tokens().len(), "{name}: {tokens}");
                }
                _ => assert_eq!(stats.cached_tokens, 0, "{name}"),
            }
        }
        let (saved, _) = original.save(ALL).unwrap();
        let mut restored = engine.restore(&saved).unwrap();
        let again = |session: &mut Session| generate(session, 9).unwrap();
        assert_eq!(again(&mut original), again(&mut restored), "{name}");
    }
}

#[test]
fn pages_above_the_limit_are_omitted() {
    let engine = engine();
    let session = session(&engine);
    let (_, outcome) = session.save(SaveOptions { cache: Some(1) }).unwrap();
    let SavedTokens::TooLarge { bytes } = outcome else { panic!("{outcome:?}") };
    let (saved, outcome) = session.save(SaveOptions { cache: Some(bytes) }).unwrap();
    assert!(matches!(outcome, SavedTokens::Saved { bytes: found, .. } if found == bytes));
    assert_eq!(saved.cache.unwrap().pages.len(), bytes);
    let empty = engine.session(SessionConfig::default()).unwrap();
    let (saved, outcome) = empty.save(ALL).unwrap();
    assert_eq!(outcome, SavedTokens::NothingCached);
    assert!(engine.restore(&saved).unwrap().tokens().is_empty());
}

#[test]
fn damaged_files_and_files_of_other_programs_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (path, saved, _) = written(folder.path(), &session(&engine()), ALL);
    let bytes = fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        SavedSession::read(&path).unwrap_err()
    };
    let pages = bytes.iter().position(|&byte| byte == 0).unwrap();
    for end in (0..pages - 1).step_by(31) {
        assert!(matches!(read(&bytes[..end]), SavedError::NotJson(_)), "cut at {end}");
    }
    assert!(matches!(read(&bytes[..bytes.len() - 1]), SavedError::CacheLength { .. }));
    assert!(matches!(read(&[&bytes[..], b"\n"].concat()), SavedError::CacheLength { .. }));
    let without = SavedSession::read_without_cache(&path).unwrap();
    assert_eq!(without, SavedSession { cache: None, ..saved });
    let last = bytes.len() - 1;
    assert!(matches!(read(&[&bytes[..last], &[!bytes[last]]].concat()), SavedError::CacheChecksum));
    let text = String::from_utf8(bytes[..pages].to_vec()).unwrap();
    let changed = text.replacen("\"top_k\": 5", "\"top_k\": 6", 1);
    assert_ne!(changed, text);
    assert!(matches!(read(&[changed.as_bytes(), &bytes[pages..]].concat()), SavedError::Checksum));
    assert!(matches!(read(b"[]"), SavedError::Invalid { key: "format", .. }));
    assert!(matches!(read(b"{\"messages\": []}"), SavedError::Invalid { key: "format", .. }));
    assert!(matches!(read(b"{\"version\": 2}"), SavedError::Version { found: 2, supported: 1 }));
    // Without a checksum it can be edited by hand.
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json.as_object_mut().unwrap().retain(|key, _| key != "checksum" && key != "cache");
    let edited = |key: &str, value: Value| {
        let mut json = json.clone();
        json[key] = value;
        fs::write(&path, json.to_string()).unwrap();
        SavedSession::read(&path)
    };
    assert_eq!(edited("tokens", json!([1, 2])).unwrap().tokens, [1, 2]);
    for (key, value) in [
        ("tokens", json!([1, -2])),
        ("settings", json!({"sampler": {}, "stop": []})),
        ("settings", json!({"sampler": {"top_q": 1}, "stop": [], "stop_ids": [], "max_output_tokens": null})),
        ("adapter", json!("a")),
        ("fingerprint", Value::Null),
    ] {
        let rejected = edited(key, value);
        assert!(
            matches!(&rejected, Err(SavedError::Invalid { key: found, .. }) if *found == key),
            "{rejected:?}"
        );
    }
}

#[test]
fn other_models_and_unknown_tokens_are_rejected() {
    let engine = engine();
    let (saved, _) = session(&engine).save(ALL).unwrap();
    let rejected = |change: &dyn Fn(&mut SavedSession)| {
        let mut saved = saved.clone();
        change(&mut saved);
        engine.restore(&saved).unwrap_err()
    };
    assert!(matches!(rejected(&|saved| saved.fingerprint = "a".into()), Error::ForeignCache { .. }));
    assert!(matches!(rejected(&|saved| saved.adapter = Some(1)), Error::ForeignAdapter { .. }));
    assert!(matches!(rejected(&|saved| saved.tokens.push(TokenId::MAX)), Error::SavedToken { .. }));
    let context = engine.context_tokens();
    assert!(matches!(rejected(&|saved| saved.tokens = vec![1; context + 1]), Error::PromptTooLong { .. }));
    assert!(matches!(
        rejected(&|saved| saved.config.sampler.temperature = -1.0),
        Error::InvalidSampler { .. }
    ));
}

#[test]
fn pages_of_other_tokens_are_not_used() {
    let engine = engine();
    let (mut saved, _) = session(&engine).save(ALL).unwrap();
    let other = prompt(1, PAGE_LEN).into_iter().chain([9; PAGE_LEN]).collect::<Vec<_>>();
    saved.tokens.clone_from(&other);
    let mut restored = engine.restore(&saved).unwrap();
    assert_eq!(restored.tokens(), other);
    let mut fresh = self::engine().session(config()).unwrap();
    fresh.prefill(&other).unwrap();
    assert_eq!(generate(&mut restored, 9).unwrap(), generate(&mut fresh, 9).unwrap());
}

#[test]
fn file_with_pages_of_other_tokens_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut saved, _) = written(folder.path(), &session(&engine()), ALL);
    let mut rejected = |change: &dyn Fn(&mut Vec<TokenId>)| {
        change(&mut saved.tokens);
        saved.write(&path).unwrap();
        let error = SavedSession::read(&path).unwrap_err();
        assert!(matches!(error, SavedError::Invalid { key: "cache", .. }) && error.is_of_cache(), "{error}");
        let without = SavedSession::read_without_cache(&path).unwrap();
        assert_eq!((without.tokens, without.cache), (saved.tokens.clone(), None));
    };
    rejected(&|tokens| tokens[PAGE_LEN] ^= 1);
    rejected(&|tokens| tokens.truncate(PAGE_LEN));
}

#[test]
fn byte_order_mark_before_the_json_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    for options in [ALL, SaveOptions::default()] {
        let (path, saved, _) = written(folder.path(), &session(&engine()), options);
        let marked = [b"\xef\xbb\xbf", &*fs::read(&path).unwrap()].concat();
        fs::write(&path, &marked).unwrap();
        assert_eq!(SavedSession::read(&path).unwrap(), saved);
        fs::write(&path, [b"\xef\xbb\xbf", &*marked].concat()).unwrap();
        assert!(matches!(SavedSession::read(&path), Err(SavedError::NotJson(_))), "one mark only");
    }
}

#[test]
fn session_is_read_without_an_invalid_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (path, saved, _) = written(folder.path(), &session(&engine()), SaveOptions::default());
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json.as_object_mut().unwrap().shift_remove("checksum");
    for cache in [
        Value::Null,
        json!({}),
        json!({"fingerprint": "a", "tokens": [], "bytes": 6_u64 << 30, "sha256": ""}),
    ] {
        json["cache"] = cache;
        fs::write(&path, json.to_string()).unwrap();
        assert!(SavedSession::read(&path).is_err());
        assert_eq!(SavedSession::read_without_cache(&path).unwrap(), saved);
    }
    json["cache"] = json!({});
    fs::write(&path, json.to_string()).unwrap();
    assert!(SavedSession::read(&path).unwrap_err().is_of_cache());
    json.as_object_mut().unwrap().retain(|key, _| key != "cache" && key != "version");
    fs::write(&path, json.to_string()).unwrap();
    assert!(matches!(SavedSession::read(&path), Err(SavedError::Invalid { key: "version", .. })));
}

#[test]
fn unreadable_session_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut saved, _) = written(folder.path(), &session(&engine()), SaveOptions::default());
    let before = fs::read(&path).unwrap();
    saved.config.sampler.temperature = f32::NAN;
    assert!(matches!(saved.write(&path), Err(SavedError::Invalid { key: "settings", .. })));
    saved.config.sampler.temperature = 0.0;
    saved.config.stop = vec!["long ".repeat(14 << 20)];
    assert!(matches!(saved.write(&path), Err(SavedError::TooLarge)));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn new_file_is_readable_only_by_its_user() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (path, saved, _) = written(folder.path(), &session(&engine()), SaveOptions::default());
    let new = folder.path().join("new.json");
    saved.write_new(&new).unwrap();
    for path in [path, new] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn saves_to_long_names_links_and_devices() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (_, saved, _) = written(folder.path(), &session(&engine()), SaveOptions::default());
    let long = folder.path().join("n".repeat(250));
    saved.write(&long).unwrap();
    fs::set_permissions(&long, fs::Permissions::from_mode(0o640)).unwrap();
    saved.write(&long).unwrap();
    assert_eq!(fs::metadata(&long).unwrap().permissions().mode() & 0o777, 0o640);
    let (link, target) = (folder.path().join("link"), folder.path().join("target"));
    symlink("target", &link).unwrap();
    saved.write(&link).unwrap();
    assert!(link.is_symlink() && target.is_file());
    assert_eq!(SavedSession::read(&link).unwrap(), saved);
    assert!(matches!(SavedSession::read("/dev/zero"), Err(SavedError::Io(_))));
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(matches!(saved.write(&socket), Err(SavedError::Io(_))));
    assert!(!socket.is_file(), "the socket is not replaced");
}
