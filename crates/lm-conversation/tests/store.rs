//! Conversations by id: the same behaviour in memory and in a folder.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use lm_conversation::{
    ConversationId, ConversationStore, FolderStore, InvalidId, MemoryStore, Message, SavedConversation,
    SavedError,
};

fn id(text: &str) -> ConversationId {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn chat(text: &str) -> SavedConversation {
    SavedConversation {
        preface: vec![Message::system("Be brief.")],
        history: vec![Message::user(text), Message::assistant("Hello!")],
        ..SavedConversation::default()
    }
}

/// Runs a check on both implementations.
fn on_each(check: impl Fn(Arc<dyn ConversationStore>)) {
    check(Arc::new(MemoryStore::new()));
    let folder = tempfile::tempdir().expect("a folder");
    check(Arc::new(FolderStore::open(folder.path().join("a/b")).expect("it is created")));
}

#[test]
fn conversation_is_saved_replaced_listed_and_deleted() {
    on_each(|store| {
        assert_eq!(store.list().expect("a list"), []);
        assert_eq!(store.load(&id("a")).expect("nothing is there"), None);
        assert!(!store.delete(&id("a")).expect("nothing is there"));
        for (name, text) in [("b", "1"), ("a", "2"), ("A", "3"), ("b", "4")] {
            store.save(&id(name), &chat(text)).expect("it is saved");
        }
        assert_eq!(store.list().expect("a list"), [id("A"), id("a"), id("b")]);
        for (name, text) in [("a", "2"), ("A", "3"), ("b", "4")] {
            assert_eq!(store.load(&id(name)).expect("it is read"), Some(chat(text)), "{name}");
        }
        assert!(store.delete(&id("a")).expect("it is deleted"));
        assert_eq!(store.list().expect("a list"), [id("A"), id("b")]);
        assert_eq!(store.load(&id("a")).expect("nothing is there"), None);
    });
}

#[test]
fn path_like_text_is_not_an_id() {
    let long = "a".repeat(ConversationId::MAX_BYTES + 1);
    for text in ["", &long] {
        let expected = InvalidId::Length { bytes: text.len() };
        assert_eq!(text.parse::<ConversationId>(), Err(expected), "{text}");
    }
    for text in
        ["..", ".", "a/b", "a\\b", "/etc/passwd", "C:x", "a\0", "a b", "a\n", "ä", "a=b", "~", "a.json"]
    {
        let result = text.parse::<ConversationId>();
        assert!(matches!(result, Err(InvalidId::Character { .. })), "{text:?}: {result:?}");
    }
    for text in ["a", "A-b_3", "con", "NUL", "-", &long[1..]] {
        on_each(|store| {
            store.save(&id(text), &chat(text)).expect("it is saved");
            assert_eq!(store.list().expect("a list"), [id(text)]);
        });
    }
}

/// Each reader gets one of the versions as a whole, whoever writes meanwhile.
#[test]
fn store_is_safe_across_threads() {
    on_each(|store| {
        let versions: Vec<SavedConversation> = (0..4).map(|n| chat(&format!("{n}").repeat(5_000))).collect();
        thread::scope(|scope| {
            for version in &versions {
                let store = &store;
                scope.spawn(move || {
                    for _ in 0..10 {
                        store.save(&id("shared"), version).expect("it is saved");
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..40 {
                        if let Some(read) = store.load(&id("shared")).expect("it is whole") {
                            assert!(versions.contains(&read));
                        }
                        let listed: BTreeSet<_> = store.list().expect("a list").into_iter().collect();
                        assert!(listed.is_subset(&[id("shared"), id("own")].into()));
                        store.save(&id("own"), &versions[0]).expect("it is saved");
                        store.delete(&id("own")).expect("it is deleted, or was");
                    }
                });
            }
        });
        let last = store.load(&id("shared")).expect("it is whole").expect("it is there");
        assert!(versions.contains(&last));
    });
}

#[test]
fn foreign_files_are_ignored_and_damage_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FolderStore::open(folder.path()).expect("it is opened");
    for name in ["notes.txt", "chat-.json", "chat-a b.json", "chat-A.json", "chat-=.json", "chat-=_.json"] {
        std::fs::write(folder.path().join(name), "mine").expect("a file");
    }
    std::fs::create_dir(folder.path().join("chat-sub.json")).expect("a folder");
    assert_eq!(store.list().expect("a list"), []);
    store.save(&id("a"), &chat("1")).expect("it is saved");
    assert_eq!(store.list().expect("a list"), [id("a")]);
    assert!(matches!(store.save(&id("sub"), &chat("1")), Err(SavedError::Io(_))));

    std::fs::write(folder.path().join("chat-a.json"), "{\"version\": 1").expect("it is damaged");
    assert!(matches!(store.load(&id("a")), Err(SavedError::NotJson(_))));
    store.save(&id("a"), &chat("2")).expect("it is replaced");
    assert_eq!(store.load(&id("a")).expect("it is whole"), Some(chat("2")));
}

#[cfg(unix)]
#[test]
fn symlinks_are_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = folder.path().join("outside.json");
    std::fs::write(&outside, "[]").expect("a file");
    let store = FolderStore::open(folder.path().join("store")).expect("it is opened");
    std::os::unix::fs::symlink(&outside, folder.path().join("store/chat-a.json")).expect("a link");
    assert_eq!(store.list().expect("a list"), []);
    assert!(store.load(&id("a")).is_err() && store.save(&id("a"), &chat("1")).is_err());
    assert!(store.delete(&id("a")).is_err());
    assert_eq!(std::fs::read_to_string(&outside).expect("it is there"), "[]");
}
