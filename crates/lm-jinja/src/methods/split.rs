//! Splitting, replacing and joining texts.

use std::ops::Range;

use super::character_classes::is_space;
use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::text::html::escape;
use crate::text::{Text, TextWriter};
use crate::values::{Args, Value, flag, required};

/// `split` and `rsplit`.
pub(super) fn split(budget: &Budget, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [separator, limit] = args.bind(["sep", "maxsplit"])?;
    let separator = separator.and_then(Value::some).map(|text| text.expect_text().cloned()).transpose()?;
    let limit = limit.map(|limit| limit.expect_index()).transpose()?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let from_right = name == "rsplit";
    let string = text.as_str();
    let mut pieces = Pieces::of(budget, text);
    match &separator {
        Some(separator) if separator.is_empty() => return Err(Error::runtime("empty separator")),
        Some(separator) if from_right => {
            let mut end = string.len();
            for (at, found) in string.rmatch_indices(separator.as_str()).take(limit) {
                pieces.push(at + found.len()..end)?;
                end = at;
            }
            pieces.push(0..end)?;
        }
        Some(separator) => {
            let mut start = 0;
            for (at, found) in string.match_indices(separator.as_str()).take(limit) {
                pieces.push(start..at)?;
                start = at + found.len();
            }
            pieces.push(start..string.len())?;
        }
        None if from_right => words_from_right(&mut pieces, string, limit)?,
        None => words(&mut pieces, string, limit)?,
    }
    pieces.finish(from_right)
}

/// Pieces of a text, each counted before its creation.
struct Pieces<'a> {
    budget: &'a Budget,
    text: &'a Text,
    values: Vec<Value>,
}

impl<'a> Pieces<'a> {
    fn of(budget: &'a Budget, text: &'a Text) -> Self {
        Self { budget, text, values: Vec::new() }
    }

    fn push(&mut self, range: Range<usize>) -> Result<()> {
        self.budget.step()?;
        self.budget.build(2 * size_of::<Value>())?;
        self.values.push(Value::Text(self.text.slice(range, self.budget)?));
        Ok(())
    }

    /// The pieces as a list, reversed if they were found from the right.
    fn finish(mut self, reversed: bool) -> Result<Value> {
        if reversed {
            self.values.reverse();
        }
        Value::list(self.values, self.budget)
    }
}

/// Splits at whitespace; after `limit` pieces, the rest stays whole except for leading whitespace.
fn words(pieces: &mut Pieces<'_>, text: &str, limit: usize) -> Result<()> {
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let start = text.len() - rest.len();
        let length = match rest.find(is_space) {
            Some(length) if pieces.values.len() < limit => length,
            _ => rest.len(),
        };
        pieces.push(start..start + length)?;
        rest = rest[length..].trim_start_matches(is_space);
    }
    Ok(())
}

fn words_from_right(pieces: &mut Pieces<'_>, text: &str, limit: usize) -> Result<()> {
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        let last = rest.char_indices().rev().find(|(_, c)| is_space(*c));
        let start = match last {
            Some((at, c)) if pieces.values.len() < limit => at + c.len_utf8(),
            _ => 0,
        };
        pieces.push(start..rest.len())?;
        rest = rest[..start].trim_end_matches(is_space);
    }
    Ok(())
}

/// `splitlines`.
pub(super) fn splitlines(budget: &Budget, text: &Text, args: Args) -> Result<Value> {
    let [keep] = args.bind(["keepends"])?;
    let keep = flag(keep);
    let mut pieces = Pieces::of(budget, text);
    for (line, end) in lines(text.as_str()) {
        pieces.push(if keep { line.start..end } else { line })?;
    }
    pieces.finish(false)
}

/// The lines of a text, each with the end of its line break; a final line break starts no further line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, usize)> {
    let is_break = |c: char| {
        matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find(is_break).unwrap_or(rest.len());
        let after = &rest[length..];
        let ending = match after.chars().next() {
            Some('\r') if after[1..].starts_with('\n') => 2,
            Some(c) => c.len_utf8(),
            None => 0,
        };
        let line = start..start + length;
        start = line.end + ending;
        Some((line, start))
    })
}

/// `partition` and `rpartition`.
pub(super) fn partition(budget: &Budget, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [separator] = args.bind_positional()?;
    let separator = required(separator, "sep")?;
    let (separator, string) = (separator.expect_text()?.as_str(), text.as_str());
    if separator.is_empty() {
        return Err(Error::runtime("empty separator"));
    }
    let found = if name == "partition" { string.find(separator) } else { string.rfind(separator) };
    let ranges = match found {
        Some(at) => [0..at, at..at + separator.len(), at + separator.len()..string.len()],
        None if name == "partition" => [0..string.len(), 0..0, 0..0],
        None => [0..0, 0..0, 0..string.len()],
    };
    let parts = ranges.map(|range| text.slice(range, budget).map(Value::Text));
    Value::tuple(parts.into_iter().collect::<Result<_>>()?, budget)
}

/// The method `replace`.
pub(super) fn replace_method(budget: &Budget, text: &Text, args: Args) -> Result<Value> {
    let [old, new, count] = args.bind(["old", "new", "count"])?;
    let (old, new) = (required(old, "old")?, required(new, "new")?);
    let count = count.map_or(Ok(-1), |count| count.expect_index())?;
    replace(budget, text, old.expect_text()?, new.expect_text()?, count).map(Value::Text)
}

/// `str.replace`; a negative count replaces all occurrences.
pub(crate) fn replace(budget: &Budget, text: &Text, old: &Text, new: &Text, count: i64) -> Result<Text> {
    let new = if text.is_markup() { escape(budget, new)? } else { new.clone() };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = TextWriter::new(budget);
    let mut at = 0;
    for (start, found) in text.as_str().match_indices(old.as_str()).take(count) {
        budget.step()?;
        out.slice(text, at..start)?;
        out.text(&new)?;
        at = start + found.len();
    }
    out.slice(text, at..text.len())?;
    Ok(out.finish().with_markup(text.is_markup()))
}

/// `separator.join(items)`.
pub(super) fn join(interpreter: &mut Interpreter<'_>, separator: &Text, args: Args) -> Result<Value> {
    let [items] = args.bind_positional()?;
    let items = interpreter.collect(&required(items, "iterable")?)?;
    let budget = interpreter.budget;
    let mut out = TextWriter::new(budget);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.text(separator)?;
        }
        let item = item.expect_text()?;
        if separator.is_markup() { out.text(&escape(budget, item)?)? } else { out.text(item)? }
    }
    Ok(Value::Text(out.finish().with_markup(separator.is_markup())))
}
