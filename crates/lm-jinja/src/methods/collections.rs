//! Methods of dicts and lists.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::operators::equal;
use crate::text::Text;
use crate::values::{Args, Dict, Function, Value, required};
use crate::{formatting, functions};

pub(super) fn dict_method(
    interpreter: &mut Interpreter<'_>,
    dict: &Dict,
    name: &str,
    args: Args,
) -> Result<Value> {
    let budget = interpreter.budget;
    match name {
        "get" => {
            let [key, default] = args.bind_positional()?;
            let found = dict.get(&required(key, "key")?, budget)?;
            return Ok(found.cloned().or(default).unwrap_or(Value::None));
        }
        "fromkeys" => return functions::call(Function::DictFromKeys, interpreter, args),
        _ => {
            args.bind_positional::<0>()?;
        }
    }
    budget.build(dict.len() * size_of::<Value>())?;
    let keys = || dict.entries().iter().map(|(key, _)| key.clone()).collect();
    let values = || dict.entries().iter().map(|(_, value)| value.clone()).collect();
    match name {
        "keys" => Value::view("dict_keys", keys(), budget),
        "values" => Value::view("dict_values", values(), budget),
        "items" => Value::view("dict_items", items(interpreter, dict)?, budget),
        _ => {
            let mut copy = Dict::default();
            for (key, value) in dict.entries() {
                copy.insert(key.clone(), value.clone(), budget)?;
            }
            Ok(Value::Dict(copy.into()))
        }
    }
}

/// The entries of a dict as pairs.
pub(crate) fn items(interpreter: &Interpreter<'_>, dict: &Dict) -> Result<Vec<Value>> {
    let pair =
        |(key, value): &(Value, Value)| Value::tuple(vec![key.clone(), value.clone()], interpreter.budget);
    dict.entries().iter().map(pair).collect()
}

/// Methods of lists; tuples and ranges share some.
pub(super) fn list_method(
    interpreter: &mut Interpreter<'_>,
    list: &Value,
    items: &[Value],
    name: &str,
    args: Args,
) -> Result<Value> {
    let budget = interpreter.budget;
    if name == "copy" {
        args.bind_positional::<0>()?;
        budget.build(size_of_val(items))?;
        return Value::list(items.to_vec(), budget);
    }
    let [wanted, start, stop] = args.bind_positional()?;
    let wanted = required(wanted, "value")?;
    if name == "count" && start.is_some() {
        return Err(Error::runtime("count() takes exactly one argument"));
    }
    let bound = |bound: Option<Value>, default: usize| -> Result<usize> {
        let Some(bound) = bound else { return Ok(default) };
        let bound = bound.expect_int()?;
        let bound = if bound < 0 { (bound.saturating_add(items.len() as i128)).max(0) } else { bound };
        Ok(usize::try_from(bound).unwrap_or(usize::MAX).min(items.len()))
    };
    let (start, stop) = (bound(start, 0)?, bound(stop, items.len())?);
    let mut count = 0;
    for (index, item) in items.iter().enumerate().take(stop).skip(start) {
        if equal(budget, item, &wanted)? {
            if name == "index" {
                return Ok(Value::Int(index as i128));
            }
            count += 1;
        }
    }
    if name == "count" {
        return Ok(Value::Int(count));
    }
    Err(Error::runtime(format!("the value is not in the {}", list.type_name())))
}

/// `text.format_map(dict)`.
pub(super) fn format_map(interpreter: &mut Interpreter<'_>, text: &Text, args: Args) -> Result<Value> {
    let [mapping] = args.bind_positional()?;
    let Value::Dict(mapping) = required(mapping, "mapping")? else {
        return Err(Error::runtime("format_map expects a mapping"));
    };
    interpreter.budget.build(mapping.len() * size_of::<(Text, Value)>())?;
    let named = mapping.entries().iter().filter_map(|(key, value)| match key {
        Value::Text(name) => Some((name.clone(), value.clone())),
        _ => None,
    });
    let args = Args { positional: Vec::new(), named: named.collect() };
    formatting::format(interpreter, text, &args).map(Value::Text)
}
