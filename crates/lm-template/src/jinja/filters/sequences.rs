//! Filters on lists and other sequences.

use crate::jinja::args::{Args, flag, required};
use crate::jinja::error::{Error, Result};
use crate::jinja::generator::Generator;
use crate::jinja::machine::Machine;
use crate::jinja::text::{Text, TextWriter};
use crate::jinja::value::Value;

pub(super) fn length(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    if let Value::Text(text) = &value {
        machine.limits.read(text.len())?;
    }
    let length = value.len().map(|length| Value::Int(length as i128));
    length.ok_or_else(|| Error::runtime(format!("object of type '{}' has no len()", value.type_name())))
}

pub(super) fn default(_: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [default, boolean] = args.bind(["default_value", "boolean"])?;
    let replaced = value.is_undefined() || (flag(boolean) && !value.is_true());
    Ok(if replaced { default.unwrap_or_else(|| Value::text("")) } else { value })
}

pub(super) fn first(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let mut cursor = machine.iterate(&value)?;
    let first = machine.next(&mut cursor)?;
    Ok(first.unwrap_or_else(|| Value::missing("No first item, sequence was empty.")))
}

pub(super) fn last(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    if let Value::Text(text) = &value {
        let last = text
            .as_str()
            .char_indices()
            .next_back()
            .map(|(at, _)| text.slice(at..text.len(), machine.limits));
        let last = last.transpose()?.map(Value::Text);
        return Ok(last.unwrap_or_else(|| Value::missing("No last item, sequence was empty.")));
    }
    if value.len().is_none() {
        return Err(Error::runtime(format!("'{}' object is not reversible", value.type_name())));
    }
    let last = machine.collect(&value)?.pop();
    Ok(last.unwrap_or_else(|| Value::missing("No last item, sequence was empty.")))
}

pub(super) fn list(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let items = machine.collect(&value)?;
    Value::list(items, machine.limits)
}

/// The entries of a dict as pairs; empty if undefined.
pub(super) fn items(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let items = match &value {
        Value::Undefined(_) => Vec::new(),
        Value::Dict(dict) => crate::jinja::methods::items(machine, dict)?,
        _ => return Err(Error::runtime("Can only get item pairs from a mapping.")),
    };
    Value::generator(Generator::of(items))
}

pub(super) fn reverse(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    if let Value::Text(text) = &value {
        return reverse_text(machine, text).map(Value::Text);
    }
    let mut items = machine.collect(&value)?;
    items.reverse();
    // Python reverses everything that has a length lazily; the rest becomes a list.
    if value.len().is_some() {
        Value::generator(Generator::of(items))
    } else {
        Value::list(items, machine.limits)
    }
}

fn reverse_text(machine: &Machine<'_>, text: &Text) -> Result<Text> {
    let mut out = TextWriter::new(machine.limits);
    for (at, c) in text.as_str().char_indices().rev() {
        machine.limits.step()?;
        out.slice(text, at..at + c.len_utf8())?;
    }
    Ok(out.finish().with_markup(text.is_markup()))
}

/// Splits into the given number of lists of about the same length.
pub(super) fn slice(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [slices, fill] = args.bind(["slices", "fill_with"])?;
    let slices = required(slices, "slices")?.expect_int()?;
    let slices = usize::try_from(slices).map_err(|_| Error::runtime("slices is a positive number"))?;
    let items = machine.collect(&value)?;
    if slices == 0 {
        return Err(Error::runtime("integer modulo by zero"));
    }
    let (size, longer) = (items.len() / slices, items.len() % slices);
    let fill = fill.and_then(Value::some);
    let mut items = items.into_iter();
    let mut lists = Vec::new();
    for place in 0..slices {
        machine.limits.step()?;
        let mut list: Vec<Value> = items.by_ref().take(size + usize::from(place < longer)).collect();
        if place >= longer {
            list.extend(fill.clone());
        }
        lists.push(Value::list(list, machine.limits)?);
    }
    Value::generator(Generator::of(lists))
}

/// Splits into lists of the given length.
pub(super) fn batch(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [size, fill] = args.bind(["linecount", "fill_with"])?;
    let size = required(size, "linecount")?.expect_int()?;
    let items = machine.collect(&value)?;
    let limits = machine.limits;
    let Ok(size) = usize::try_from(size) else { return Err(Error::runtime("linecount is not negative")) };
    let mut lists = Vec::new();
    let mut list: Vec<Value> = Vec::new();
    for (place, item) in items.into_iter().enumerate() {
        if list.len() == size && place > 0 {
            lists.push(Value::list(std::mem::take(&mut list), limits)?);
        }
        list.push(item);
    }
    if !list.is_empty() {
        if let Some(fill) = fill.and_then(Value::some) {
            limits.build(size.saturating_mul(size_of::<Value>()))?;
            list.resize(size.max(list.len()), fill);
        }
        lists.push(Value::list(list, limits)?);
    }
    Value::generator(Generator::of(lists))
}
