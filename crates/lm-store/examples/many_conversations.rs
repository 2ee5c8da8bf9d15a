//! Times of a store of many conversations: `cargo run --release -p lm-store --example many_conversations`.
//!
//! Prints a row for each operation: the median and the largest time of 30 runs.

use std::time::{Duration, Instant};

use lm_store::{Change, Conversation, Message, Owner, Role, Store};

/// Conversations, and messages of each.
const SIZE: (usize, usize) = (10_000, 12);
/// Words of each message.
const WORDS: usize = 80;

fn main() -> lm_store::Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("conversations.db");
    let store = Store::open(&path)?;
    let owner = Owner::local();
    let began = Instant::now();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut last = String::new();
    for n in 0..SIZE.0 {
        let talk = conversation(n, &mut random);
        store.apply(&owner, &talk.id, &Change::creating(&talk))?;
        last = talk.id;
    }
    println!("{} conversations of {} messages in {:.1} s", SIZE.0, SIZE.1, began.elapsed().as_secs_f64());
    drop(store);
    let began = Instant::now();
    let store = Store::open(&path)?;
    println!("{:36} {:>9.2} ms", "open", ms(began.elapsed()));
    time("list of 200", || store.list(&owner, 200, 0).map(|list| list.len()))?;
    time("list of all", || store.list(&owner, usize::MAX, 0).map(|list| list.len()))?;
    for (name, query) in [
        ("search: one conversation", "needle777"),
        ("search: two common words", "word7 word11"),
        ("search: in every message", "common"),
        ("search: beginning of a word", "wor"),
        ("search: nothing", "absent"),
    ] {
        time(name, || store.search(&owner, query, 200).map(|found| found.len()))?;
    }
    time("read a conversation", || {
        store.get(&owner, &last).map(|talk| talk.map_or(0, |talk| talk.messages.len()))
    })?;
    let mut parent = store.get(&owner, &last)?.and_then(|talk| talk.messages.last().cloned());
    time("add a message", || {
        let message = Message::new(parent.as_ref(), Role::User, "one more common message");
        let change = Change { messages: vec![message.clone()], ..Change::default() };
        parent = Some(message);
        store.apply(&owner, &last, &change).map(|()| 1)
    })?;
    time("find by a part of the title", || store.find(&owner, "title 9876").map(|_| 1))?;
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    println!("{:36} {:>9.1} MB", "size of the file", bytes as f64 / 1e6);
    Ok(())
}

fn conversation(n: usize, random: &mut u64) -> Conversation {
    let mut talk = Conversation::new(&format!("A title {n}"));
    for index in 0..SIZE.1 {
        let mut text = format!("common needle{n} ");
        for _ in 0..WORDS {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few words are frequent, most are rare.
            let rank = (random.leading_zeros() + 1) * ((*random >> 33) % 97) as u32;
            text += &format!("word{rank} ");
        }
        let role = if index % 2 == 0 { Role::User } else { Role::Assistant };
        let message = Message::new(talk.messages.last(), role, text);
        talk.messages.push(message);
    }
    talk
}

/// Runs an operation 30 times, and prints the median and the largest time, and the size of its result.
fn time(name: &str, mut run: impl FnMut() -> lm_store::Result<usize>) -> lm_store::Result<()> {
    let mut times = Vec::new();
    let mut size = 0;
    for _ in 0..30 {
        let began = Instant::now();
        size = run()?;
        times.push(began.elapsed());
    }
    times.sort();
    println!("{name:36} {:>9.2} ms, at most {:>8.2} ms, {size} results", ms(times[15]), ms(times[29]));
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
