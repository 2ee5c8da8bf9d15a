//! Untrusted Markdown: the same HTML at every cut, no markup but the renderer's, and no control character on
//! a terminal.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_markdown::{Colours, HtmlStream, Piece, TerminalStream};

fuzz_target!(|input: &str| -> Corpus {
    let whole = html(&[input]);
    let middle = (input.len() / 2..=input.len()).find(|at| input.is_char_boundary(*at)).unwrap_or(0);
    let (start, end) = input.split_at(middle);
    assert_eq!(html(&[start, end]), whole);
    for tag in ["<script", "<img", "<style", "<iframe", "<svg", "<object", "<form", "<input"] {
        assert!(!whole.contains(tag), "{tag}");
    }
    let mut terminal = TerminalStream::new(20, Colours::None);
    let shown = [terminal.push(start), terminal.push(end), terminal.finish()].concat();
    assert!(shown.chars().all(|c| !c.is_control() || c == '\n'));
    Corpus::Keep
});

fn html(texts: &[&str]) -> String {
    let mut stream = HtmlStream::new();
    let mut pieces: Vec<Piece> = texts.iter().flat_map(|text| stream.push(text)).collect();
    pieces.extend(stream.finish());
    let text = |piece: &Piece| match piece {
        Piece::Html(html) | Piece::CodeLines(html) => html.clone(),
        Piece::CodeStart(_) => "[code]".to_owned(),
        Piece::CodeEnd => "[end]".to_owned(),
    };
    pieces.iter().map(text).collect()
}
