//! Files of conversations: damaged, foreign and future ones, and writers that are killed or out of room.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lm_conversation::{Message, SavedConversation, SavedError, ToolSpec};
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
    }
}

fn written(folder: &Path) -> (std::path::PathBuf, String) {
    let path = folder.join("chat.json");
    conversation(3).write(&path).expect("it is written");
    let text = std::fs::read_to_string(&path).expect("it is there");
    (path, text)
}

#[test]
fn damaged_files_are_refused_as_a_whole() {
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
fn foreign_and_future_files_are_refused_with_the_place() {
    let error = |json: Value| SavedConversation::from_json(json).expect_err("it is refused").to_string();
    let later = json!({"version": 2, "messages": []});
    assert_eq!(error(later), "the file has version 2, this program reads up to 1");
    assert_eq!(error(json!({"a": 1})), "`messages` is missing or not an array");
    assert_eq!(error(json!(3)), "`messages` is missing or not an array");
    assert!(error(json!([{"role": "user", "content": "a"}, {}])).starts_with("`messages` 1 (from 0): "));
    assert!(error(json!({"messages": [], "tools": [{}]})).starts_with("`tools` 0 (from 0): "));
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
fn a_new_file_replaces_none() {
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
    let command = command.args(["child", "--exact", "--ignored"]).env(TARGET, target);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child process")
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_or_the_new_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = written(folder.path());
    let mut turns = Vec::new();
    for number in 0..200u64 {
        let mut child = writer(&mut Command::new(std::env::current_exe().expect("this test")), &path);
        std::thread::sleep(Duration::from_micros(2_000 + number * 7919 % 30_000));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let saved = SavedConversation::read(&path).expect("a whole file");
        let whole = saved.history.len() / 2;
        assert_eq!(saved, conversation(whole));
        turns.push(whole);
    }
    turns.dedup();
    println!("{} different files after 200 kills", turns.len());
    assert!(turns.len() > 10, "the children wrote files: {turns:?}");
}

/// A limit on the size of files stands for a full disk.
#[cfg(unix)]
#[test]
fn a_writer_without_room_leaves_the_old_file() {
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
