//! Time of one update of a reply that streams: `cargo bench -p lm-markdown`.
#![allow(missing_docs, reason = "a program")]

use std::time::{Duration, Instant};

use lm_markdown::{Colours, HtmlStream, TerminalStream};

/// Length of the reply before the measured updates, in bytes.
const BYTES: usize = 50_000;
const UPDATES: usize = 200;
/// A token of a reply.
const PIECE: usize = 5;

fn main() {
    let mixed = "## Title\n\nSome *text* with `code`, $x^2$ and a [link](https://example.com).\n\n- one\n- two\n\n\
                 | a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() { println!(\"{}\", 1); }\n```\n\n";
    let code = "```rust\nlet value = compute(1, \"two\"); // and a comment\n";
    let line = &code["```rust\n".len()..];
    for (name, text) in [
        ("mixed", mixed.repeat(BYTES / mixed.len() + 20)),
        ("one code block", format!("{code}{}", line.repeat(BYTES / line.len() + 20))),
        ("one list", "- an item with some *text* in it\n".repeat(BYTES / 33 + 40)),
        ("one paragraph", "some words with *text* and `code` ".repeat(BYTES / 34 + 40)),
    ] {
        let mut stream = HtmlStream::new();
        let page = updates(&text, |piece| {
            let pieces = stream.push(piece);
            pieces.len() + stream.open().len()
        });
        let mut terminal = TerminalStream::new(100, Colours::Ansi);
        let terminal = updates(&text, |piece| terminal.push(piece).len());
        println!("{name}: page {page:?}, terminal {terminal:?} an update at {BYTES} bytes (median, largest)");
    }
    let mut stream = HtmlStream::new();
    let began = Instant::now();
    let text = mixed.repeat(200_000 / mixed.len());
    let pieces = stream.push(&text).len() + stream.finish().len();
    println!("whole: {pieces} pieces of {} bytes in {:?}", text.len(), began.elapsed());
}

/// Median and largest time of an update.
fn updates(text: &str, mut update: impl FnMut(&str) -> usize) -> (Duration, Duration) {
    let cut = |at: usize| (at..).find(|at| text.is_char_boundary(*at)).unwrap_or(at);
    update(&text[..cut(BYTES)]);
    let mut times: Vec<Duration> = (0..UPDATES)
        .map(|index| {
            let at = BYTES + index * PIECE;
            let began = Instant::now();
            std::hint::black_box(update(&text[cut(at)..cut(at + PIECE)]));
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[UPDATES / 2], times[UPDATES - 1])
}
