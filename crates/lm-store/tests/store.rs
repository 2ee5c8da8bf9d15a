//! Changes, lists, trees, owners.

use crate::support::{add, conversation, get, store};
use lm_store::{Change, Error, Message, Owner, Role, Store};
use serde_json::json;

#[test]
fn conversations_are_kept_as_they_are() {
    let (folder, store) = store();
    let mut talk = conversation("A title", &["one", "two", "three"]);
    talk.settings = json!({"model": "m", "system": "Be brief."}).as_object().expect("an object").clone();
    let file = "data:text/plain;name=a%20b.txt;base64,SGVsbG8=";
    talk.messages[0].media = ["data:image/png;base64,iVBORw0KGgo=", file].map(str::to_owned).to_vec();
    talk.messages[1].fields =
        json!({"reasoning": "Hm.", "calls": [{"id": "1"}]}).as_object().expect("one").clone();
    let branch = Message::new(Some(&talk.messages[0]), Role::Assistant, "another two\0");
    talk.selected.insert(talk.messages[0].id.clone(), talk.messages[1].id.clone());
    talk.messages.push(branch);
    add(&store, &talk);
    assert_eq!(get(&store, &talk.id), talk);
    drop(store);
    let store = crate::support::open(folder.path());
    assert_eq!(get(&store, &talk.id), talk);
    let path: Vec<_> = talk.path().into_iter().map(|message| message.content.as_str()).collect();
    assert_eq!(path, ["one", "two", "three"]);
    let json = talk.to_json();
    assert_eq!(lm_store::Conversation::from_json(json.clone()).expect("is valid").to_json(), json);
}

#[test]
fn changes_add_replace_and_remove() {
    let (_folder, store) = store();
    let mut talk = conversation("A title", &["one", "two", "three", "four"]);
    add(&store, &talk);
    talk.messages[3].content = "four and more".to_owned();
    let fifth = Message::new(Some(&talk.messages[3]), Role::User, "five");
    let change = Change { messages: vec![fifth.clone(), talk.messages[3].clone()], ..Change::default() };
    store.apply(&Owner::local(), &talk.id, &change).expect("is applied");
    talk.messages.push(fifth);
    assert_eq!(get(&store, &talk.id).messages, talk.messages);
    let removed = vec![talk.messages[2].id.clone()];
    store.apply(&Owner::local(), &talk.id, &Change { removed, ..Change::default() }).expect("is applied");
    assert_eq!(get(&store, &talk.id).messages, talk.messages[..2]);
    assert_eq!(store.search(&Owner::local(), "four", 9).expect("is searched"), []);
    let change = Change { title: Some("Renamed\nto this".to_owned()), ..Change::default() };
    store.apply(&Owner::local(), &talk.id, &change).expect("is applied");
    assert_eq!(get(&store, &talk.id).title, "Renamed");
    assert_eq!(store.search(&Owner::local(), "title", 9).expect("is searched"), []);
    assert!(store.delete(&Owner::local(), &talk.id).expect("is deleted"));
    assert!(!store.delete(&Owner::local(), &talk.id).expect("is not there"));
    assert_eq!(store.search(&Owner::local(), "one", 9).expect("is searched"), []);
}

#[test]
fn refused_changes_change_nothing() {
    let (_folder, store) = store();
    let talk = conversation("A title", &["one", "two"]);
    add(&store, &talk);
    let apply = |change: &Change| store.apply(&Owner::local(), &talk.id, change).expect_err("is refused");
    let orphan = Message { parent: Some("nobody".to_owned()), ..Message::new(None, Role::User, "x") };
    let good = Message::new(Some(&talk.messages[1]), Role::User, "y");
    let error =
        apply(&Change { title: Some("Other".to_owned()), messages: vec![good, orphan], ..Change::default() });
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    let moved = Message { parent: None, ..talk.messages[1].clone() };
    let error = apply(&Change { messages: vec![moved], ..Change::default() });
    assert!(matches!(&error, Error::Invalid { at, .. } if at.ends_with(".parent")), "{error}");
    let [mut a, mut b] = [0, 1].map(|_| Message::new(None, Role::User, "x"));
    (a.parent, b.parent) = (Some(b.id.clone()), Some(a.id.clone()));
    let error = apply(&Change { messages: vec![a, b], ..Change::default() });
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert_eq!(get(&store, &talk.id), talk);
    let error = store.apply(&Owner::local(), "c1", &Change::default()).expect_err("is not there");
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    for id in ["", "a/b", "ü", &"x".repeat(65)] {
        let change = Change { create: true, ..Change::default() };
        assert!(matches!(store.apply(&Owner::local(), id, &change), Err(Error::Invalid { .. })), "{id}");
    }
}

#[test]
fn lists_are_in_order_of_change_and_paged() {
    let (_folder, store) = store();
    let mut talks: Vec<_> = (0..5).map(|n| conversation(&format!("Talk {n}"), &["one", "two"])).collect();
    for (n, talk) in talks.iter_mut().enumerate() {
        (talk.created, talk.updated) = (n as i64, 100 + n as i64);
        add(&store, talk);
    }
    let change = Change { updated: Some(200), ..Change::default() };
    store.apply(&Owner::local(), &talks[1].id, &change).expect("is applied");
    let titles = |limit, offset| -> Vec<String> {
        let list = store.list(&Owner::local(), limit, offset).expect("a list");
        list.into_iter().map(|summary| format!("{} {}", summary.title, summary.messages)).collect()
    };
    assert_eq!(titles(2, 0), ["Talk 1 2", "Talk 4 2"]);
    assert_eq!(titles(9, 3), ["Talk 2 2", "Talk 0 2"]);
    assert_eq!(store.count(&Owner::local()).expect("a number"), 5);
}

#[test]
fn owners_see_their_own_only() {
    let (_folder, store) = store();
    let (mine, other) = (Owner::of_key(&[1; 32]), Owner::of_key(&[2; 32]));
    let talk = conversation("Secret", &["password"]);
    store.apply(&mine, &talk.id, &Change::creating(&talk)).expect("is added");
    for stranger in [&other, &Owner::local()] {
        assert_eq!(store.get(stranger, &talk.id).expect("can be read"), None);
        assert_eq!(store.list(stranger, 9, 0).expect("a list"), []);
        assert_eq!(store.search(stranger, "password", 9).expect("is searched"), []);
        assert_eq!(store.search(stranger, "secret", 9).expect("is searched"), []);
        assert!(matches!(store.find(stranger, "Secret"), Err(Error::Unknown { .. })));
        assert!(!store.delete(stranger, &talk.id).expect("is not there"));
        assert!(store.apply(stranger, &talk.id, &Change::default()).is_err());
    }
    assert_eq!(store.find(&mine, "Secret").expect("is found"), talk.id);
    // The same id of another owner is another conversation.
    store.apply(&other, &talk.id, &Change::creating(&conversation("Own", &["x"]))).expect("is added");
    assert_eq!(store.get(&mine, &talk.id).expect("can be read"), Some(talk));
}

#[test]
fn names_are_ids_titles_or_parts_of_titles() {
    let (_folder, store) = store();
    let titles = ["Sky", "Sky and sea", "Über alles", "Sky"];
    let talks = titles.map(|title| conversation(title, &["x"]));
    for (n, talk) in talks.iter().enumerate() {
        add(&store, &lm_store::Conversation { updated: n as i64, created: 0, ..talk.clone() });
    }
    let find = |name: &str| store.find(&Owner::local(), name);
    assert_eq!(find(&talks[1].id).expect("an id"), talks[1].id);
    assert_eq!(find("Sky").expect("the newest"), talks[3].id);
    assert_eq!(find("AND SEA").expect("a part"), talks[1].id);
    assert_eq!(find("über").expect("a part"), talks[2].id);
    let error = find("sky").expect_err("is in three");
    assert!(matches!(error, Error::Ambiguous { count: 3, .. }), "{error}");
    for none in ["", " ", "nothing", "%", "' OR 1 = 1 --"] {
        assert!(matches!(find(none), Err(Error::Unknown { .. })), "{none}");
    }
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("new/folder/a.db")).expect("it opens");
    add(&store, &conversation("A", &["one"]));
    for name in ["", "a.db", "a.db-wal", "a.db-shm"] {
        let path = folder.path().join("new/folder").join(name);
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
}

#[test]
fn deleted_text_is_overwritten() {
    let (folder, store) = store();
    let talk = conversation("Xylophone", &["quetzalcoatl zirconium"]);
    add(&store, &talk);
    store.delete(&Owner::local(), &talk.id).expect("is deleted");
    drop(store);
    let bytes = std::fs::read(folder.path().join("conversations.db")).expect("it is there");
    for word in ["quetzalcoatl zirconium", "Xylophone"] {
        assert!(!bytes.windows(word.len()).any(|part| part == word.as_bytes()), "{word}");
    }
}
