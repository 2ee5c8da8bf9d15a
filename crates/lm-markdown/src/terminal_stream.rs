//! Terminal text of a growing Markdown text: words are written once, when they are complete.

use crate::characters::visible;
use crate::code::Highlighter;
use crate::segments::{Part, Segments};
use crate::stable::stable;
use crate::{parse, terminal};

/// Use of escape codes for styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Text alone.
    None,
    /// Codes of ANSI terminals.
    Ansi,
}

/// Renderer of a growing text for a terminal. Nothing that was written is written again or taken back: a
/// table is written when it is complete, text a word at a time, and code a line at a time.
pub struct TerminalStream {
    segments: Segments,
    width: usize,
    colours: Colours,
    code: Option<Highlighter>,
    /// Output of the unfinished part.
    shown: String,
    /// Line breaks before the next output.
    gap: &'static str,
}

impl TerminalStream {
    /// Creates a renderer of an empty text for lines of `width` columns; fewer than 8 count as 8.
    pub fn new(width: usize, colours: Colours) -> Self {
        let (segments, code, shown) = Default::default();
        Self { segments, width, colours, code, shown, gap: "" }
    }

    /// Changes the width, for the lines that follow.
    pub fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// Takes the next piece of text; returns the text to write, without a line break at its end.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for part in self.segments.push(text) {
            self.part(part, &mut out);
        }
        if let Some(open) = self.segments.open() {
            let stable = &open[..stable(&open)];
            if !stable.trim().is_empty() {
                let written = terminal::written(&parse(stable), self.width, self.colours);
                self.write(&written, &mut out);
            }
        }
        out
    }

    /// Ends the text; returns the rest to write. The renderer is as new then.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        for part in std::mem::take(&mut self.segments).finish() {
            self.part(part, &mut out);
        }
        *self = Self::new(self.width, self.colours);
        out
    }

    fn part(&mut self, part: Part, out: &mut String) {
        match part {
            Part::Blocks(text) => {
                let written = terminal::written(&parse(&text), self.width, self.colours);
                self.write(&written, out);
                self.end_part();
            }
            Part::CodeStart(language) => self.code = Some(Highlighter::new(&language)),
            Part::CodeLines(lines) => {
                let highlighter = self.code.get_or_insert_with(|| Highlighter::new(""));
                for line in visible(&lines).lines() {
                    out.push_str(std::mem::replace(&mut self.gap, "\n"));
                    out.push_str(&terminal::code_line(highlighter, line, self.colours));
                    self.shown.push(' ');
                }
            }
            Part::CodeEnd => {
                self.code = None;
                self.end_part();
            }
        }
    }

    fn end_part(&mut self) {
        if !self.shown.is_empty() {
            self.gap = "\n\n";
        }
        self.shown.clear();
    }

    /// Writes what of `written`, the output of the unfinished part, is new.
    fn write(&mut self, written: &str, out: &mut String) {
        let new = rest(written, &self.shown);
        if !new.is_empty() {
            out.push_str(std::mem::take(&mut self.gap));
            out.push_str(&new);
        }
        if self.shown.len() < written.len() || !self.shown.starts_with(written) {
            written.clone_into(&mut self.shown);
        }
    }
}

/// The output after what is shown. If later text has changed its beginning, the output after as many
/// characters.
fn rest(written: &str, shown: &str) -> String {
    if let Some(rest) = written.strip_prefix(shown) {
        return rest.to_owned();
    }
    let mut left = characters(shown).count();
    let mut at = 0;
    let mut style = "";
    for (start, end, is_code) in units(written) {
        if left == 0 {
            break;
        }
        let unit = &written[start..end];
        match is_code {
            true => style = if unit == "\x1b[0m" { "" } else { unit },
            false if unit.trim().is_empty() => {}
            false => left -= 1,
        }
        at = end;
    }
    match &written[at..] {
        "" => String::new(),
        rest => format!("{style}{rest}"),
    }
}

/// Characters that are neither blank nor part of an escape code.
fn characters(text: &str) -> impl Iterator<Item = &str> {
    let shown = units(text).filter(|(_, _, is_code)| !is_code).map(move |(start, end, _)| &text[start..end]);
    shown.filter(|unit| !unit.trim().is_empty())
}

/// Ranges of characters and of escape codes.
fn units(text: &str) -> impl Iterator<Item = (usize, usize, bool)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let is_code = rest.starts_with('\x1b');
        let len = match rest.find('m').filter(|_| is_code) {
            Some(end) => end + 1,
            None => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += len;
        Some((at - len, at, is_code))
    })
}
