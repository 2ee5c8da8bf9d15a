//! Markdown to the document model.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::characters::visible;
use crate::document::{Alignment, Block, Inline, Item};
use crate::prepare::{EXPLICIT, prepared};
use crate::segments::language;

/// Deepest nesting; the text of deeper blocks and spans is shown without them.
const MAX_DEPTH: usize = 24;

/// Tags of HTML that are shown as such; others are text.
const TAGS: [&str; 8] = ["b", "i", "kbd", "mark", "s", "sub", "sup", "u"];

/// Parses Markdown. Markup in HTML stays text, but line breaks and a few tags without attributes.
pub fn parse(text: &str) -> Vec<Block> {
    let text = visible(text);
    let text = without_prices(prepared(&text));
    let mut builder = Builder { stack: vec![Frame::new(Kind::Root)], skipped: 0, source: &text };
    for (event, range) in Parser::new_ext(&text, options()).into_offset_iter() {
        builder.event(event, &range);
    }
    builder.finish()
}

/// Rounds in which `$` of prices are escaped.
const MAX_ROUNDS: usize = 8;

/// Escapes the `$` that the parser would take for the begin of a formula, such as those of prices: text after
/// them may be emphasised.
fn without_prices(mut text: Cow<'_, str>) -> Cow<'_, str> {
    for _ in 0..MAX_ROUNDS {
        if text.matches('$').count() < 2 {
            break;
        }
        let events = Parser::new_ext(&text, options()).into_offset_iter();
        let prices = events.filter_map(|(event, range)| match event {
            Event::InlineMath(tex) if is_price(&tex, &text[range.end..]) => Some(range.start),
            _ => None,
        });
        let prices: Vec<usize> = prices.collect();
        if prices.is_empty() {
            break;
        }
        let mut escaped = String::with_capacity(text.len() + prices.len());
        let mut from = 0;
        for at in prices {
            escaped.extend([&text[from..at], "\\"]);
            from = at;
        }
        escaped.push_str(&text[from..]);
        text = escaped.into();
    }
    text
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_MATH
        // References without a definition in the same part stay references.
        | Options::ENABLE_OLD_FOOTNOTES
}

/// An open element.
#[derive(Debug)]
enum Kind {
    Root,
    Block(BlockKind),
    Inline(InlineKind),
    /// Head of a table, or a row.
    Row,
    Cell,
}

#[derive(Debug)]
enum BlockKind {
    Heading(u8),
    Paragraph,
    Code(String),
    List(Option<u64>),
    Item,
    Quote,
    Table(Vec<Alignment>),
    Footnote(String),
}

#[derive(Debug)]
enum InlineKind {
    Emphasis,
    Strong,
    Strike,
    Link(String),
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    blocks: Vec<Block>,
    inlines: Vec<Inline>,
    items: Vec<Item>,
    rows: Vec<Vec<Vec<Inline>>>,
    cells: Vec<Vec<Inline>>,
    task: Option<bool>,
}

impl Frame {
    fn new(kind: Kind) -> Self {
        let (blocks, inlines, items, rows, cells) = Default::default();
        Self { kind, blocks, inlines, items, rows, cells, task: None }
    }

    /// Ends a run of text directly in a container.
    fn end_plain(&mut self) {
        if !self.inlines.is_empty() {
            self.blocks.push(Block::Plain(std::mem::take(&mut self.inlines)));
        }
    }
}

struct Builder<'a> {
    stack: Vec<Frame>,
    /// Open elements beyond the deepest nesting.
    skipped: usize,
    source: &'a str,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.inline(Inline::Code(code.into_string())),
            Event::InlineMath(tex) => self.inline_formula(&tex, range),
            Event::DisplayMath(tex) => {
                let tex = tex.strip_prefix(EXPLICIT).unwrap_or(&tex).trim().to_owned();
                self.inline(Inline::Formula { tex, display: true });
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html),
            Event::FootnoteReference(label) => self.inline(Inline::Footnote(label.into_string())),
            Event::SoftBreak => self.inline(Inline::SoftBreak),
            Event::HardBreak => self.inline(Inline::Break),
            Event::Rule => self.block(Block::Rule),
            Event::TaskListMarker(done) => self.top().task = Some(done),
        }
    }

    fn top(&mut self) -> &mut Frame {
        self.stack.last_mut().expect("the root stays")
    }

    fn start(&mut self, tag: Tag<'_>) {
        let kind = match tag {
            Tag::Paragraph => Kind::Block(BlockKind::Paragraph),
            Tag::Heading { level, .. } => Kind::Block(BlockKind::Heading(number(level))),
            Tag::BlockQuote(_) => Kind::Block(BlockKind::Quote),
            Tag::CodeBlock(kind) => Kind::Block(BlockKind::Code(match kind {
                pulldown_cmark::CodeBlockKind::Fenced(info) => language(&info),
                pulldown_cmark::CodeBlockKind::Indented => String::new(),
            })),
            Tag::List(start) => Kind::Block(BlockKind::List(start)),
            Tag::Item => Kind::Block(BlockKind::Item),
            Tag::FootnoteDefinition(label) => Kind::Block(BlockKind::Footnote(label.into_string())),
            Tag::Table(alignments) => {
                Kind::Block(BlockKind::Table(alignments.into_iter().map(side).collect()))
            }
            Tag::TableHead | Tag::TableRow => Kind::Row,
            Tag::TableCell => Kind::Cell,
            Tag::Emphasis => Kind::Inline(InlineKind::Emphasis),
            Tag::Strong => Kind::Inline(InlineKind::Strong),
            Tag::Strikethrough => Kind::Inline(InlineKind::Strike),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                Kind::Inline(InlineKind::Link(dest_url.into_string()))
            }
            // Not enabled, or without an element of their own, such as blocks of HTML.
            _ => Kind::Block(BlockKind::Paragraph),
        };
        if self.skipped > 0 || self.stack.len() > MAX_DEPTH {
            self.skipped += 1;
            if !matches!(kind, Kind::Inline(_)) {
                self.inline(Inline::SoftBreak);
            }
        } else {
            self.stack.push(Frame::new(kind));
        }
    }

    fn end(&mut self, _: TagEnd) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if self.stack.len() > 1
            && let Some(frame) = self.stack.pop()
        {
            self.close(frame);
        }
    }

    fn close(&mut self, mut frame: Frame) {
        match frame.kind {
            Kind::Inline(kind) => {
                let content = frame.inlines;
                self.inline(match kind {
                    InlineKind::Emphasis => Inline::Emphasis(content),
                    InlineKind::Strong => Inline::Strong(content),
                    InlineKind::Strike => Inline::Strike(content),
                    InlineKind::Link(address) => Inline::Link { address, content },
                });
            }
            Kind::Cell => self.top().cells.push(frame.inlines),
            Kind::Row => self.top().rows.push(frame.cells),
            Kind::Block(BlockKind::Item) => {
                frame.end_plain();
                let (task, blocks) = (frame.task, frame.blocks);
                self.top().items.push(Item { task, blocks });
            }
            Kind::Block(kind) => self.close_block(kind, frame.inlines, frame.blocks, frame.items, frame.rows),
            Kind::Root => {}
        }
    }

    fn close_block(
        &mut self,
        kind: BlockKind,
        inlines: Vec<Inline>,
        mut blocks: Vec<Block>,
        items: Vec<Item>,
        mut rows: Vec<Vec<Vec<Inline>>>,
    ) {
        if !inlines.is_empty() && matches!(kind, BlockKind::Quote | BlockKind::Footnote(_)) {
            blocks.push(Block::Plain(inlines.clone()));
        }
        let block = match kind {
            BlockKind::Heading(level) => Block::Heading { level, content: inlines },
            BlockKind::Code(language) => Block::Code { language, text: plain(&inlines) },
            BlockKind::List(start) => Block::List { start, items },
            BlockKind::Quote => Block::Quote(blocks),
            BlockKind::Footnote(label) => Block::Footnote { label, blocks },
            BlockKind::Table(alignments) => {
                let head = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
                Block::Table { alignments, head, rows }
            }
            BlockKind::Paragraph | BlockKind::Item => Block::Paragraph(inlines),
        };
        self.block(block);
    }

    fn block(&mut self, block: Block) {
        let top = self.top();
        top.end_plain();
        top.blocks.push(block);
    }

    fn inline(&mut self, inline: Inline) {
        self.top().inlines.push(inline);
    }

    fn text(&mut self, text: &str) {
        match self.top().inlines.last_mut() {
            Some(Inline::Text(before)) => before.push_str(text),
            _ => self.inline(Inline::Text(text.to_owned())),
        }
    }

    fn inline_formula(&mut self, tex: &str, range: &Range<usize>) {
        let source = self.source;
        if is_price(tex, &source[range.end..]) {
            return self.text(&source[range.clone()]);
        }
        let tex = tex.strip_prefix(EXPLICIT).unwrap_or(tex).to_owned();
        self.inline(Inline::Formula { tex, display: false });
    }

    fn html(&mut self, html: &str) {
        let inner = html.trim().strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        let inner = inner.map(|inner| inner.trim_end_matches('/').trim().to_ascii_lowercase());
        let name = inner.as_deref().unwrap_or_default();
        if name == "br" {
            return self.inline(Inline::Break);
        }
        let end = name.strip_prefix('/');
        match TAGS.into_iter().find(|tag| *tag == end.unwrap_or(name)) {
            Some(tag) if end.is_none() => self.inline(Inline::Tag(tag)),
            Some(tag) => self.inline(Inline::Tag(end_tag(tag))),
            None => self.text(html),
        }
    }

    fn finish(mut self) -> Vec<Block> {
        while self.stack.len() > 1 {
            let frame = self.stack.pop().expect("there are two");
            self.close(frame);
        }
        let top = self.top();
        top.end_plain();
        std::mem::take(&mut top.blocks)
    }
}

/// End tag of one of [`TAGS`].
fn end_tag(tag: &str) -> &'static str {
    const ENDS: [&str; 8] = ["/b", "/i", "/kbd", "/mark", "/s", "/sub", "/sup", "/u"];
    ENDS.iter().find(|end| end[1..] == *tag).copied().unwrap_or("/b")
}

/// Returns true if the text between two `$`, before `after`, is no formula: `$5 a month to 10$`, `$5 or
/// US$6`.
fn is_price(tex: &str, after: &str) -> bool {
    // Prices that are escaped already.
    let inner = tex.replace("\\$", "");
    let has_operator = inner.contains(['\\', '^', '_', '=', '{', '<', '>', '+', '/', '*', '-']);
    let has_word =
        inner.split(|c: char| !c.is_alphabetic()).any(|word| word.len() > 2) && !inner.contains('\\');
    let is_amount = inner.starts_with(|c: char| c.is_ascii_digit()) && inner.contains(char::is_whitespace);
    let before_digit = after.starts_with(|c: char| c.is_ascii_digit());
    !tex.starts_with(EXPLICIT) && (before_digit || is_amount && (has_word || !has_operator))
}

/// The text of inlines without formatting.
pub(crate) fn plain(inlines: &[Inline]) -> String {
    let text = |inline: &Inline| match inline {
        Inline::Text(text) | Inline::Code(text) => text.clone(),
        Inline::Formula { tex, .. } => tex.clone(),
        Inline::Emphasis(inner) | Inline::Strong(inner) | Inline::Strike(inner) => plain(inner),
        Inline::Link { content, .. } => plain(content),
        Inline::Footnote(label) => format!("[{label}]"),
        Inline::Break | Inline::SoftBreak => "\n".to_owned(),
        Inline::Tag(_) => String::new(),
    };
    inlines.iter().map(text).collect()
}

fn side(alignment: pulldown_cmark::Alignment) -> Alignment {
    match alignment {
        pulldown_cmark::Alignment::Center => Alignment::Center,
        pulldown_cmark::Alignment::Right => Alignment::Right,
        pulldown_cmark::Alignment::Left | pulldown_cmark::Alignment::None => Alignment::Left,
    }
}

fn number(level: HeadingLevel) -> u8 {
    level as u8
}
