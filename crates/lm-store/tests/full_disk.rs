//! A disk that is full: SQLite's limit of pages, and a real small file system where a folder of one is given.

use std::path::Path;

use crate::support::{conversation, get, open};
use lm_store::{Change, Error, Owner, Store};

/// Fills the store until it is full; all that was acknowledged must be there.
fn fill(folder: &Path, store: &Store) {
    let mut kept = Vec::new();
    let error = loop {
        let talk = conversation(&format!("Talk {}", kept.len()), &["one", &"two words ".repeat(3000)]);
        match store.apply(&Owner::local(), &talk.id, &Change::creating(&talk)) {
            Ok(()) => kept.push(talk),
            Err(error) => break error,
        }
        assert!(kept.len() < 10_000, "the disk is never full");
    };
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert_eq!(error.to_string(), "the disk is full");
    assert!(!kept.is_empty());
    let reopened = open(folder);
    for store in [store, &reopened] {
        assert_eq!(store.count(&Owner::local()).expect("a number"), kept.len());
        for talk in &kept {
            assert_eq!(get(store, &talk.id), *talk);
        }
    }
    // There is room again after a deletion.
    for talk in &kept[..kept.len().min(3)] {
        assert!(reopened.delete(&Owner::local(), &talk.id).expect("is deleted"));
    }
}

#[test]
fn full_database_keeps_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    store.limit_size(1600 << 10).expect("is limited");
    fill(folder.path(), &store);
}

/// `LM_FULL_DISK=FOLDER cargo test -p lm-store --test integration -- full_disk`, with a folder of a small
/// file system, such as `mount -t tmpfs -o size=2M tmpfs FOLDER`.
#[test]
fn full_file_system_keeps_what_it_has() {
    let Some(folder) = std::env::var_os("LM_FULL_DISK") else {
        println!("skipped: no LM_FULL_DISK, a folder of a small file system");
        return;
    };
    let folder = Path::new(&folder);
    fill(folder, &open(folder));
}
