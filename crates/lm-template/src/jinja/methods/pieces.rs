//! Taking texts apart and putting them together.

use std::ops::Range;

use super::questions::is_space;
use crate::jinja::args::{Args, flag, required};
use crate::jinja::error::{Error, Result};
use crate::jinja::limits::Limits;
use crate::jinja::machine::Machine;
use crate::jinja::operators::escape;
use crate::jinja::text::{Text, TextWriter};
use crate::jinja::value::Value;

/// `split` and `rsplit`.
pub(super) fn split(limits: &Limits, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [separator, limit] = args.bind(["sep", "maxsplit"])?;
    let separator = separator.and_then(Value::some).map(|text| text.expect_text().cloned()).transpose()?;
    let limit = limit.map(|limit| limit.expect_int()).transpose()?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let from_right = name == "rsplit";
    let string = text.as_str();
    let ranges = match &separator {
        Some(separator) if separator.is_empty() => return Err(Error::runtime("empty separator")),
        Some(separator) => {
            let separator = separator.as_str();
            let mut gaps: Vec<(usize, usize)> = if from_right {
                string
                    .rmatch_indices(separator)
                    .take(limit)
                    .map(|(at, found)| (at, at + found.len()))
                    .collect()
            } else {
                string
                    .match_indices(separator)
                    .take(limit)
                    .map(|(at, found)| (at, at + found.len()))
                    .collect()
            };
            gaps.sort_unstable();
            between(&gaps, string.len())
        }
        None if from_right => words_from_right(string, limit),
        None => words(string, limit),
    };
    slices(limits, text, ranges)
}

/// What lies between gaps, and before and after them.
fn between(gaps: &[(usize, usize)], end: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(gaps.iter().map(|gap| gap.1));
    let ends = gaps.iter().map(|gap| gap.0).chain([end]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// Words and where they are; after so many, the rest as it is but for the space before it.
fn words(text: &str, limit: usize) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let start = text.len() - rest.len();
        let length =
            if words.len() == limit { rest.len() } else { rest.find(is_space).unwrap_or(rest.len()) };
        words.push(start..start + length);
        rest = rest[length..].trim_start_matches(is_space);
    }
    words
}

fn words_from_right(text: &str, limit: usize) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        let last = rest.char_indices().rev().find(|(_, c)| is_space(*c));
        let start = match last {
            Some((at, c)) if words.len() < limit => at + c.len_utf8(),
            _ => 0,
        };
        words.push(start..rest.len());
        rest = rest[..start].trim_end_matches(is_space);
    }
    words.reverse();
    words
}

fn slices(limits: &Limits, text: &Text, ranges: Vec<Range<usize>>) -> Result<Value> {
    limits.build(ranges.len() * size_of::<Value>() * 2)?;
    let pieces = ranges.into_iter().map(|range| text.slice(range, limits).map(Value::Text));
    Value::list(pieces.collect::<Result<_>>()?, limits)
}

/// `splitlines`.
pub(super) fn splitlines(limits: &Limits, text: &Text, args: Args) -> Result<Value> {
    let [keep] = args.bind(["keepends"])?;
    let keep = flag(keep);
    let ranges =
        lines(text.as_str()).into_iter().map(|(line, end)| if keep { line.start..end } else { line });
    slices(limits, text, ranges.collect())
}

/// The lines of a text, and where each ends with its line break; a break at the end begins no line.
pub(in crate::jinja) fn lines(text: &str) -> Vec<(Range<usize>, usize)> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if !matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
        {
            continue;
        }
        let mut end = at + c.len_utf8();
        if c == '\r' && characters.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push((start..at, end));
        start = end;
    }
    if start < text.len() {
        lines.push((start..text.len(), text.len()));
    }
    lines
}

/// `partition` and `rpartition`.
pub(super) fn partition(limits: &Limits, text: &Text, name: &str, args: Args) -> Result<Value> {
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
    let parts = ranges.map(|range| text.slice(range, limits).map(Value::Text));
    Value::tuple(parts.into_iter().collect::<Result<_>>()?, limits)
}

/// The method `replace`.
pub(super) fn replace_method(limits: &Limits, text: &Text, args: Args) -> Result<Value> {
    let [old, new, count] = args.bind(["old", "new", "count"])?;
    let (old, new) = (required(old, "old")?, required(new, "new")?);
    let count = count.map_or(Ok(-1), |count| count.expect_int())?;
    replace(limits, text, old.expect_text()?, new.expect_text()?, count).map(Value::Text)
}

/// `str.replace`; a negative count means all.
pub(in crate::jinja) fn replace(
    limits: &Limits,
    text: &Text,
    old: &Text,
    new: &Text,
    count: i128,
) -> Result<Text> {
    let new = if text.is_markup() { escape(limits, new)? } else { new.clone() };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = TextWriter::new(limits);
    let mut at = 0;
    for (start, found) in text.as_str().match_indices(old.as_str()).take(count) {
        limits.step()?;
        out.slice(text, at..start)?;
        out.text(&new)?;
        at = start + found.len();
    }
    out.slice(text, at..text.len())?;
    Ok(out.finish().with_markup(text.is_markup()))
}

/// `separator.join(items)`.
pub(super) fn join(machine: &mut Machine<'_>, separator: &Text, args: Args) -> Result<Value> {
    let [items] = args.bind_positional()?;
    let items = machine.collect(&required(items, "iterable")?)?;
    let limits = machine.limits;
    let mut out = TextWriter::new(limits);
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.text(separator)?;
        }
        let item = item.expect_text()?;
        if separator.is_markup() { out.text(&escape(limits, item)?)? } else { out.text(item)? }
    }
    Ok(Value::Text(out.finish().with_markup(separator.is_markup())))
}
