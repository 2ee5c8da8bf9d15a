//! Files of conversations: damaged, foreign and future ones, and writers that are killed or out of room.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lm_conversation::{
    Conversation, ConversationConfig, Engine, EngineSettings, LoadOptions, Message, ModelFolder, Reply,
    SaveOptions, SavedCache, SavedConversation, SavedError, SavedTokens, SessionConfig, ToolSpec,
};
use serde_json::{Value, json};

/// Path at which a child process writes without end.
const TARGET: &str = "LM_SAVED_TARGET";

fn conversation(turns: usize) -> SavedConversation {
    let turn =
        |number| [Message::user(format!("Question {number}: é😀")), Message::assistant("word ".repeat(200))];
    SavedConversation {
        tools: vec![
            ToolSpec::from_json(json!({"name": "f", "parameters": {"type": "object"}})).expect("a tool"),
        ],
        preface: vec![Message::system("Be brief.")],
        history: (0..turns).flat_map(turn).collect(),
        cache: turns.is_multiple_of(2).then(|| pages(turns)),
    }
}

/// KV pages that no model wrote.
fn pages(turns: usize) -> SavedCache {
    SavedCache {
        fingerprint: "f".repeat(64),
        adapter: turns.is_multiple_of(4).then_some(1),
        tokens: (0..turns as u32).collect(),
        pages: (0..turns * 50_000).map(|byte| (byte % 251) as u8).collect(),
    }
}

fn written(folder: &Path) -> (std::path::PathBuf, String) {
    let path = folder.join("chat.json");
    conversation(3).write(&path).expect("it is written");
    let text = std::fs::read_to_string(&path).expect("it is there");
    (path, text)
}

#[test]
fn damaged_files_are_rejected_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, text) = written(folder.path());
    for end in (0..text.len() - 1).step_by(97).filter(|&end| text.is_char_boundary(end)) {
        std::fs::write(&path, &text[..end]).expect("can be written");
        assert!(matches!(SavedConversation::read(&path), Err(SavedError::NotJson(_))), "cut at {end}");
    }
    std::fs::write(&path, text.replacen("word", "ward", 1)).expect("can be written");
    assert!(matches!(SavedConversation::read(&path), Err(SavedError::Checksum)));
    std::fs::write(&path, text.replacen("\"preface\": 1", "\"preface\": 2", 1)).expect("can be written");
    assert!(matches!(SavedConversation::read(&path), Err(SavedError::Checksum)));
}

#[test]
fn damaged_pages_are_rejected_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chat.json");
    conversation(4).write(&path).expect("it is written");
    assert_eq!(SavedConversation::read(&path).expect("it is whole"), conversation(4));
    let bytes = std::fs::read(&path).expect("it is there");
    let json = bytes.iter().position(|&byte| byte == 0).expect("pages");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("can be written");
        SavedConversation::read(&path).expect_err("it is refused")
    };
    for end in (json..bytes.len()).step_by(9_973) {
        let found = end.saturating_sub(json + 1) as u64;
        let error = read(&bytes[..end]);
        assert!(
            matches!(error, SavedError::CacheLength { expected: 200_000, found: got } if got == found),
            "cut at {end}: {error}"
        );
    }
    assert!(matches!(read(&[&bytes[..], b"x"].concat()), SavedError::CacheLength { found: 200_001, .. }));
    for at in [json + 1, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = read(&damaged);
        assert!(matches!(error, SavedError::CacheChecksum) && error.is_of_cache(), "byte {at}");
        let messages = SavedConversation::read_without_cache(&path).expect("the messages are whole");
        assert_eq!(messages, SavedConversation { cache: None, ..conversation(4) });
    }
    for byte in [b' ', b'x', 0xff] {
        let mut damaged = bytes.clone();
        damaged[json] = byte;
        let error = read(&damaged);
        assert!(error.is_of_cache(), "separator {byte}: {error}");
        let messages = SavedConversation::read_without_cache(&path).expect("the messages are whole");
        assert_eq!(messages, SavedConversation { cache: None, ..conversation(4) });
    }
    let text = String::from_utf8(bytes[..json].to_vec()).expect("text");
    let changed = text.replacen("\"adapter\": 1", "\"adapter\": 2", 1);
    assert_ne!(changed, text);
    assert!(matches!(read(&[changed.as_bytes(), &bytes[json..]].concat()), SavedError::Checksum));
    // Pages that no JSON describes, and JSON whose pages are elsewhere.
    let plain = serde_json::to_vec(&conversation(4).to_json()).expect("JSON");
    assert!(matches!(read(&[&plain, &bytes[json..]].concat()), SavedError::CacheLength { expected: 0, .. }));
    assert!(
        matches!(read(&[&plain[..], b"x"].concat()), SavedError::NotJson(_)),
        "text after JSON without pages"
    );
    let described: Value = serde_json::from_slice(&bytes[..json]).expect("JSON");
    let error = SavedConversation::from_json(described).expect_err("the pages are not in it");
    assert!(matches!(error, SavedError::CacheLength { found: 0, .. }));
}

#[test]
fn descriptions_of_pages_are_validated() {
    let cache = json!({"fingerprint": "a", "adapter": null, "tokens": [1, 2], "bytes": 3, "sha256": "b"});
    let error = |key: &str, value: Value| {
        let mut cache = cache.clone();
        cache[key] = value;
        SavedConversation::from_json(json!({"messages": [], "cache": cache})).expect_err("it is refused")
    };
    for (key, value) in [
        ("fingerprint", json!(1)),
        ("adapter", json!("a")),
        ("adapter", json!(-1)),
        ("tokens", json!([1, "a"])),
        ("tokens", json!([1_u64 << 32])),
        ("bytes", json!(-3)),
        ("sha256", Value::Null),
    ] {
        let error = error(key, value);
        assert!(matches!(error, SavedError::Invalid { key: "cache", .. }), "{key}: {error}");
    }
    assert!(matches!(error("bytes", json!(5_u64 << 30)), SavedError::TooLarge));
}

fn engine(settings: EngineSettings) -> Engine {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).expect("the embedded model loads")
}

fn new(engine: &Engine) -> Conversation {
    let session = SessionConfig { max_output_tokens: Some(20), ..SessionConfig::default() };
    let config = ConversationConfig { session, ..ConversationConfig::default() };
    Conversation::new(engine, config).expect("a conversation")
}

/// Prompt tokens that were cached and prefilled, and the reply's text.
fn counts(reply: &Reply) -> (usize, usize, String) {
    (reply.finish.usage.cached_tokens, reply.finish.timing.prefilled_tokens, reply.text())
}

#[test]
fn restored_conversation_prefills_only_new_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chat.json");
    let mut conversation = new(&engine(EngineSettings::default()));
    conversation.send("word ".repeat(150)).expect("a turn");
    conversation.send("Who are you?").expect("a turn");
    let (saved, outcome) = conversation.save(SaveOptions { cache: Some(1 << 30) }).expect("it is saved");
    let SavedTokens::Saved { tokens, bytes } = outcome else { panic!("{outcome:?}") };
    assert!(tokens > 150 && bytes > 1_000);
    saved.write(&path).expect("it is written");
    let restored = |limit: Option<usize>| {
        let mut saved = SavedConversation::read(&path).expect("it is read");
        saved.cache = saved.cache.filter(|_| limit.is_some());
        let mut conversation = new(&engine(EngineSettings::default()));
        let cached = conversation.restore(saved).expect("it fits");
        (cached, counts(&conversation.send("And now?").expect("a turn")))
    };
    let continued = counts(&conversation.send("And now?").expect("a turn"));
    let (with, without) = (restored(Some(0)), restored(None));
    assert_eq!((with.0, with.1.clone()), (tokens, continued));
    assert_eq!((without.0, without.1.0), (0, 0));
    assert_eq!(without.1.2, with.1.2, "the same text");
    let (cached, prefilled, _) = with.1;
    assert!(cached >= tokens - 1 && prefilled < 40, "{cached} cached of {tokens}, {prefilled} run");
    assert_eq!(without.1.1, cached + prefilled);
}

#[test]
fn pages_above_the_limit_are_omitted_and_reported() {
    let mut conversation = new(&engine(EngineSettings::default()));
    let save = |conversation: &Conversation, cache| {
        let (saved, outcome) = conversation.save(SaveOptions { cache }).expect("it is saved");
        (saved.cache.map(|cache| cache.pages.len()), outcome)
    };
    assert_eq!(save(&conversation, Some(1 << 20)), (None, SavedTokens::NothingCached));
    conversation.send("Hello").expect("a turn");
    assert_eq!(save(&conversation, None), (None, SavedTokens::NotAsked));
    let (None, SavedTokens::TooLarge { bytes }) = save(&conversation, Some(1)) else { panic!("too large") };
    assert_eq!(save(&conversation, Some(bytes - 1)), (None, SavedTokens::TooLarge { bytes }));
    assert!(
        matches!(save(&conversation, Some(bytes)), (Some(found), SavedTokens::Saved { .. }) if found == bytes)
    );
}

#[test]
fn pages_exclude_removed_messages() {
    let mut conversation = new(&engine(EngineSettings::default()));
    conversation.send("A public question.").expect("a turn");
    let public = conversation.history();
    let saved_tokens = |conversation: &Conversation| {
        let (saved, _) = conversation.save(SaveOptions { cache: Some(1 << 30) }).expect("it is saved");
        saved.cache.map_or(0, |cache| cache.tokens.len())
    };
    let before = saved_tokens(&conversation);
    conversation.send("secret ".repeat(100)).expect("a turn");
    assert!(saved_tokens(&conversation) > before + 100);
    conversation.set_history(public);
    // The end of the reply was not run before.
    assert!(saved_tokens(&conversation) <= before + 3);
    conversation.reset();
    assert!(saved_tokens(&conversation) < before.min(20));
}

#[test]
fn pages_of_another_model_are_rejected() {
    let mut conversation = new(&engine(EngineSettings::default()));
    conversation.send("Hello").expect("a turn");
    let before = conversation.history();
    let foreign = SavedConversation { cache: Some(pages(2)), ..conversation.saved() };
    let foreign = SavedConversation { history: vec![Message::user("Other")], ..foreign };
    let error = conversation.restore(foreign.clone()).expect_err("its model is unknown");
    assert!(
        matches!(error, lm_conversation::Error::Session(lm_session::Error::ForeignCache { .. })),
        "{error}"
    );
    assert_eq!(conversation.history(), before);
    assert_eq!(conversation.restore(SavedConversation { cache: None, ..foreign }).expect("messages"), 0);
    assert_eq!(conversation.history().len(), 1);
}

#[test]
fn foreign_and_future_files_are_rejected_with_place() {
    let error = |json: Value| SavedConversation::from_json(json).expect_err("it is refused").to_string();
    let later = json!({"version": 3, "messages": []});
    assert_eq!(error(later), "the file has version 3, this program reads up to 2");
    assert_eq!(error(json!({"a": 1})), "`messages` is missing or not an array");
    assert_eq!(error(json!(3)), "`messages` is missing or not an array");
    assert!(error(json!([{"role": "user", "content": "a"}, {}])).starts_with("`messages[1]`: "));
    assert!(error(json!({"messages": [], "tools": [{}]})).starts_with("`tools[0]`: "));
    assert!(error(json!({"messages": [], "preface": 1})).starts_with("`preface` is missing or not"));
    assert!(matches!(SavedConversation::read("/nowhere/a"), Err(SavedError::Io(_))));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a"), [0x89, b'P', b'N', b'G', 0, 1]).expect("can be written");
    assert!(matches!(SavedConversation::read(folder.path().join("a")), Err(SavedError::NotJson(_))));
}

#[test]
fn files_of_other_programs_are_read() {
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": "Hi."});
    let read = |json| SavedConversation::from_json(json).expect("it is read");
    for json in [json!([system, user]), json!({"messages": [system, user]})] {
        let saved = read(json);
        assert_eq!((saved.preface.len(), saved.history), (1, vec![Message::user("Hi.")]));
    }
    assert_eq!(read(json!({"messages": [system, user], "preface": 0})).history.len(), 2);
}

#[test]
fn new_file_does_not_overwrite() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, text) = written(folder.path());
    let Err(SavedError::Io(error)) = conversation(1).write_new(&path) else { panic!("the file exists") };
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    conversation(1).write_new(folder.path().join("other.json")).expect("a new file");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 2, "nothing temporary is left");
    assert!(conversation(1).write(folder.path().join("no/such/folder.json")).is_err());
}

/// Writes one conversation after another, until it is killed.
#[test]
#[ignore = "run as a child process"]
fn child() {
    let Some(target) = std::env::var_os(TARGET) else { return };
    for turns in (2..40).cycle() {
        if conversation(turns).write(&target).is_err() {
            std::process::exit(3);
        }
    }
}

fn writer(command: &mut Command, target: &Path) -> std::process::Child {
    let command = command.args(["saved::child", "--exact", "--ignored"]).env(TARGET, target);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child process")
}

#[test]
fn killed_writer_leaves_old_or_new_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = written(folder.path());
    let mut turns = Vec::new();
    // A child that had no time to write is followed by one with more, and the other way round: machines
    // differ, and so does their load.
    let mut time = Duration::from_millis(8);
    for number in 0..200u64 {
        let mut child = writer(&mut Command::new(std::env::current_exe().expect("this test")), &path);
        std::thread::sleep(time + Duration::from_micros(number * 7919 % 10_000));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let saved = SavedConversation::read(&path).expect("a whole file");
        let whole = saved.history.len() / 2;
        assert_eq!(saved, conversation(whole));
        let had_time = turns.last() != Some(&whole);
        time = if had_time {
            time / 2
        } else {
            (time * 2).clamp(Duration::from_millis(1), Duration::from_secs(1))
        };
        turns.push(whole);
    }
    turns.dedup();
    println!("{} different files after 200 kills", turns.len());
    assert!(turns.len() > 10, "the children wrote files: {turns:?}");
}

/// A limit on the size of files simulates a full disk.
#[cfg(unix)]
#[test]
fn full_disk_keeps_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, text) = written(folder.path());
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().expect("this test"));
    let status = writer(&mut command, &path).wait().expect("it ends");
    assert_eq!(status.code(), Some(3), "the child got an error");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 1, "nothing temporary is left");
}

#[test]
fn unreadable_state_does_not_overwrite() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, text) = written(folder.path());
    let deep = (0..130).fold(json!(1), |inner, _| json!([inner]));
    let mut call = Message::assistant("");
    let arguments = json!({ "a": deep });
    call.tool_calls =
        vec![lm_conversation::ToolCall::new("f", arguments.as_object().expect("an object").clone())];
    let saved = SavedConversation { history: vec![call], ..conversation(1) };
    assert!(saved.write(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    for version in [json!(-1), json!("2"), json!(1.5), json!(0), Value::Null] {
        let mut json: Value = serde_json::from_str(&text).expect("JSON");
        json["version"] = version.clone();
        std::fs::write(&path, json.to_string()).expect("it is written");
        let read = SavedConversation::read(&path);
        assert!(matches!(read, Err(SavedError::Invalid { key: "version", .. })), "{version}: {read:?}");
    }
}

#[cfg(unix)]
#[test]
fn symlinks_are_kept_and_only_files_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, text) = written(folder.path());
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    conversation(2).write(&link).expect("it is written");
    assert!(link.is_symlink() && std::fs::read(&path).expect("it is there") != text.as_bytes());
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    assert!(matches!(conversation(2).write(&socket), Err(SavedError::Io(_))));
    assert!(!socket.is_file());
}
