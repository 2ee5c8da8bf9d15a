//! Filters on text.

use super::Path;
use crate::jinja::args::{Args, flag, required};
use crate::jinja::dict::Dict;
use crate::jinja::error::{Error, Result};
use crate::jinja::formatting::percent;
use crate::jinja::machine::Machine;
use crate::jinja::methods;
use crate::jinja::operators;
use crate::jinja::python_text;
use crate::jinja::text::{Text, TextWriter};
use crate::jinja::value::Value;

/// Converts a value to text; markup stays markup (`soft_str`).
pub(super) fn soft_text(machine: &Machine<'_>, value: &Value) -> Result<Text> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => python_text::str(machine, other),
    }
}

pub(super) fn string(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    soft_text(machine, &value).map(Value::Text)
}

pub(super) fn upper(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::upper(machine.limits, &soft_text(machine, &value)?).map(Value::Text)
}

pub(super) fn lower(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::lower(machine.limits, &soft_text(machine, &value)?).map(Value::Text)
}

pub(super) fn capitalize(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::capitalize(machine.limits, &soft_text(machine, &value)?).map(Value::Text)
}

pub(super) fn title(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::title_word(machine.limits, &soft_text(machine, &value)?).map(Value::Text)
}

pub(super) fn trim(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [characters] = args.bind(["chars"])?;
    let args = Args::of(characters.into_iter().collect());
    methods::strip(machine.limits, &soft_text(machine, &value)?, "strip", args)
}

pub(super) fn center(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [width] = args.bind(["width"])?;
    let width = width.map_or(Ok(80), |width| width.expect_int())?;
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    methods::center(machine.limits, &soft_text(machine, &value)?, &Text::template(" "), width)
        .map(Value::Text)
}

pub(super) fn replace(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [old, new, count] = args.bind(["old", "new", "count"])?;
    let old = python_text::str(machine, &required(old, "old")?)?;
    let new = python_text::str(machine, &required(new, "new")?)?;
    let count = count.and_then(Value::some).map_or(Ok(-1), |count| count.expect_int())?;
    let text = python_text::str(machine, &value)?;
    methods::replace(machine.limits, &text, &old, &new, count).map(Value::Text)
}

pub(super) fn join(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [separator, attribute] = args.bind(["d", "attribute"])?;
    let separator = separator.map_or_else(|| Ok(Text::default()), |text| python_text::str(machine, &text))?;
    let path = Path::new(&attribute.unwrap_or(Value::None), machine.limits)?;
    let mut out = TextWriter::new(machine.limits);
    let mut cursor = machine.iterate(&value)?;
    let mut first = true;
    while let Some(item) = machine.next(&mut cursor)? {
        let item = path.follow(machine, &item, None)?;
        if !std::mem::replace(&mut first, false) {
            out.text(&separator)?;
        }
        out.text(&python_text::str(machine, &item)?)?;
    }
    Ok(Value::Text(out.finish()))
}

/// `format | format(values)`: the `%` operator.
pub(super) fn format(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let text = soft_text(machine, &value)?;
    let values = match (args.positional.is_empty(), args.named.is_empty()) {
        (false, false) => {
            return Err(Error::runtime("can't handle positional and keyword arguments at the same time"));
        }
        (_, true) => Value::tuple(args.positional, machine.limits)?,
        (true, false) => {
            let mut values = Dict::default();
            for (name, value) in args.named {
                values.insert(Value::Text(name), value, machine.limits)?;
            }
            Value::Dict(values.into())
        }
    };
    percent(machine, &text, &values).map(Value::Text)
}

/// Indents lines, except the first line and empty ones unless requested.
pub(super) fn indent(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [width, first, blank] = args.bind(["width", "first", "blank"])?;
    let (first, blank) = (flag(first), flag(blank));
    let limits = machine.limits;
    let indent = match width {
        Some(Value::Text(indent)) => indent,
        width => {
            let width = width.map_or(Ok(4), |width| width.expect_int())?;
            let mut blanks = TextWriter::new(limits);
            blanks.repeat(&Text::template(" "), usize::try_from(width.max(0)).unwrap_or(usize::MAX))?;
            blanks.finish()
        }
    };
    let text = value.expect_text()?;
    let markup = text.is_markup();
    let mut closed = TextWriter::new(limits);
    closed.text(text)?;
    closed.template("\n")?;
    let closed = closed.finish();
    let mut out = TextWriter::new(limits);
    for (number, (line, _)) in methods::lines(closed.as_str()).enumerate() {
        limits.step()?;
        out.template(if number > 0 { "\n" } else { "" })?;
        if if number == 0 { first } else { blank || !line.is_empty() } {
            out.text(&indent)?;
        }
        out.slice(&closed, line)?;
    }
    Ok(Value::Text(out.finish().with_markup(markup)))
}

pub(super) fn truncate(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [length, kill_words, end, leeway] = args.bind(["length", "killwords", "end", "leeway"])?;
    let length = length.map_or(Ok(255), |length| length.expect_int())?;
    let leeway = leeway.and_then(Value::some).map_or(Ok(5), |leeway| leeway.expect_int())?;
    let end = end.map_or_else(|| Ok(Text::template("...")), |end| end.expect_text().cloned())?;
    let kept = length.saturating_sub(end.count() as i128);
    if kept < 0 || leeway < 0 {
        return Err(Error::runtime("truncate: the length is at least that of the end"));
    }
    if value.len().is_some_and(|count| count as i128 <= length.saturating_add(leeway)) {
        return Ok(value);
    }
    let text = value.expect_text()?;
    let bytes = text.as_str().char_indices().nth(usize::try_from(kept).unwrap_or(usize::MAX));
    let mut cut = bytes.map_or(text.len(), |(at, _)| at);
    if !flag(kill_words) {
        cut = text.as_str()[..cut].rfind(' ').unwrap_or(cut);
    }
    let mut out = TextWriter::new(machine.limits);
    out.slice(text, 0..cut)?;
    out.text(&end)?;
    Ok(Value::Text(out.finish().with_markup(text.is_markup())))
}

pub(super) fn wordcount(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let text = soft_text(machine, &value)?;
    machine.limits.read(text.len())?;
    let words = text.as_str().split(|c: char| c != '_' && !c.is_alphanumeric());
    Ok(Value::Int(words.filter(|word| !word.is_empty()).count() as i128))
}

/// `repr` with sorted dict keys. (Python wraps lines longer than 80 characters; this does not.)
pub(super) fn pprint(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let value = with_sorted_keys(machine, &value)?;
    python_text::repr(machine, &value).map(Value::Text)
}

fn with_sorted_keys(machine: &Machine<'_>, value: &Value) -> Result<Value> {
    let limits = machine.limits;
    limits.step()?;
    let all = |items: &[Value]| {
        items.iter().map(|item| with_sorted_keys(machine, item)).collect::<Result<Vec<_>>>()
    };
    match value {
        Value::List(items) => Value::list(all(&items.values)?, limits),
        Value::Tuple(items) => Value::tuple(all(&items.values)?, limits),
        Value::Dict(dict) => {
            let entries = dict.entries().to_vec();
            let entries = operators::sort(limits, entries.clone()).unwrap_or(entries);
            let mut sorted = Dict::default();
            for (key, value) in entries {
                sorted.insert(key, with_sorted_keys(machine, &value)?, limits)?;
            }
            Ok(Value::Dict(sorted.into()))
        }
        other => Ok(other.clone()),
    }
}
