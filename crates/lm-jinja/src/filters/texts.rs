//! Filters on text.

use crate::error::{BoxedResult as Result, Error};
use crate::formatting::percent;
use crate::interpreter::Interpreter;
use crate::text::{Text, TextWriter};
use crate::values::{Args, Dict, Path, Value, flag, required};
use crate::{methods, operators, python_text};

/// Converts a value to text; markup stays markup (`soft_str`).
pub(super) fn soft_text(interpreter: &Interpreter<'_>, value: &Value) -> Result<Text> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => python_text::str(interpreter, other),
    }
}

pub(super) fn string(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    soft_text(interpreter, &value).map(Value::Text)
}

pub(super) fn upper(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::upper(interpreter.budget, &soft_text(interpreter, &value)?).map(Value::Text)
}

pub(super) fn lower(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::lower(interpreter.budget, &soft_text(interpreter, &value)?).map(Value::Text)
}

pub(super) fn capitalize(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::capitalize(interpreter.budget, &soft_text(interpreter, &value)?).map(Value::Text)
}

pub(super) fn title(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    methods::title_word(interpreter.budget, &soft_text(interpreter, &value)?).map(Value::Text)
}

pub(super) fn trim(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [characters] = args.bind(["chars"])?;
    let args = Args::of(characters.into_iter().collect());
    methods::strip(interpreter.budget, &soft_text(interpreter, &value)?, "strip", args)
}

pub(super) fn center(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [width] = args.bind(["width"])?;
    let width = width.map_or(Ok(80), |width| width.expect_int())?;
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    methods::center(interpreter.budget, &soft_text(interpreter, &value)?, &Text::template(" "), width)
        .map(Value::Text)
}

pub(super) fn replace(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [old, new, count] = args.bind(["old", "new", "count"])?;
    let old = python_text::str(interpreter, &required(old, "old")?)?;
    let new = python_text::str(interpreter, &required(new, "new")?)?;
    let count = count.and_then(Value::some).map_or(Ok(-1), |count| count.expect_index())?;
    let text = python_text::str(interpreter, &value)?;
    methods::replace(interpreter.budget, &text, &old, &new, count).map(Value::Text)
}

pub(super) fn join(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [separator, attribute] = args.bind(["d", "attribute"])?;
    let separator =
        separator.map_or_else(|| Ok(Text::default()), |text| python_text::str(interpreter, &text))?;
    let path = Path::new(&attribute.unwrap_or(Value::None), interpreter.budget)?;
    let mut out = TextWriter::new(interpreter.budget);
    let mut cursor = interpreter.iterate(&value)?;
    let mut first = true;
    while let Some(item) = interpreter.next(&mut cursor)? {
        let item = interpreter.follow(&path, &item, None)?;
        if !std::mem::replace(&mut first, false) {
            out.text(&separator)?;
        }
        out.text(&python_text::str(interpreter, &item)?)?;
    }
    Ok(Value::Text(out.finish()))
}

/// `format | format(values)`: the `%` operator.
pub(super) fn format(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let text = soft_text(interpreter, &value)?;
    let values = match (args.positional.is_empty(), args.named.is_empty()) {
        (false, false) => {
            return Err(Error::runtime("can't handle positional and keyword arguments at the same time"));
        }
        (_, true) => Value::tuple(args.positional, interpreter.budget)?,
        (true, false) => {
            let mut values = Dict::default();
            for (name, value) in args.named {
                values.insert(Value::Text(name), value, interpreter.budget)?;
            }
            Value::Dict(values.into())
        }
    };
    percent(interpreter, &text, &values).map(Value::Text)
}

/// Indents lines, except the first line and empty ones unless requested.
pub(super) fn indent(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [width, first, blank] = args.bind(["width", "first", "blank"])?;
    let (first, blank) = (flag(first), flag(blank));
    let budget = interpreter.budget;
    let indent = match width {
        Some(Value::Text(indent)) => indent,
        width => {
            let width = width.map_or(Ok(4), |width| width.expect_int())?;
            let mut blanks = TextWriter::new(budget);
            blanks.repeat(&Text::template(" "), usize::try_from(width.max(0)).unwrap_or(usize::MAX))?;
            blanks.finish()
        }
    };
    let text = value.expect_text()?;
    let markup = text.is_markup();
    let mut closed = TextWriter::new(budget);
    closed.text(text)?;
    closed.template("\n")?;
    let closed = closed.finish();
    let mut out = TextWriter::new(budget);
    for (number, (line, _)) in methods::lines(closed.as_str()).enumerate() {
        budget.step()?;
        out.template(if number > 0 { "\n" } else { "" })?;
        if if number == 0 { first } else { blank || !line.is_empty() } {
            out.text(&indent)?;
        }
        out.slice(&closed, line)?;
    }
    Ok(Value::Text(out.finish().with_markup(markup)))
}

pub(super) fn truncate(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [length, kill_words, end, leeway] = args.bind(["length", "killwords", "end", "leeway"])?;
    let length = length.map_or(Ok(255), |length| length.expect_int())?;
    let leeway = leeway.and_then(Value::some).map_or(Ok(5), |leeway| leeway.expect_int())?;
    let end = end.unwrap_or_else(|| Value::text("..."));
    let end_length = end.len().ok_or_else(|| Error::runtime("truncate: the end has no length"))?;
    let kept = length.saturating_sub(end_length as i128);
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
    let mut out = TextWriter::new(interpreter.budget);
    out.slice(text, 0..cut)?;
    out.text(end.expect_text()?)?;
    Ok(Value::Text(out.finish().with_markup(text.is_markup())))
}

pub(super) fn wordcount(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let text = soft_text(interpreter, &value)?;
    interpreter.budget.read(text.len())?;
    let words = text.as_str().split(|c: char| c != '_' && !c.is_alphanumeric());
    Ok(Value::Int(words.filter(|word| !word.is_empty()).count() as i128))
}

/// `repr` with sorted dict keys. (Python wraps lines longer than 80 characters; this does not.)
pub(super) fn pprint(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let value = with_sorted_keys(interpreter, &value)?;
    python_text::repr(interpreter, &value).map(Value::Text)
}

fn with_sorted_keys(interpreter: &Interpreter<'_>, value: &Value) -> Result<Value> {
    let budget = interpreter.budget;
    budget.step()?;
    let all = |items: &[Value]| {
        items.iter().map(|item| with_sorted_keys(interpreter, item)).collect::<Result<Vec<_>>>()
    };
    match value {
        Value::List(items) => Value::list(all(&items.values)?, budget),
        Value::Tuple(items) => Value::tuple(all(&items.values)?, budget),
        Value::Dict(dict) => {
            let entries = dict.entries().to_vec();
            let entries = operators::sort(budget, entries.clone()).unwrap_or(entries);
            let mut sorted = Dict::default();
            for (key, value) in entries {
                sorted.insert(key, with_sorted_keys(interpreter, &value)?, budget)?;
            }
            Ok(Value::Dict(sorted.into()))
        }
        other => Ok(other.clone()),
    }
}
