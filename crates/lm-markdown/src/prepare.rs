//! Formulas between `\(` and `\)` or `\[` and `\]`, rewritten to the `$` that the parser reads, each on one
//! line: its lines are not Markdown.

use std::borrow::Cow;

use crate::segments::content;

/// Begin of a formula that was not written with `$`, so that no price is taken for one.
pub(crate) const EXPLICIT: &str = "{}";

/// Rewrites the formulas of Markdown outside of code.
pub(crate) fn prepared(text: &str) -> Cow<'_, str> {
    if !text.contains("\\(") && !text.contains("\\[") && !text.contains("$$") {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while !rest.is_empty() {
        let (paragraph, is_code, after) = next_paragraph(rest);
        match is_code {
            true => out.push_str(paragraph),
            false => Rewriter::new(paragraph).run(&mut out),
        }
        rest = after;
    }
    out.into()
}

/// Splits the text before the next blank line or fence; a fence with its code is one part.
fn next_paragraph(text: &str) -> (&str, bool, &str) {
    let mut end = 0;
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let start = content(line).trim_end();
        let marker = &start[..start.len() - start.trim_start_matches(['`', '~']).len()];
        match fence {
            None if marker.len() >= 3 && end > 0 => break,
            None if marker.len() >= 3 && !start[marker.len()..].contains('`') => fence = Some(marker),
            Some(open) if start.starts_with(open) && start.chars().all(|c| open.starts_with(c)) => {
                end += line.len();
                return (&text[..end], true, &text[end..]);
            }
            None if line.trim().is_empty() => {
                end += line.len();
                break;
            }
            _ => {}
        }
        end += line.len();
    }
    (&text[..end], fence.is_some(), &text[end..])
}

/// Rewriter of one paragraph, in one pass: each closing delimiter is searched to the end at most once.
struct Rewriter<'a> {
    text: &'a str,
    at: usize,
    /// Closing delimiters that the rest of the paragraph lacks.
    absent: Vec<String>,
}

impl<'a> Rewriter<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, absent: Vec::new() }
    }

    fn run(mut self, out: &mut String) {
        while let Some(found) = self.text[self.at..].find(['\\', '`', '$']) {
            out.push_str(&self.text[self.at..self.at + found]);
            self.at += found;
            self.step(out);
        }
        out.push_str(&self.text[self.at..]);
    }

    fn step(&mut self, out: &mut String) {
        let rest = &self.text[self.at..];
        let taken = match rest.as_bytes() {
            [b'\\', b'(', ..] => self.formula(2, "\\)", "$", out),
            [b'\\', b'[', ..] => self.formula(2, "\\]", "$$", out),
            [b'$', b'$', ..] => self.formula(2, "$$", "$$", out),
            [b'`', ..] => self.code_span(out),
            _ => false,
        };
        if !taken {
            let len = rest.chars().next().map_or(0, char::len_utf8);
            let escaped = if rest.starts_with('\\') { rest[len..].chars().next() } else { None };
            let len = len + escaped.filter(char::is_ascii_punctuation).map_or(0, char::len_utf8);
            let double = if rest.starts_with("$$") { 2 } else { len };
            out.push_str(&rest[..double]);
            self.at += double;
        }
    }

    fn formula(&mut self, open: usize, close: &str, delimiter: &str, out: &mut String) -> bool {
        let start = self.at + open;
        let Some(len) = self.find(start, close) else { return false };
        let inner = &self.text[start..start + len];
        let after = &self.text[start + len + close.len()..];
        let is_link = close == "\\]" && after.starts_with('(');
        if inner.trim().is_empty() || is_link || !is_balanced(inner) {
            return false;
        }
        let explicit = if close == "$$" { "" } else { EXPLICIT };
        let in_quote = self.text.trim_start().starts_with('>');
        let lines = inner.lines().map(|line| match in_quote {
            true => line.trim_start().trim_start_matches('>').trim(),
            false => line.trim(),
        });
        let line = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let end = if line.ends_with('\\') { " {}" } else { "" };
        out.extend([delimiter, explicit, &line, end, delimiter]);
        self.at = start + len + close.len();
        true
    }

    fn code_span(&mut self, out: &mut String) -> bool {
        let rest = &self.text[self.at..];
        let run = rest.len() - rest.trim_start_matches('`').len();
        let marker = &rest[..run];
        let mut from = self.at + run;
        while let Some(found) = self.find(from, marker) {
            let start = from + found;
            let end = start + self.text[start..].len() - self.text[start..].trim_start_matches('`').len();
            if end - start == run {
                out.push_str(&self.text[self.at..end]);
                self.at = end;
                return true;
            }
            from = end;
        }
        if !self.absent.iter().any(|absent| absent == marker) {
            self.absent.push(marker.to_owned());
        }
        out.push_str(marker);
        self.at += run;
        true
    }

    fn find(&mut self, from: usize, close: &str) -> Option<usize> {
        if self.absent.iter().any(|absent| absent == close) {
            return None;
        }
        let found = self.text[from..].find(close);
        if found.is_none() {
            self.absent.push(close.to_owned());
        }
        found
    }
}

/// Returns true if the braces of a formula are balanced: the parser reads no other.
fn is_balanced(tex: &str) -> bool {
    let mut depth = 0_i32;
    let mut escaped = false;
    for c in tex.chars() {
        match c {
            '{' if !escaped => depth += 1,
            '}' if !escaped => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
        escaped = c == '\\' && !escaped;
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_rewritten_outside_of_code() {
        for (text, expected) in [
            ("\\(x\\) and \\[\ny\n- z\n\\]", "${}x$ and $${}y - z$$"),
            ("`\\(x\\)` \\(y", "`\\(x\\)` \\(y"),
            ("``a`\\(x\\)`` \\(y\\)", "``a`\\(x\\)`` ${}y$"),
            ("- a\n  ```\n  \\(x\\)\n  ```\n  \\(y\\)", "- a\n  ```\n  \\(x\\)\n  ```\n  ${}y$"),
            ("$$\na\n$$", "$$a$$"),
            ("\\[text\\](address)", "\\[text\\](address)"),
            ("> \\[\n> a\n> \\]", "> $${}a$$"),
            ("\\\\(x\\\\)", "\\\\(x\\\\)"),
            ("\\(a{\\)", "\\(a{\\)"),
            ("$5 and $6", "$5 and $6"),
        ] {
            assert_eq!(prepared(text), expected, "{text}");
        }
    }
}
