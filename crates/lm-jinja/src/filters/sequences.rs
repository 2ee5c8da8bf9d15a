//! Filters on lists and other sequences.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::text::{Text, TextWriter};
use crate::values::{Args, Generator, Value, flag, required};

pub(super) fn length(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    if let Value::Text(text) = &value {
        interpreter.budget.read(text.len())?;
    }
    let length = value.len().map(|length| Value::Int(length as i128));
    length.ok_or_else(|| Error::runtime(format!("object of type '{}' has no len()", value.type_name())))
}

pub(super) fn default(_: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [default, boolean] = args.bind(["default_value", "boolean"])?;
    let replaced = value.is_undefined() || (flag(boolean) && !value.is_true());
    Ok(if replaced { default.unwrap_or_else(|| Value::text("")) } else { value })
}

pub(super) fn first(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let mut cursor = interpreter.iterate(&value)?;
    let first = interpreter.next(&mut cursor)?;
    Ok(first.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")))
}

pub(super) fn last(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    if let Value::Text(text) = &value {
        let last = text
            .as_str()
            .char_indices()
            .next_back()
            .map(|(at, _)| text.slice(at..text.len(), interpreter.budget));
        let last = last.transpose()?.map(Value::Text);
        return Ok(last.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")));
    }
    if value.len().is_none() {
        return Err(Error::runtime(format!("'{}' object is not reversible", value.type_name())));
    }
    let last = interpreter.collect(&value)?.pop();
    Ok(last.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")))
}

pub(super) fn list(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let items = interpreter.collect(&value)?;
    Value::list(items, interpreter.budget)
}

/// The entries of a dict as pairs; empty if undefined.
pub(super) fn items(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let items = match &value {
        Value::Undefined(_) => Vec::new(),
        Value::Dict(dict) => crate::methods::items(interpreter, dict)?,
        _ => return Err(Error::runtime("Can only get item pairs from a mapping.")),
    };
    Value::generator(Generator::of(items), interpreter.budget)
}

pub(super) fn reverse(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    if let Value::Text(text) = &value {
        return reverse_text(interpreter, text).map(Value::Text);
    }
    let mut items = interpreter.collect(&value)?;
    items.reverse();
    // Python reverses everything that has a length lazily; the rest becomes a list.
    if value.len().is_some() {
        Value::generator(Generator::of(items), interpreter.budget)
    } else {
        Value::list(items, interpreter.budget)
    }
}

fn reverse_text(interpreter: &Interpreter<'_>, text: &Text) -> Result<Text> {
    let mut out = TextWriter::new(interpreter.budget);
    for (at, c) in text.as_str().char_indices().rev() {
        interpreter.budget.step()?;
        out.slice(text, at..at + c.len_utf8())?;
    }
    Ok(out.finish().with_markup(text.is_markup()))
}

/// Splits into the given number of lists of about the same length.
pub(super) fn slice(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [slices, fill] = args.bind(["slices", "fill_with"])?;
    let slices = required(slices, "slices")?.expect_int()?;
    let slices = usize::try_from(slices).map_err(|_| Error::runtime("slices is a positive number"))?;
    let items = interpreter.collect(&value)?;
    if slices == 0 {
        return Err(Error::runtime("integer modulo by zero"));
    }
    let (size, longer) = (items.len() / slices, items.len() % slices);
    let fill = fill.and_then(Value::some);
    let mut items = items.into_iter();
    let mut lists = Vec::new();
    for index in 0..slices {
        interpreter.budget.step()?;
        let mut list: Vec<Value> = items.by_ref().take(size + usize::from(index < longer)).collect();
        if index >= longer {
            list.extend(fill.clone());
        }
        lists.push(Value::list(list, interpreter.budget)?);
    }
    Value::generator(Generator::of(lists), interpreter.budget)
}

/// Splits into lists of the given length.
pub(super) fn batch(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [size, fill] = args.bind(["linecount", "fill_with"])?;
    let size = required(size, "linecount")?.expect_int()?;
    let items = interpreter.collect(&value)?;
    let budget = interpreter.budget;
    let filled = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut lists = Vec::new();
    let mut list: Vec<Value> = Vec::new();
    for item in items {
        if list.len() == size {
            lists.push(Value::list(std::mem::take(&mut list), budget)?);
        }
        list.push(item);
    }
    if !list.is_empty() {
        if let Some(fill) = fill.and_then(Value::some) {
            budget.build(filled.saturating_mul(size_of::<Value>()))?;
            list.resize(filled.max(list.len()), fill);
        }
        lists.push(Value::list(list, budget)?);
    }
    Value::generator(Generator::of(lists), interpreter.budget)
}
