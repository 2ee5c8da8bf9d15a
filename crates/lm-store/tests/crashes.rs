//! `kill -9` of a program that writes.
//!
//! `LM_STORE_KILLS=200 cargo test -p lm-store --test integration -- crashes` kills it 200 times.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{conversation, open};
use lm_store::{Change, Message, Owner, Role, Store};

/// Folder of the store that [`writer`] writes to.
const FOLDER: &str = "LM_STORE_WRITER";

/// The program that is killed: it prints each message that is written, and never ends.
#[test]
#[ignore = "started by the test below"]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = open(Path::new(&folder));
    for turn in 0_usize.. {
        let mut talk = conversation(&format!("Talk {turn}"), &["a question"]);
        talk.messages[0].media = vec![format!("data:image/png;base64,{}", "A".repeat(turn % 7 * 3000))];
        store.apply(&Owner::local(), &talk.id, &Change::creating(&talk)).expect("is written");
        println!("\nwritten {} {}", talk.id, 1);
        let mut reply = Message::new(talk.messages.last(), Role::Assistant, "");
        for step in 0..20 {
            reply.content += &format!("word{step} ").repeat(1 + turn % 5 * 40);
            let change = Change { messages: vec![reply.clone()], ..Change::default() };
            store.apply(&Owner::local(), &talk.id, &change).expect("is written");
            println!("\nwritten {} {}", talk.id, 1 + reply.content.len());
        }
        if turn % 4 == 3 {
            store.delete(&Owner::local(), &talk.id).expect("is deleted");
            println!("\nwritten {} 0", talk.id);
        }
    }
}

/// Starts the writer, and kills it after this many microseconds and lines. Returns the last state of each
/// conversation that it has printed.
fn killed(folder: &Path, wait: Duration, lines: usize) -> Vec<(String, usize)> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["crashes::writer", "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut written: Vec<(String, usize)> = Vec::new();
    let mut seen = 0;
    for line in BufReader::new(child.stdout.take().expect("is piped")).lines() {
        let line = line.expect("a text");
        let Some((id, size)) = line.strip_prefix("written ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let Ok(size) = size.parse() else { continue };
        match written.last_mut().filter(|(last, _)| last == id) {
            Some(last) => last.1 = size,
            None => written.push((id.to_owned(), size)),
        }
        seen += 1;
        // Lines that were printed before the end are still read.
        if seen == lines {
            std::thread::sleep(wait);
            child.kill().expect("it runs");
        }
    }
    child.wait().expect("it ends");
    written
}

/// Size of a conversation as the writer prints it: 0 without one, 1 without a reply.
fn size(store: &Store, id: &str) -> usize {
    let found = store.get(&Owner::local(), id).expect("can be read");
    found.map_or(0, |talk| 1 + talk.messages.get(1).map_or(0, |reply| reply.content.len()))
}

#[test]
fn killed_writer_loses_nothing_that_was_written() {
    let kills = std::env::var("LM_STORE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3);
    let folder = tempfile::tempdir().expect("a folder");
    // Numbers without a pattern, the same in each run.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut all: Vec<(String, usize)> = Vec::new();
    for kill in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (lines, wait) = (1 + (random >> 40) as usize % 120, Duration::from_micros((random >> 20) % 3000));
        let written = killed(folder.path(), wait, lines);
        let store = open(folder.path());
        store.check().expect("is whole");
        let (last, before) = written.split_last().expect("something was written");
        all.extend_from_slice(before);
        for (id, expected) in &all {
            assert_eq!(size(&store, id), *expected, "kill {kill}: {id}");
        }
        // The last change may have been made without being printed.
        let now = size(&store, &last.0);
        assert!(now >= last.1 || now == 0, "kill {kill}: {now} of {}", last.1);
        all.push((last.0.clone(), now));
        let words = store.search(&Owner::local(), "word0", 10_000).expect("is searched");
        let replies = all.iter().filter(|(_, size)| *size > 1).count();
        assert!(words.len() >= replies.min(2000), "kill {kill}: {} of {replies}", words.len());
    }
}
