//! Cuts of a growing text: parts that later lines cannot change.
//!
//! The cuts depend on complete lines only, and each part is a Markdown document of its own, so that a text
//! gives the same parts wherever it was cut in pieces.

/// A part of the text that is complete.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Markdown without a fenced code block at the top level.
    Blocks(String),
    /// Begin of a fenced code block with this language.
    CodeStart(String),
    /// Lines of the code block, each with its line break.
    CodeLines(String),
    /// End of the code block.
    CodeEnd,
}

/// Fence of a code block.
#[derive(Clone, Debug)]
struct Fence {
    marker: char,
    len: usize,
    /// Columns before the fence.
    indent: usize,
}

/// State of the cutter between two pieces of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    /// Complete lines that are not yet in a part.
    open: String,
    /// The unfinished line.
    line: String,
    /// Fence of a top-level code block.
    code: Option<Fence>,
    /// Fence within `open`, in a list or a quote.
    inner: Option<Fence>,
    /// Closing delimiter of a formula that began on an earlier line.
    formula: Option<&'static str>,
    /// `open` has a list, which indented lines and further items belong to.
    has_list: bool,
    /// The last line is blank.
    after_blank: bool,
}

impl Segments {
    /// Takes the next piece of text; returns the parts that it completes.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.line(line.strip_suffix('\n').unwrap_or(&line).trim_end_matches('\r'), &mut parts);
            }
        }
        if self.line_begins_block() {
            self.flush(&mut parts);
        }
        parts
    }

    /// Ends the text; returns the remaining parts.
    pub fn finish(mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.line(&line, &mut parts);
        }
        self.flush(&mut parts);
        if self.code.is_some() {
            parts.push(Part::CodeEnd);
        }
        parts
    }

    /// Markdown that is not yet in a part, with the unfinished line; `None` within a code block.
    pub fn open(&self) -> Option<String> {
        // A carriage return at the end may be the first half of a line break.
        self.code.is_none().then(|| format!("{}{}", self.open, self.line.trim_end_matches('\r')))
    }

    /// Returns true if the unfinished line begins a block, however it goes on.
    fn line_begins_block(&self) -> bool {
        let is_open =
            self.line.is_empty() || self.line.starts_with(char::is_whitespace) || self.code.is_some();
        !(is_open || self.has_list && may_be_item(&self.line)) && self.begins_block(&self.line, 0)
    }

    fn line(&mut self, line: &str, parts: &mut Vec<Part>) {
        let trimmed = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - trimmed.len();
        if let Some(fence) = &self.code {
            match fence.is_closed_by(trimmed) {
                true => {
                    self.code = None;
                    parts.push(Part::CodeEnd);
                }
                false => code_line(unindented(line, fence.indent), parts),
            }
            return;
        }
        if trimmed.is_empty() {
            self.formula = None;
        } else if self.begins_block(trimmed, indent) {
            self.flush(parts);
        }
        if self.inner.is_none()
            && self.formula.is_none()
            && indent <= if self.has_list { 0 } else { 3 }
            && let Some((fence, info)) = Fence::opened_by(trimmed, indent)
        {
            self.flush(parts);
            parts.push(Part::CodeStart(language(info)));
            self.code = Some(fence);
            return;
        }
        self.follow(trimmed, indent);
        self.after_blank = trimmed.is_empty();
        self.open.push_str(line);
        self.open.push('\n');
    }

    /// Returns true if a line after a blank one is the first of a new top-level block.
    fn begins_block(&self, trimmed: &str, indent: usize) -> bool {
        let in_inner = self.inner.as_ref().is_some_and(|fence| fence.indent < 2);
        self.after_blank && indent == 0 && !in_inner && !(self.has_list && is_item(trimmed))
    }

    /// Follows fences, formulas and lists in `open`.
    fn follow(&mut self, trimmed: &str, indent: usize) {
        if let Some(fence) = &self.inner {
            let left = fence.indent >= 2 && indent == 0 && !trimmed.is_empty();
            if left || fence.is_closed_by(trimmed.trim_start_matches(['>', ' '])) {
                self.inner = None;
            }
            if !left {
                return;
            }
        }
        if let Some(end) = self.formula {
            if trimmed.contains(end) {
                self.formula = None;
            }
            return;
        }
        self.has_list |= indent <= 3 && is_item(trimmed);
        let content = content(trimmed);
        let column = indent + trimmed.len() - content.len();
        self.inner = Fence::opened_by(content, column).map(|(fence, _)| fence);
        self.formula = opened_formula(trimmed);
    }

    fn flush(&mut self, parts: &mut Vec<Part>) {
        let open = std::mem::take(&mut self.open);
        if !open.trim().is_empty() {
            parts.push(Part::Blocks(open));
        }
        (self.inner, self.formula) = (None, None);
        (self.has_list, self.after_blank) = (false, false);
    }
}

impl Fence {
    /// Fence that a line opens, and the text after it.
    fn opened_by(line: &str, indent: usize) -> Option<(Self, &str)> {
        let marker = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(marker);
        let len = line.len() - info.len();
        let is_fence = len >= 3 && !(marker == '`' && info.contains('`'));
        is_fence.then_some((Self { marker, len, indent }, info))
    }

    fn is_closed_by(&self, trimmed: &str) -> bool {
        let trimmed = trimmed.trim_end();
        trimmed.len() >= self.len && trimmed.chars().all(|c| c == self.marker)
    }
}

/// First word after a fence.
pub(crate) fn language(info: &str) -> String {
    let word = info.split([' ', '\t', ',', '{']).find(|word| !word.is_empty()).unwrap_or_default();
    word.chars().take(40).collect()
}

fn code_line(line: &str, parts: &mut Vec<Part>) {
    if !matches!(parts.last(), Some(Part::CodeLines(_))) {
        parts.push(Part::CodeLines(String::new()));
    }
    if let Some(Part::CodeLines(lines)) = parts.last_mut() {
        lines.push_str(line);
        lines.push('\n');
    }
}

/// The line without as many spaces as its fence has, if it has them.
fn unindented(line: &str, indent: usize) -> &str {
    let spaces = line.bytes().take(indent).take_while(|&byte| byte == b' ').count();
    &line[spaces..]
}

/// Returns true if a line begins with the marker of a list item.
pub(crate) fn is_item(trimmed: &str) -> bool {
    let rest = match trimmed.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let rest = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = trimmed.len() - rest.len();
            match rest.strip_prefix(['.', ')']) {
                Some(rest) if (1..=9).contains(&digits) => rest,
                _ => return false,
            }
        }
    };
    rest.is_empty() || rest.starts_with([' ', '\t'])
}

/// Returns true if a line is, or may become, one with the marker of a list item.
fn may_be_item(line: &str) -> bool {
    is_item(line) || is_item(&format!("{line} ")) || line.chars().all(|c| c.is_ascii_digit())
}

/// The line without markers of quotes and list items before its content.
pub(crate) fn content(line: &str) -> &str {
    let mut rest = line;
    // Deeper containers are not shown as such.
    for _ in 0..16 {
        rest = rest.trim_start();
        if let Some(quoted) = rest.strip_prefix('>') {
            rest = quoted;
        } else if is_item(rest) {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest = rest.get(1..).unwrap_or_default();
        } else {
            break;
        }
    }
    rest
}

/// Closing delimiter of a display formula that the line opens and does not close.
fn opened_formula(line: &str) -> Option<&'static str> {
    if let Some(at) = line.rfind("\\[")
        && !line[at..].contains("\\]")
    {
        return Some("\\]");
    }
    (line.matches("$$").count() % 2 == 1).then_some("$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<Part> {
        let mut segments = Segments::default();
        let mut parts = segments.push(text);
        parts.extend(segments.finish());
        parts
    }

    fn kinds(text: &str) -> Vec<String> {
        let kind = |part: Part| match part {
            Part::Blocks(text) => text.trim_end().to_owned(),
            Part::CodeStart(language) => format!("<{language}>"),
            Part::CodeLines(lines) => lines,
            Part::CodeEnd => "</>".to_owned(),
        };
        parts(text).into_iter().map(kind).collect()
    }

    #[test]
    fn parts_end_where_later_lines_cannot_change_them() {
        for (text, expected) in [
            ("a\nb\n\nc", vec!["a\nb", "c"]),
            ("1. a\n\n2. b\n\n   c\n\nd", vec!["1. a\n\n2. b\n\n   c", "d"]),
            ("a\n```rs\nx\n\ny\n```\nb", vec!["a", "<rs>", "x\n\ny\n", "</>", "b"]),
            ("````md\n```\nx\n```\n````", vec!["<md>", "```\nx\n```\n", "</>"]),
            ("- a\n  ```\n  x\n\n  y\n  ```\n\nb", vec!["- a\n  ```\n  x\n\n  y\n  ```", "b"]),
            ("- a\n  ```\n  x\n\nb\n\n```\nc\n```", vec!["- a\n  ```\n  x", "b", "<>", "c\n", "</>"]),
            ("\\[\n- a\n```\n\\]\nb", vec!["\\[\n- a\n```\n\\]\nb"]),
            ("```", vec!["<>", "</>"]),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn language_is_the_first_word() {
        assert_eq!([language(" rust,ignore"), language("{.py}"), language("")], ["rust", ".py}", ""]);
    }
}
