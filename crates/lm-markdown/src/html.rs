//! HTML of a document.

use crate::characters::visible;
use crate::code::{Highlighter, Token};
use crate::document::{Alignment, Block, Inline, Item};
use crate::formula;

/// Longest address of a link that is found in text.
const MAX_ADDRESS: usize = 2_000;
/// Bytes of text after which [`BETWEEN_TEXTS`] begins another node: for each `&` and each character from
/// U+0080 to U+00BF the serializer of html5ever (0.40, `write_escaped`) searches the rest of its node.
const LONGEST_TEXT: usize = 4_096;
const BETWEEN_TEXTS: &str = "<span></span>";

/// HTML of blocks, not yet sanitised.
pub(crate) fn blocks(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        push_block(block, &mut out);
    }
    out
}

/// HTML of a line of code.
pub(crate) fn push_code(pieces: &[(Token, &str)], out: &mut String) {
    for (token, text) in pieces {
        match class(*token) {
            Some(class) => {
                out.extend(["<span class=\"", class, "\">"]);
                escape(text, out);
                out.push_str("</span>");
            }
            None => escape(text, out),
        }
    }
}

/// Class of a kind of code, which the page's style sheet colours.
pub(crate) fn class(token: Token) -> Option<&'static str> {
    Some(match token {
        Token::Plain => return None,
        Token::Comment => "c-comment",
        Token::Constant => "c-constant",
        Token::Deleted => "c-deleted",
        Token::Function => "c-function",
        Token::Inserted => "c-inserted",
        Token::Keyword => "c-keyword",
        Token::String => "c-string",
        Token::Type => "c-type",
    })
}

fn push_block(block: &Block, out: &mut String) {
    match block {
        Block::Heading { level, content } => {
            // The page has its own heading above them.
            let tag = format!("h{}", (level + 1).min(6));
            element(&tag, " dir=\"auto\"", out, |out| inlines(content, true, out));
        }
        Block::Paragraph(content) => element("p", " dir=\"auto\"", out, |out| inlines(content, true, out)),
        Block::Plain(content) => inlines(content, true, out),
        Block::Code { language, text } => code(language, text, out),
        Block::List { start, items } => list(*start, items, out),
        Block::Quote(inner) => element("blockquote", " dir=\"auto\"", out, |out| push_blocks(inner, out)),
        Block::Table { alignments, head, rows } => table(alignments, head, rows, out),
        Block::Rule => out.push_str("<hr>"),
        Block::Footnote { label, blocks } => element("div", " class=\"footnote\" dir=\"auto\"", out, |out| {
            element("sup", "", out, |out| escape(label, out));
            push_blocks(blocks, out);
        }),
    }
}

fn push_blocks(blocks: &[Block], out: &mut String) {
    blocks.iter().for_each(|block| push_block(block, out));
}

fn element(tag: &str, attributes: &str, out: &mut String, content: impl FnOnce(&mut String)) {
    out.extend(["<", tag, attributes, ">"]);
    content(out);
    out.extend(["</", tag, ">"]);
}

fn code(language: &str, text: &str, out: &mut String) {
    out.push_str("<div class=\"code\"><div class=\"code-head\"><span>");
    escape(if language.is_empty() { "text" } else { language }, out);
    out.push_str("</span></div><pre><code>");
    let mut highlighter = Highlighter::new(language);
    for line in text.split_inclusive('\n') {
        push_code(&highlighter.line(line), out);
    }
    out.push_str("</code></pre></div>");
}

fn list(start: Option<u64>, items: &[Item], out: &mut String) {
    let (tag, attributes) = match start {
        None => ("ul", String::new()),
        Some(1) => ("ol", String::new()),
        Some(start) => ("ol", format!(" start=\"{start}\"")),
    };
    element(tag, &attributes, out, |out| {
        for Item { task, blocks } in items {
            let class = if task.is_some() { " class=\"task\" dir=\"auto\"" } else { " dir=\"auto\"" };
            element("li", class, out, |out| {
                match task {
                    Some(true) => {
                        out.push_str("<span class=\"box\" role=\"img\" aria-label=\"done\">☑</span> ")
                    }
                    Some(false) => {
                        out.push_str("<span class=\"box\" role=\"img\" aria-label=\"to do\">☐</span> ")
                    }
                    None => {}
                }
                push_blocks(blocks, out);
            });
        }
    });
}

fn table(alignments: &[Alignment], head: &[Vec<Inline>], rows: &[Vec<Vec<Inline>>], out: &mut String) {
    let row = |tag: &str, cells: &[Vec<Inline>], out: &mut String| {
        element("tr", "", out, |out| {
            for (column, cell) in cells.iter().enumerate() {
                let side = match alignments.get(column).copied().unwrap_or_default() {
                    Alignment::Left => " class=\"align-left\" dir=\"auto\"",
                    Alignment::Center => " class=\"align-center\" dir=\"auto\"",
                    Alignment::Right => " class=\"align-right\" dir=\"auto\"",
                };
                element(tag, side, out, |out| inlines(cell, true, out));
            }
        });
    };
    out.push_str("<div class=\"table\"><table>");
    element("thead", "", out, |out| row("th", head, out));
    element("tbody", "", out, |out| rows.iter().for_each(|cells| row("td", cells, out)));
    out.push_str("</table></div>");
}

fn inlines(content: &[Inline], with_links: bool, out: &mut String) {
    let is_display = |at: Option<usize>| {
        let inline = at.and_then(|at| content.get(at));
        matches!(inline, Some(Inline::Formula { display: true, .. }))
    };
    for (at, inline) in content.iter().enumerate() {
        match inline {
            // A formula of its own line has line breaks around it.
            Inline::SoftBreak if is_display(at.checked_sub(1)) || is_display(Some(at + 1)) => {}
            Inline::Text(text) if with_links => linked(text, out),
            Inline::Text(text) => escape(text, out),
            Inline::Code(text) => element("code", "", out, |out| escape(text, out)),
            Inline::Formula { tex, display } => push_formula(tex, *display, out),
            Inline::Emphasis(inner) => element("em", "", out, |out| inlines(inner, with_links, out)),
            Inline::Strong(inner) => element("strong", "", out, |out| inlines(inner, with_links, out)),
            Inline::Strike(inner) => element("del", "", out, |out| inlines(inner, with_links, out)),
            Inline::Link { address, content } => link(address, content, with_links, out),
            Inline::Tag(name) => out.extend(["<", *name, ">"]),
            Inline::Footnote(label) => element("sup", " class=\"footnote\"", out, |out| escape(label, out)),
            Inline::Break => out.push_str("<br>"),
            Inline::SoftBreak => out.push('\n'),
        }
    }
}

fn push_formula(tex: &str, display: bool, out: &mut String) {
    match formula::mathml(tex, display) {
        Some(mathml) if display => element("span", " class=\"formula\"", out, |out| out.push_str(&mathml)),
        Some(mathml) => out.push_str(&mathml),
        None => element("code", "", out, |out| escape(tex, out)),
    }
}

/// Link of an address of http, https or mailto; another address is shown as text.
fn link(address: &str, content: &[Inline], with_links: bool, out: &mut String) {
    if with_links && is_safe(address) {
        out.push_str("<a href=\"");
        escape(address, out);
        out.push_str("\">");
        match content.is_empty() {
            true => escape(address, out),
            false => inlines(content, false, out),
        }
        out.push_str("</a>");
        return;
    }
    out.push('[');
    inlines(content, false, out);
    out.push_str("](");
    escape(address, out);
    out.push(')');
}

pub(crate) fn is_safe(address: &str) -> bool {
    let scheme = address.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_known = ["http", "https", "mailto"].contains(&scheme.as_str());
    is_known && address.len() > scheme.len() + 1 && address.len() <= MAX_ADDRESS
}

/// Text whose bare addresses are links.
fn linked(text: &str, out: &mut String) {
    let mut rest = text;
    let mut before = ' ';
    while let Some(at) = rest.find("http") {
        let (head, tail) = rest.split_at(at);
        escape(head, out);
        before = head.chars().next_back().unwrap_or(before);
        let address = bare_address(tail).filter(|_| !before.is_alphanumeric());
        let taken = address.map_or(4, str::len);
        match address {
            Some(address) => link(address, &[], true, out),
            None => out.push_str("http"),
        }
        before = tail[..taken].chars().next_back().unwrap_or(before);
        rest = &tail[taken..];
    }
    escape(rest, out);
}

/// The address at the start of a text, without punctuation after it.
fn bare_address(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let scheme = text.len() - rest.len();
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "<>\"`\\".contains(c);
    let inner = rest.char_indices().take_while(|(at, c)| *at < MAX_ADDRESS && !is_end(*c));
    let mut address = &text[..scheme + inner.last().map_or(0, |(at, c)| at + c.len_utf8())];
    loop {
        let opens = address.matches('(').count();
        let closes = address.matches(')').count();
        let trimmed = address.trim_end_matches(['.', ',', ':', ';', '!', '?', '\'', ']', '*', '_', '~']);
        let trimmed = if closes > opens { trimmed.strip_suffix(')').unwrap_or(trimmed) } else { trimmed };
        if trimmed.len() == address.len() {
            break;
        }
        address = trimmed;
    }
    (address.len() > scheme).then_some(address)
}

pub(crate) fn escape(text: &str, out: &mut String) {
    let text = &*visible(text);
    let mut rest = text;
    while rest.len() > LONGEST_TEXT {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST_TEXT));
        escape_piece(piece, out);
        rest = after;
    }
    escape_piece(rest, out);
}

fn escape_piece(text: &str, out: &mut String) {
    let start = out.floor_char_boundary(out.len().saturating_sub(LONGEST_TEXT));
    if start > 0 && !out[start..].contains('<') {
        out.push_str(BETWEEN_TEXTS);
    }
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(entity);
        from = at + 1;
    }
    out.push_str(&text[from..]);
}
