//! Beginning of unfinished Markdown that further text hardly changes.

use crate::segments::content;

/// Longest span of a formula that is waited for, in bytes.
const MAX_WAIT: usize = 400;

/// Length of the beginning of `text` that can be shown: to the end of a word, and not within a span, a table
/// or an unfinished line of code.
pub(crate) fn stable(text: &str) -> usize {
    let mut fence: Option<&str> = None;
    let mut paragraph = 0;
    let mut at = 0;
    // Begin of an unfinished line of which nothing can be shown.
    let mut limit = text.len();
    // Begin of a line that may be the head of a table, and whether it is.
    let mut row: Option<(usize, bool)> = None;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let inner = content(line).trim_end();
        let marker = &inner[..inner.len() - inner.trim_start_matches(['`', '~']).len()];
        let is_complete = line.ends_with('\n');
        if let Some(open) = fence {
            if is_complete && inner.starts_with(open) && inner.chars().all(|c| open.starts_with(c)) {
                (fence, paragraph) = (None, end);
            }
            if !is_complete {
                return start;
            }
            paragraph = paragraph.max(end);
        } else if marker.len() >= 3 {
            if !is_complete {
                limit = start;
                break;
            }
            fence = Some(marker);
            paragraph = end;
        } else {
            if inner.is_empty() && is_complete {
                paragraph = end;
            }
            // The definition of a link is not shown.
            if !is_complete && inner.starts_with('[') && !inner.starts_with("[^") && inner.contains("]:") {
                limit = start;
                break;
            }
            if !is_complete && is_undecided(line) {
                limit = start;
                break;
            }
            // A row may be the head of a table, which the next line decides.
            let is_decided = is_complete || !inner.chars().all(is_of_rule);
            row = match row {
                None => inner.contains('|').then_some((start, false)),
                Some(_) if inner.is_empty() => None,
                Some((head, is_table)) if is_table || !is_decided || is_table_rule(inner) => {
                    Some((head, is_table || is_complete && is_table_rule(inner)))
                }
                Some(_) => inner.contains('|').then_some((start, false)),
            };
        }
    }
    let end = row.map_or(limit, |(start, _)| start.min(limit));
    if fence.is_some() {
        return end;
    }
    let shown = paragraph.min(end) + words(&text[paragraph.min(end)..end]);
    let line = text[..shown].rfind('\n').map_or(0, |at| at + 1);
    if is_undecided(&text[line..shown]) { line } else { shown }
}

/// Returns true for the beginning of a line that may become a list item, a task, a rule, an underline of a
/// heading or emphasis.
fn is_undecided(line: &str) -> bool {
    let is_of_markers = |c: char| c.is_ascii_digit() || c.is_whitespace() || "-*+_=#>~.)".contains(c);
    let boxes = ["[ ]", "[x]", "[X]"];
    line.chars().all(is_of_markers) || boxes.iter().any(|marker| marker.starts_with(content(line).trim_end()))
}

fn is_table_rule(line: &str) -> bool {
    line.contains('-') && line.chars().all(is_of_rule)
}

fn is_of_rule(c: char) -> bool {
    matches!(c, '|' | '-' | ':' | ' ')
}

/// Most spans that are open at a time; text after more of them waits for the end of the part.
const MAX_OPEN: usize = 32;

/// End of a formula between `$$`.
const DISPLAY: char = '\0';

/// Length of the words before the last one, and before the first span that is not closed.
fn words(text: &str) -> usize {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut last_space = 0;
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, c)| *c);
        match c {
            '\\' if matches!(after, '(' | '[') => {
                chars.next();
                open.push((at, if after == '(' { ')' } else { ']' }));
            }
            '\\' if matches!(after, ')' | ']') => {
                chars.next();
                close(&mut open, after);
            }
            '\\' => {
                chars.next();
            }
            '`' => {
                let Some(span) = code_span(&text[at..]) else { break };
                while chars.next_if(|(next, _)| *next < at + span).is_some() {}
            }
            '$' if open.last().is_some_and(|(_, end)| *end == c) => {
                open.pop();
            }
            '$' if after == '$' => {
                chars.next();
                if !close(&mut open, DISPLAY) {
                    open.push((at, DISPLAY));
                }
            }
            '$' if !after.is_whitespace() => open.push((at, '$')),
            '*' | '_' | '~' => {
                let opens = !(after.is_whitespace() || c == '_' && before.is_alphanumeric());
                let closes = !before.is_whitespace();
                if !(closes && close(&mut open, c)) && opens && after != c {
                    open.push((at, c));
                }
            }
            '[' => open.push((at, ']')),
            ']' if after == '(' => {
                close(&mut open, ']');
                open.push((at, ')'));
            }
            '(' if open.last().is_some_and(|(_, end)| *end == ')') => open.push((at, ')')),
            ']' | ')' => {
                close(&mut open, c);
            }
            '<' if after.is_ascii_alphabetic() || after == '/' => open.push((at, '>')),
            '>' => {
                close(&mut open, '>');
            }
            c if c.is_whitespace() && open.is_empty() => last_space = at,
            _ => {}
        }
        if open.len() > MAX_OPEN {
            break;
        }
        open.retain(|(from, end)| *end != '$' || at - from < MAX_WAIT);
        before = c;
    }
    last_space
}

/// Length of the code span that the text begins with: to the next run of as many backticks.
fn code_span(text: &str) -> Option<usize> {
    let inner = text.trim_start_matches('`');
    let ticks = text.len() - inner.len();
    let mut at = ticks;
    while let Some(next) = text[at..].find('`') {
        let start = at + next;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        at = start + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

/// Closes the innermost span with this end, and those within it.
fn close(open: &mut Vec<(usize, char)>, end: char) -> bool {
    let found = open.iter().rposition(|(_, other)| *other == end);
    if let Some(at) = found {
        open.truncate(at);
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_once_they_are_complete() {
        for (text, expected) in [
            ("one two thr", "one two"),
            ("a **bold te", "a"),
            ("a **bold** te", "a **bold**"),
            ("see [the doc", "see"),
            ("see [the doc](http://a b", "see"),
            ("a $5 and", "a"),
            ("| a | b", ""),
            ("text\n| a |\n|---|\n| b |", "text"),
            ("x | y\nand then mo", "x | y\nand then"),
            ("- a\n  ```\n  x\n  y z", "- a\n  ```\n  x\n"),
            ("2 * 3 and mo", "2 * 3 and"),
            ("a $$\nx + y", "a"),
            ("[y]: https", ""),
            ("snake_case is", "snake_case"),
            ("text\n- *", "text"),
            ("- [x", ""),
            ("- [x] w", ""),
            ("a b\n1. o", "a b\n"),
            ("a \\[\n ", "a"),
            ("a `` b` c", "a"),
            ("a `` b` `` c", "a `` b` ``"),
            ("[a](b_(c) \"t t", ""),
        ] {
            assert_eq!(text[..stable(text)].trim_end(), expected.trim_end(), "{text}");
        }
    }
}
