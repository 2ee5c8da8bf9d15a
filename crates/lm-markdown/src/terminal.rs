//! Styled lines of a document for a terminal.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::characters::visible;
use crate::code::{Highlighter, Token};
use crate::document::{Alignment, Block, Inline, Item};
use crate::formula;
use crate::html::is_safe;
use crate::terminal_stream::Colours;

const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
/// Longest rule.
const MAX_RULE: usize = 40;

/// Look of a text: codes of SGR, such as `1;36`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Style {
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    strike: bool,
    colour: Option<u8>,
}

/// A text of one style.
#[derive(Clone, Debug)]
struct Span {
    text: String,
    style: Style,
}

type Line = Vec<Span>;

/// Text of blocks, lines of `width` columns at most; the last line has no line break.
pub(crate) fn written(blocks: &[Block], width: usize, colours: Colours) -> String {
    let mut lines = Vec::new();
    push_blocks(blocks, width.max(8), 0, &mut lines);
    let lines: Vec<String> = lines.iter().map(|line| painted(line, colours)).collect();
    lines.join("\n")
}

/// Text of a line of code, indented.
pub(crate) fn code_line(highlighter: &mut Highlighter, line: &str, colours: Colours) -> String {
    painted(&code_spans(highlighter, line), colours)
}

fn painted(line: &Line, colours: Colours) -> String {
    let mut out = String::new();
    for Span { text, style } in line {
        let codes = style.codes();
        // Entities of HTML may be control characters.
        let text = &*visible(text);
        match colours == Colours::None || codes.is_empty() {
            true => out.push_str(text),
            false => out.extend(["\x1b[", &codes, "m", text, "\x1b[0m"]),
        }
    }
    // An empty quote ends without its space.
    out.truncate(out.trim_end_matches(' ').len());
    out
}

impl Style {
    fn codes(self) -> String {
        let flags = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.strike, "9"),
        ];
        let mut codes: Vec<String> =
            flags.iter().filter(|(on, _)| *on).map(|(_, code)| (*code).to_owned()).collect();
        codes.extend(self.colour.map(|colour| colour.to_string()));
        codes.join(";")
    }

    fn of(token: Token) -> Self {
        let colour = match token {
            Token::Plain => None,
            Token::Comment => return Self { dim: true, ..Self::default() },
            Token::Constant => Some(36),
            Token::Deleted => Some(31),
            Token::Function => Some(34),
            Token::Inserted | Token::String => Some(32),
            Token::Keyword => Some(35),
            Token::Type => Some(33),
        };
        Self { colour, ..Self::default() }
    }
}

fn dim(text: impl Into<String>) -> Span {
    Span { text: text.into(), style: Style { dim: true, ..Style::default() } }
}

fn push_blocks(blocks: &[Block], width: usize, depth: usize, lines: &mut Vec<Line>) {
    let mut is_first = true;
    for block in blocks {
        // A list directly after a text belongs to it.
        let is_joined = matches!(block, Block::List { .. }) && depth > 0;
        if !is_first && !is_joined {
            lines.push(Vec::new());
        }
        push_block(block, width, depth, lines);
        is_first = false;
    }
}

fn push_block(block: &Block, width: usize, depth: usize, lines: &mut Vec<Line>) {
    match block {
        Block::Heading { level, content } => {
            let style = Style { bold: true, underline: *level == 1, ..Style::default() };
            wrap(&spans(content, style), width, lines);
        }
        Block::Paragraph(content) | Block::Plain(content) => {
            wrap(&spans(content, Style::default()), width, lines)
        }
        Block::Code { language, text } => {
            let mut highlighter = Highlighter::new(language);
            lines.extend(text.lines().map(|line| code_spans(&mut highlighter, line)));
        }
        Block::List { start, items } => list(*start, items, width, depth, lines),
        Block::Quote(inner) => {
            let mut quoted = Vec::new();
            push_blocks(inner, width.saturating_sub(2).max(8), depth, &mut quoted);
            lines.extend(quoted.into_iter().map(|line| [vec![dim("│ ")], line].concat()));
        }
        Block::Table { alignments, head, rows } => table(alignments, head, rows, width, lines),
        Block::Rule => lines.push(vec![dim("─".repeat(width.min(MAX_RULE)))]),
        Block::Footnote { label, blocks } => {
            indented(&[dim(format!("[{label}] "))], label.width() + 3, blocks, width, depth, lines);
        }
    }
}

fn code_spans(highlighter: &mut Highlighter, line: &str) -> Line {
    // Grammars expect the line break.
    let line = format!("{}\n", line.trim_end_matches('\n').replace('\t', "    "));
    let pieces = highlighter.line(&line);
    let spans = pieces
        .into_iter()
        .map(|(token, text)| Span { text: text.trim_end_matches('\n').to_owned(), style: Style::of(token) });
    std::iter::once(Span { text: "  ".to_owned(), style: Style::default() }).chain(spans).collect()
}

fn list(start: Option<u64>, items: &[Item], width: usize, depth: usize, lines: &mut Vec<Line>) {
    for (index, Item { task, blocks }) in items.iter().enumerate() {
        let marker = match (task, start) {
            (Some(true), _) => "☑ ".to_owned(),
            (Some(false), _) => "☐ ".to_owned(),
            (None, Some(start)) => format!("{}. ", start.saturating_add(index as u64)),
            (None, None) => BULLETS[depth.min(BULLETS.len() - 1)].to_owned(),
        };
        let columns = marker.width();
        let marker = Span { text: marker, style: Style::default() };
        indented(&[marker], columns, blocks, width, depth + 1, lines);
    }
}

/// Writes blocks after a marker; their further lines are indented as far.
fn indented(
    marker: &[Span],
    columns: usize,
    blocks: &[Block],
    width: usize,
    depth: usize,
    lines: &mut Vec<Line>,
) {
    let mut inner = Vec::new();
    push_blocks(blocks, width.saturating_sub(columns).max(8), depth, &mut inner);
    if inner.is_empty() {
        inner.push(Vec::new());
    }
    for (index, line) in inner.into_iter().enumerate() {
        let before = match index {
            0 => marker.to_vec(),
            _ if line.is_empty() => Vec::new(),
            _ => vec![Span { text: " ".repeat(columns), style: Style::default() }],
        };
        lines.push([before, line].concat());
    }
}

/// Texts of inlines; line breaks are `\n`.
fn spans(content: &[Inline], style: Style) -> Vec<Span> {
    let mut out = Vec::new();
    let mut style = style;
    push_spans(content, &mut style, &mut out);
    out
}

fn push_spans(content: &[Inline], style: &mut Style, out: &mut Vec<Span>) {
    for inline in content {
        match inline {
            Inline::Text(text) => push(text, *style, out),
            Inline::Code(text) => push(&text.replace('\n', " "), Style { colour: Some(36), ..*style }, out),
            Inline::Formula { tex, display } => {
                let text = formula::text(tex);
                let text = match display {
                    true => format!("\n{text}").replace('\n', "\n\u{a0}\u{a0}\u{a0}"),
                    false => text.replace('\n', "; "),
                };
                push(&text, Style { italic: true, ..*style }, out);
                push(if *display { "\n" } else { "" }, *style, out);
            }
            Inline::Emphasis(inner) => push_nested(inner, Style { italic: true, ..*style }, out),
            Inline::Strong(inner) => push_nested(inner, Style { bold: true, ..*style }, out),
            Inline::Strike(inner) => push_nested(inner, Style { strike: true, ..*style }, out),
            Inline::Link { address, content } => push_link(address, content, *style, out),
            Inline::Tag(name) => apply_tag(name, style),
            Inline::Footnote(label) => push(&format!("[{label}]"), Style { dim: true, ..*style }, out),
            // Models break lines where they want them broken.
            Inline::Break | Inline::SoftBreak => push("\n", *style, out),
        }
    }
}

fn push(text: &str, style: Style, out: &mut Vec<Span>) {
    out.push(Span { text: text.to_owned(), style });
}

fn push_nested(inner: &[Inline], mut style: Style, out: &mut Vec<Span>) {
    push_spans(inner, &mut style, out);
}

fn push_link(address: &str, content: &[Inline], style: Style, out: &mut Vec<Span>) {
    if !is_safe(address) {
        push("[", style, out);
        push_nested(content, style, out);
        return push(&format!("]({address})"), style, out);
    }
    push_nested(content, Style { underline: true, ..style }, out);
    let text = crate::parse::plain(content);
    if !address.is_empty() && address.trim_start_matches("mailto:") != text {
        let (open, close) = if text.is_empty() { ("", "") } else { (" (", ")") };
        out.push(Span { text: format!("{open}{address}{close}"), style: Style { dim: true, ..style } });
    }
}

fn apply_tag(name: &str, style: &mut Style) {
    let on = !name.starts_with('/');
    match name.trim_start_matches('/') {
        "b" | "mark" => style.bold = on,
        "i" => style.italic = on,
        "s" => style.strike = on,
        "u" => style.underline = on,
        "kbd" => style.colour = on.then_some(36),
        _ => {}
    }
}

/// A word: texts without a space or another place to break a line.
struct Word {
    spans: Line,
    width: usize,
    /// A space before it.
    spaced: bool,
    /// A line break before it.
    broken: bool,
}

/// Breaks texts to lines between words; a word that is wider than a line is cut.
fn wrap(spans: &[Span], width: usize, lines: &mut Vec<Line>) {
    let mut line: Line = Vec::new();
    let mut column = 0;
    let mut is_first = true;
    for word in words(spans) {
        if word.broken && !is_first {
            lines.push(std::mem::take(&mut line));
            column = 0;
        }
        is_first = false;
        let space = usize::from(word.spaced && column > 0);
        if column > 0 && column + space + word.width > width {
            lines.push(std::mem::take(&mut line));
            column = 0;
        } else if space > 0 {
            line.push(Span { text: " ".to_owned(), style: Style::default() });
            column += 1;
        }
        for Span { text, style } in word.spans {
            for piece in cut(&text, width, column) {
                if column + piece.width() > width && column > 0 {
                    lines.push(std::mem::take(&mut line));
                    column = 0;
                }
                column += piece.width();
                line.push(Span { text: piece.to_owned(), style });
            }
        }
    }
    lines.push(line);
}

/// Cuts a text to pieces of at most `width` columns, the first after `column` columns.
fn cut(text: &str, width: usize, column: usize) -> Vec<&str> {
    let whole = text.width();
    if column + whole <= width || whole <= width {
        return vec![text];
    }
    let mut pieces = Vec::new();
    let (mut from, mut columns) = (0, column);
    for (at, grapheme) in text.grapheme_indices(true) {
        if columns + grapheme.width() > width && at > from {
            pieces.push(&text[from..at]);
            (from, columns) = (at, 0);
        }
        columns += grapheme.width();
    }
    pieces.push(&text[from..]);
    pieces
}

fn words(spans: &[Span]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut spaced, mut broken, mut joined) = (false, false, false);
    for Span { text, style } in spans {
        for grapheme in text.graphemes(true) {
            match grapheme {
                "\n" | "\r\n" => (spaced, broken, joined) = (false, true, false),
                " " | "\t" => (spaced, joined) = (true, false),
                _ => {
                    let columns = grapheme.width();
                    // Lines of Chinese and Japanese may end after each character.
                    let is_wide = columns > 1 && !grapheme.contains('\u{fe0f}');
                    match words.last_mut().filter(|_| joined && !is_wide) {
                        Some(word) => word.push(grapheme, columns, *style),
                        None => {
                            let mut word = Word { spans: Vec::new(), width: 0, spaced, broken };
                            word.push(grapheme, columns, *style);
                            words.push(word);
                        }
                    }
                    (spaced, broken, joined) = (false, false, !is_wide);
                }
            }
        }
    }
    words
}

impl Word {
    fn push(&mut self, grapheme: &str, columns: usize, style: Style) {
        self.width += columns;
        match self.spans.last_mut() {
            Some(span) if span.style == style => span.text.push_str(grapheme),
            _ => self.spans.push(Span { text: grapheme.to_owned(), style }),
        }
    }
}

fn table(
    alignments: &[Alignment],
    head: &[Vec<Inline>],
    rows: &[Vec<Vec<Inline>>],
    width: usize,
    lines: &mut Vec<Line>,
) {
    let columns = head.len();
    if columns == 0 {
        return;
    }
    let source = (head, rows);
    let bold = Style { bold: true, ..Style::default() };
    let cells = |row: &[Vec<Inline>], style| -> Vec<Vec<Span>> {
        (0..columns)
            .map(|column| row.get(column).map(|cell| spans(cell, style)).unwrap_or_default())
            .collect()
    };
    let head = cells(head, bold);
    let rows: Vec<_> = rows.iter().map(|row| cells(row, Style::default())).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let room = width.saturating_sub(3 * (columns - 1));
    let needed = widths(all(), columns, |cell| words(cell).iter().map(|word| word.width).max());
    if needed.iter().sum::<usize>() > room {
        return records(source.0, source.1, width, lines);
    }
    let widest = widths(all(), columns, |cell| {
        let mut lines = Vec::new();
        wrap(cell, usize::MAX / 2, &mut lines);
        lines.iter().map(columns_of).max()
    });
    let widths = fitted(&needed, widest, room);
    row_lines(&head, &widths, alignments, lines);
    lines.push(vec![dim(widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─"))]);
    for row in &rows {
        row_lines(row, &widths, alignments, lines);
    }
}

/// Largest width of the cells of each column.
fn widths<'a>(
    rows: impl Iterator<Item = &'a Vec<Vec<Span>>>,
    columns: usize,
    width: impl Fn(&[Span]) -> Option<usize>,
) -> Vec<usize> {
    let mut widths = vec![1; columns];
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).unwrap_or(0).max(*widest);
        }
    }
    widths
}

/// Widths of the columns: the widest are made narrower, down to their longest words, until the table fits.
fn fitted(needed: &[usize], mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    widths.iter_mut().for_each(|width| *width = (*width).min(room));
    let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
    while excess > 0 {
        let spare = |column: &usize| widths[*column] > needed[*column];
        let Some(column) = (0..widths.len()).filter(spare).max_by_key(|column| widths[*column]) else {
            break;
        };
        widths[column] -= 1;
        excess -= 1;
    }
    widths
}

fn columns_of(line: &Line) -> usize {
    line.iter().map(|span| span.text.width()).sum()
}

fn row_lines(cells: &[Vec<Span>], widths: &[usize], alignments: &[Alignment], lines: &mut Vec<Line>) {
    let wrapped = cells.iter().zip(widths).map(|(cell, width)| {
        let mut lines = Vec::new();
        wrap(cell, *width, &mut lines);
        lines
    });
    let wrapped: Vec<Vec<Line>> = wrapped.collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    for at in 0..height {
        let mut line = Vec::new();
        for (column, cell) in wrapped.iter().enumerate() {
            if column > 0 {
                line.push(dim(" │ "));
            }
            let content = cell.get(at).cloned().unwrap_or_default();
            let room = widths[column].saturating_sub(columns_of(&content));
            let before = match alignments.get(column).copied().unwrap_or_default() {
                Alignment::Left => 0,
                Alignment::Center => room / 2,
                Alignment::Right => room,
            };
            let blank = |count| Span { text: " ".repeat(count), style: Style::default() };
            line.push(blank(before));
            line.extend(content);
            line.push(blank(room - before));
        }
        lines.push(line);
    }
}

/// A table that is too wide: each row as lines of the column's name and its cell.
fn records(head: &[Vec<Inline>], rows: &[Vec<Vec<Inline>>], width: usize, lines: &mut Vec<Line>) {
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            lines.push(Vec::new());
        }
        for (name, cell) in head.iter().zip(row) {
            let mut text = spans(name, Style { bold: true, ..Style::default() });
            text.push(Span { text: ": ".to_owned(), style: Style::default() });
            text.extend(spans(cell, Style::default()));
            wrap(&text, width, lines);
        }
    }
}
