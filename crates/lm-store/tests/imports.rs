//! Imports: the format, and hostile files.

use crate::support::{add, conversation, get, store};
use lm_store::{Conversation, Error, Limits, Owner, read_lines};
use serde_json::{Value, json};

#[test]
fn exports_are_imported_as_they_were() {
    let (_folder, store) = store();
    let talks = [conversation("One", &["a", "b"]), conversation("Two", &["c"])];
    let lines: String = talks.iter().map(|talk| format!("{}\n\n", talk.to_json())).collect();
    for expected in [2, 0] {
        let read =
            read_lines(lines.as_bytes()).map(|talk| store.import(&Owner::local(), &talk.expect("is valid")));
        let added = read.filter_map(|id| id.expect("is imported")).count();
        assert_eq!(added, expected);
    }
    assert_eq!(talks.clone().map(|talk| get(&store, &talk.id)), talks);
    let mut other = talks[0].clone();
    other.messages[1].content = "changed".to_owned();
    let id = store.import(&Owner::local(), &other).expect("is imported").expect("is new");
    assert_ne!(id, other.id, "the kept one stays");
    assert_eq!(get(&store, &id).messages, other.messages);
    add(&store, &conversation("x", &["y"]));
}

#[test]
fn exports_of_the_page_are_read() {
    let talks = [conversation("One", &["a", "b"]), conversation("Two", &["c"])];
    let file = json!({"format": "lm-conversations", "version": 1, "conversations": talks.clone().map(|talk| talk.to_json())});
    for text in [file.to_string(), format!("{file:#}")] {
        let read: Vec<Conversation> =
            read_lines(text.as_bytes()).map(|talk| talk.expect("is valid")).collect();
        assert_eq!(read, talks);
    }
}

fn with(path: &str, value: Value) -> String {
    let mut talk = conversation("One", &["a", "b"]).to_json();
    let nodes = talk["nodes"].as_object().expect("nodes");
    let id = nodes.keys().next().expect("a message").clone();
    let path = path.replace("NODE", &format!("nodes/{id}"));
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", &path));
    let pointer = if parent.is_empty() { String::new() } else { format!("/{parent}") };
    talk.pointer_mut(&pointer).expect("a place")[key] = value;
    talk.to_string()
}

#[test]
fn faults_of_a_line_are_named_and_the_next_is_read() {
    for (line, expected) in [
        ("{".to_owned(), "line 1 is not JSON"),
        ("[1]".to_owned(), "conversation: expected an object, got [1]"),
        ("{\"conversations\": 3}".to_owned(), "conversations: expected an array, got 3"),
        ("\u{0}".to_owned(), "line 1 is not JSON"),
        (with("id", json!("../../etc/passwd")), "id: expected an id of 1 to 64"),
        (with("version", json!(2)), "version: expected 1, got 2"),
        (with("title", json!([])), "title: expected a text"),
        (with("created", json!("now")), "created: expected a number of ms"),
        (with("settings", json!(3)), "settings: expected an object, got 3"),
        (with("selected", json!({"a": 3})), "selected: expected ids, got 3"),
        (with("nodes", json!([])), "nodes: expected an object"),
        (with("nodes", json!({"a": 3})), "nodes.a: expected an object, got 3"),
        (
            with("nodes", json!({"a": {"id": "b", "role": "user", "content": ""}})),
            "nodes.a.id: expected the key",
        ),
        (with("NODE/role", json!("system")), ".role: expected user, assistant or tool, got \"system\""),
        (with("NODE/content", json!(null)), ".content: expected a text, got null"),
        (with("NODE/parent", json!("nobody")), ".parent: expected the id of a message"),
        (with("NODE/media", json!("x")), ".media: expected an array of data URLs"),
        (
            with("NODE/media", json!(["javascript:alert(1)"])),
            ".media[0]: expected a data URL of an image, audio or a text file",
        ),
        (with("NODE/media", json!(["data:text/html;base64,AA=="])), ".media[0]: expected a data URL"),
        (
            with("NODE/media", json!(vec!["data:image/png;base64,"; 65])),
            "65 images, audio clips and files, at most 64",
        ),
        (with("NODE/content", "x".repeat(Limits::CONTENT + 1).into()), "bytes, at most 8388608 are kept"),
        (with("NODE/extra", "x".repeat(Limits::FIELDS + 1).into()), "bytes of further fields, at most"),
        (with("settings/system", "x".repeat(Limits::SETTINGS + 1).into()), "settings: 1048590 bytes"),
        ("[".repeat(100_000), "line 1 is not JSON"),
    ] {
        // A first line that is cut might be a document of several lines.
        let is_cut = line.starts_with('[') && line.len() > 9 || line == "{";
        let good = conversation("Good", &["x"]).to_json();
        let text = if is_cut { line } else { format!("{line}\n{good}\n") };
        let mut lines = read_lines(text.as_bytes());
        let error = lines.next().expect("a line").expect_err("is invalid");
        let causes: Vec<_> = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source())
            .map(ToString::to_string)
            .collect();
        assert!(causes.iter().any(|cause| cause.contains(expected)), "{causes:?}: {expected}");
        assert!(causes.iter().all(|cause| cause.len() < 300), "short");
        if !is_cut {
            assert_eq!(lines.next().expect("a line").expect("is valid").title, "Good");
        }
        assert!(lines.next().is_none());
    }
}

#[test]
fn cycles_and_deep_trees_end() {
    let node = |id: &str, parent: &str| json!({"id": id, "parent": parent, "role": "user", "content": ""});
    for nodes in [
        json!({"a": node("a", "a")}),
        json!({"a": node("a", "b"), "b": node("b", "a")}),
        json!({"a": node("a", "b"), "b": node("b", "c"), "c": node("c", "a")}),
    ] {
        let error = Conversation::from_json(json!({"id": "c", "nodes": nodes})).expect_err("is refused");
        assert!(error.to_string().contains("reached from the start"), "{error}");
    }
    // In reverse order, and as deep as it may be.
    let count = Limits::MESSAGES;
    let id = |n: usize| format!("m{n}");
    let parent = |n: usize| if n == 0 { Value::Null } else { id(n - 1).into() };
    let node = |n| (id(n), json!({"id": id(n), "parent": parent(n), "role": "user", "content": "x"}));
    let nodes: serde_json::Map<String, Value> = (0..count).rev().map(node).collect();
    let talk = Conversation::from_json(json!({"id": "c", "nodes": nodes})).expect("is valid");
    assert_eq!(talk.path().len(), count);
    let (_folder, store) = store();
    add(&store, &talk);
    let removed = vec![id(1)];
    let change = lm_store::Change { removed, ..lm_store::Change::default() };
    store.apply(&Owner::local(), "c", &change).expect("is applied");
    assert_eq!(get(&store, "c").messages.len(), 1);
    let mut more = talk.to_json();
    more["nodes"]["z"] = json!({"id": "z", "parent": null, "role": "user", "content": "x"});
    let error = Conversation::from_json(more).expect_err("is refused");
    assert!(matches!(error, Error::TooLarge { size: 20_001, .. }), "{error}");
}

#[test]
fn large_media_are_dropped_and_counted() {
    let (_folder, store) = store();
    let (large, small) =
        (format!("data:image/png;base64,{}", "A".repeat(Limits::MEDIUM)), "data:audio/wav;base64,AA==");
    let talk = Conversation::from_json(
        serde_json::from_str(&with("NODE/media", json!([large, small]))).expect("JSON"),
    );
    let talk = talk.expect("is valid");
    assert_eq!((talk.messages[0].media.len(), talk.messages[0].dropped), (1, 1));
    add(&store, &talk);
    assert_eq!(get(&store, &talk.id), talk);
    let parts = with("NODE/parts", json!([{"type": "image_url", "image_url": {"url": large}}]));
    let talk = Conversation::from_json(serde_json::from_str(&parts).expect("JSON")).expect("is valid");
    assert_eq!((talk.messages[0].fields.get("parts"), talk.messages[0].dropped), (None, 1));
}

#[test]
fn times_in_the_future_are_now() {
    let talk = with("updated", json!(9e17));
    let talk = Conversation::from_json(serde_json::from_str(&talk).expect("JSON")).expect("is valid");
    assert!(talk.updated < 9_000_000_000_000, "{}", talk.updated);
}
