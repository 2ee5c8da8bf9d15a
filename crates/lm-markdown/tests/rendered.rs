//! The replies as HTML and as terminal text, and a long one.

use lm_markdown::{Colours, Piece};

use crate::incremental::{html, terminal};
use crate::replies::REPLIES;

#[test]
fn replies_are_html() {
    let mut out = String::new();
    for (name, text) in REPLIES {
        out.push_str(&format!("=== {name}\n"));
        for piece in html(&[text]) {
            match piece {
                Piece::Html(html) => out.push_str(&html),
                Piece::CodeStart(language) => out.push_str(&format!("[code {language}]")),
                Piece::CodeLines(lines) => out.push_str(&lines),
                Piece::CodeEnd => out.push_str("[end]"),
            }
            out.push('\n');
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn replies_are_terminal_text() {
    let mut out = String::new();
    for (name, text) in REPLIES {
        out.push_str(&format!("=== {name}\n{}\n", terminal(&[text], 60, Colours::None)));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn lines_fit_the_width() {
    use unicode_width::UnicodeWidthStr;
    for (name, text) in REPLIES {
        // Code is as it is.
        if text.contains("```") || text.contains("    ") {
            continue;
        }
        for width in [20, 33, 60, 100] {
            for line in terminal(&[text], width, Colours::None).lines() {
                assert!(line.width() <= width, "{name} at {width}: {line:?}");
            }
        }
    }
}

#[test]
fn styles_are_codes_that_end_with_each_word() {
    let shown = terminal(
        &["# Big\n\n**two words** `x` ~~y~~ $a$\n\n```rust\nlet x = \"s\"; // c\n```"],
        80,
        Colours::Ansi,
    );
    for expected in [
        "\x1b[1;4mBig\x1b[0m",
        "\x1b[1mtwo\x1b[0m \x1b[1mwords\x1b[0m",
        "\x1b[36mx\x1b[0m",
        "\x1b[9my\x1b[0m",
        "\x1b[3ma\x1b[0m",
        "\x1b[35mlet\x1b[0m",
        "\x1b[2m// c\x1b[0m",
    ] {
        assert!(shown.contains(expected), "{expected:?} in {shown:?}");
    }
}

#[test]
fn long_reply_is_complete() {
    let text: String = REPLIES.iter().map(|(_, text)| format!("{text}\n\n~~~\n~~~\n\n")).collect();
    let long = text.repeat(200_000 / text.len() + 1);
    assert!(long.len() > 200_000);
    let count = long.matches("Donaudampf").count();
    let shown = terminal(&[&long], 200, Colours::None);
    assert_eq!(shown.matches("Donaudampf").count(), count);
    let html = format!("{:?}", html(&[&long]));
    assert_eq!(html.matches("Donaudampf").count(), count);
}
