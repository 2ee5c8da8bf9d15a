//! Databases of other versions and other programs.

use std::path::Path;

use crate::support::{add, conversation, store};
use lm_store::{Error, Store};
use rusqlite::Connection;

/// Opens a file that must be refused, and checks that it is unchanged.
fn refused(path: &Path) -> Error {
    let before = std::fs::read(path).expect("it is there");
    let error = Store::open(path).expect_err("is refused");
    assert_eq!(std::fs::read(path).expect("it is there"), before, "{error}");
    error
}

#[test]
fn newer_database_is_left_as_it_is() {
    let (folder, store) = store();
    add(&store, &conversation("A", &["one"]));
    drop(store);
    let path = folder.path().join("conversations.db");
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch("PRAGMA user_version = 7; CREATE TABLE later (x)").expect("is changed");
    drop(connection);
    let error = refused(&path);
    assert!(matches!(error, Error::Newer { found: 7, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("has version 7, this program reads up to 1"), "{error}");
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1, "no further files: {names:?}");
}

#[test]
fn other_files_are_left_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    for text in ["no database at all, but a text of some length".repeat(50), "short".to_owned()] {
        std::fs::write(&path, text).expect("can be written");
        let error = refused(&path);
        assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    }
    std::fs::remove_file(&path).expect("it is there");
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch("CREATE TABLE prices (x)").expect("is changed");
    drop(connection);
    assert!(matches!(refused(&path), Error::Foreign { .. }));
    let below = path.join("b.db");
    assert!(matches!(Store::open(below), Err(Error::Open { .. })));
    assert!(Store::open(folder.path()).is_err(), "a folder is no file");
}

#[test]
fn damaged_database_is_an_error() {
    let (folder, store) = store();
    for n in 0..20 {
        add(&store, &conversation(&format!("Talk {n}"), &["one", &"two ".repeat(2000)]));
    }
    drop(store);
    let path = folder.path().join("conversations.db");
    let mut bytes = std::fs::read(&path).expect("it is there");
    let len = bytes.len();
    bytes[4096..len - 4096].fill(0x5a);
    std::fs::write(&path, bytes).expect("can be written");
    let read = || -> lm_store::Result<()> {
        let store = Store::open(&path)?;
        let owner = lm_store::Owner::local();
        for summary in store.list(&owner, 100, 0)? {
            store.get(&owner, &summary.id)?;
        }
        Ok(())
    };
    let error = read().expect_err("is damaged");
    assert!(matches!(error, Error::Damaged(_)), "{error:?}");
}

#[test]
fn two_programs_create_one_database() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..4).map(|_| scope.spawn(|| Store::open(&path).map(drop))).collect();
            for one in opened {
                one.join().expect("no panic").expect("it opens");
            }
        });
    }
}
