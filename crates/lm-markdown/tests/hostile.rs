//! Texts that attack the page, the terminal or the time.

use std::time::Duration;

use cpu_time::ThreadTime;
use lm_markdown::{Colours, Piece};

use crate::incremental::{html, terminal};

fn page(text: &str) -> String {
    let text_of = |piece: Piece| match piece {
        Piece::Html(html) | Piece::CodeLines(html) => html,
        Piece::CodeStart(_) | Piece::CodeEnd => String::new(),
    };
    html(&[text]).into_iter().map(text_of).collect()
}

#[test]
fn markup_stays_text() {
    for text in [
        "<script>window.hacked = 1</script>",
        "a <script>window.hacked = 1</script> b",
        "<img src=x onerror=\"window.hacked = 1\">",
        "<style>*{display:none}</style> end",
        "<div style=\"position:fixed\">x</div>",
        "<iframe src=\"https://example.com\"></iframe>",
        "<svg><script>1</script></svg>",
        "<math><mtext><img src=x onerror=1></mtext></math>",
        "<br onclick=x>",
        "<b onclick=x>y</b>",
        "`<script>`",
        "```\n<script>\n```",
        "```<script>\nx\n```",
        "| <script> |\n|---|\n| <img src=x> |",
        "$<script>$ and $\\text{<script>alert(1)</script>}$",
        "[<script>](https://example.com/<script>)",
        "![<img src=x>](https://example.com)",
        "[^<script>]: x",
        "\\href{javascript:x}{y} $\\href{javascript:alert(1)}{y}$ $\\style{color:red}{x}$",
    ] {
        let html = page(text);
        for tag in ["<script", "<img", "<style", "<iframe", "<svg", " style=", " onclick", " onerror", " src"]
        {
            // Escaped text has no `<` and its quotes are escaped.
            let found = html.match_indices(tag).any(|(at, _)| is_markup(&html, at));
            assert!(!found, "{text}\n{html}");
        }
    }
}

/// Returns true if the text at `at` is within a tag.
fn is_markup(html: &str, at: usize) -> bool {
    html[at..].starts_with('<') || html[..at].rfind('<') > html[..at].rfind('>')
}

#[test]
fn only_addresses_of_the_web_are_links() {
    let text = "[a](javascript:window.hacked=1) [b](data:text/html,x) [c](//other.example) [d](vbscript:x) \
                [e](JaVaScRiPt:x) [f](java\tscript:x) [g](&#106;avascript:x) ![h](javascript:x) <javascript:x> \
                [i]( javascript:x) [j](file:///etc/passwd) [k](/relative) [l](#top)";
    let html = page(text);
    assert!(!html.contains("<a "), "{html}");
    let html =
        page("<https://ok.example/> [x](https://ok.example/?a=\"b\") https://ok.example/path). mailto:x");
    assert_eq!(html.matches("<a href=\"https://ok.example/").count(), 3, "{html}");
    assert!(html.contains("rel=\"noopener noreferrer\""), "{html}");
    assert!(html.contains(">https://ok.example/path</a>)."), "{html}");
}

#[test]
fn text_controls_neither_terminal_nor_direction() {
    for text in [
        "a\x1b[2Jb\u{9b}1m\x07",
        "`\x1b]0;x\x07`",
        "```\n\x1b[2J\u{202e}x\n```",
        "x \u{202e}evil\u{2066}",
        "&#27;[2J &#x9b;2J &#8238;x",
    ] {
        let shown = terminal(&[text], 80, Colours::None);
        assert!(shown.chars().all(|c| !c.is_control() || c == '\n'), "{shown:?}");
        let deceptive = ['\u{202e}', '\u{2066}', '\x1b'];
        assert!(!shown.contains(deceptive), "{shown:?}");
        assert!(!page(text).contains(deceptive), "{text:?}");
    }
}

#[test]
fn no_text_takes_long() {
    let quotes = "> ".repeat(10_000) + "deep";
    let mut texts = vec![quotes.clone(), format!("{quotes}\n{quotes}"), "x".repeat(200_000)];
    for piece in [
        "[",
        "![",
        "*",
        "**",
        "_",
        "_a ",
        "`",
        "`a",
        "``a` ",
        "> ",
        "- ",
        "1. ",
        "|",
        "h",
        "](",
        "\\",
        "\\(",
        "\\[",
        "\\)",
        "# ",
        "<http",
        "<a ",
        "<!--",
        "&",
        "&a b c d e f g h ",
        "°",
        "$",
        "$$",
        "$a",
        "~~",
        "a\n",
        "```\n",
        "~~~\na\n",
        "|a|\n|-|\n",
        "|a",
        "[^1]",
        "[^1]: ",
        "https://",
        "(",
        "https://a)",
        "- a\n\n",
        "- a\n  ",
        "  - ",
        "\\[\n- \n\n",
        "\u{202e}",
        "語",
        "é ",
        "{",
        "$\\frac$ ",
        "<b>",
        "*a **b ",
        "\\(x\\) ",
        "\t",
        "\n\n",
    ] {
        texts.push(piece.repeat(100_000 / piece.len()));
    }
    for text in &texts {
        let name: String = text.chars().take(12).collect();
        let began = ThreadTime::now();
        let html = page(text);
        let shown = terminal(&[text], 80, Colours::Ansi);
        let time = began.elapsed();
        println!("{name:?}: {time:?}");
        // Linear work takes far below a second even without optimisation; quadratic work minutes.
        assert!(time < Duration::from_secs(60), "{name:?}: {time:?}");
        assert!(html.len() < 40 * text.len() + 1000, "{name:?}: {} bytes of HTML", html.len());
        assert!(shown.len() < 60 * text.len() + 1000, "{name:?}: {} bytes of text", shown.len());
    }
}

#[test]
fn deep_nesting_keeps_the_text() {
    let deep = "> ".repeat(10_000) + "deep";
    assert!(page(&deep).contains("deep") && page(&deep).matches("<blockquote").count() <= 24);
    let items: String = (0..200).map(|depth| format!("{}- item{depth}\n", "  ".repeat(depth))).collect();
    let shown = terminal(&[&items], 60, Colours::None);
    assert!((0..200).all(|depth| shown.contains(&format!("item{depth}"))), "{shown}");
    let emphasis = "*a ".repeat(1000) + &"b* ".repeat(1000);
    assert!(page(&emphasis).contains('b'));
}
