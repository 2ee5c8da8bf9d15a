//! Filters that sort and compare items.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::methods;
use crate::operators::{self, equal, order};
use crate::values::{Args, ENTRY_BYTES, Generator, Items, Key, Path, Value, flag, required};

/// Comparison key of a value: text in lower case, unless `case_sensitive`.
fn compared(interpreter: &Interpreter<'_>, value: Value, case_sensitive: bool) -> Result<Value> {
    match value {
        Value::Text(text) if !case_sensitive => methods::lower(interpreter.budget, &text).map(Value::Text),
        value => Ok(value),
    }
}

/// Sorts by keys. The sort is stable, also in reverse.
fn sorted<T>(interpreter: &Interpreter<'_>, mut keyed: Vec<(Value, T)>, reverse: bool) -> Result<Vec<T>> {
    if reverse {
        keyed.reverse();
    }
    let mut sorted = operators::sort(interpreter.budget, keyed)?;
    if reverse {
        sorted.reverse();
    }
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}

pub(super) fn sort(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [reverse, case_sensitive, attribute] = args.bind(["reverse", "case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let paths = Path::several(&attribute.unwrap_or(Value::None), interpreter.budget)?;
    let mut keyed = Vec::new();
    for item in interpreter.collect(&value)? {
        let mut keys = Vec::new();
        for path in &paths {
            let key = interpreter.follow(path, &item, None)?;
            keys.push(compared(interpreter, key, case_sensitive)?);
        }
        keyed.push((Value::list(keys, interpreter.budget)?, item));
    }
    let sorted = sorted(interpreter, keyed, flag(reverse))?;
    Value::list(sorted, interpreter.budget)
}

pub(super) fn dictsort(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [case_sensitive, by, reverse] = args.bind(["case_sensitive", "by", "reverse"])?;
    let index = match by.as_ref().map(Value::expect_text).transpose()?.map_or("key", |by| by.as_str()) {
        "key" => 0,
        "value" => 1,
        _ => return Err(Error::runtime("You can only sort by either \"key\" or \"value\"")),
    };
    let Value::Dict(dict) = &value else {
        return Err(Error::runtime(format!("'{} object' has no attribute 'items'", value.type_name())));
    };
    let case_sensitive = flag(case_sensitive);
    let mut keyed = Vec::new();
    for item in methods::items(interpreter, dict)? {
        let Value::Tuple(pair) = &item else { continue };
        keyed.push((compared(interpreter, pair.values[index].clone(), case_sensitive)?, item.clone()));
    }
    let sorted = sorted(interpreter, keyed, flag(reverse))?;
    Value::list(sorted, interpreter.budget)
}

pub(super) fn min(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    extreme(interpreter, value, args, Ordering::Less)
}

pub(super) fn max(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    extreme(interpreter, value, args, Ordering::Greater)
}

/// Returns the first minimum or maximum (`wanted`).
fn extreme(interpreter: &mut Interpreter<'_>, value: Value, args: Args, wanted: Ordering) -> Result<Value> {
    let [case_sensitive, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let path = Path::new(&attribute.unwrap_or(Value::None), interpreter.budget)?;
    let mut best: Option<(Value, Value)> = None;
    for item in interpreter.collect(&value)? {
        let key = interpreter.follow(&path, &item, None)?;
        let key = compared(interpreter, key, case_sensitive)?;
        let better = match &best {
            Some((best, _)) => order(interpreter.budget, &key, best)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |(_, item)| item))
}

pub(super) fn unique(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [case_sensitive, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let path = Path::new(&attribute.unwrap_or(Value::None), interpreter.budget)?;
    let mut seen = HashSet::new();
    let mut unique = Vec::new();
    for item in interpreter.collect(&value)? {
        let key = interpreter.follow(&path, &item, None)?;
        let key = compared(interpreter, key, case_sensitive)?;
        interpreter.budget.build(ENTRY_BYTES)?;
        if seen.insert(Key::of(&key, interpreter.budget)?) {
            unique.push(item);
        }
    }
    Value::generator(Generator::of(unique), interpreter.budget)
}

pub(super) fn groupby(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [attribute, default, case_sensitive] = args.bind(["attribute", "default", "case_sensitive"])?;
    let path = Path::new(&required(attribute, "attribute")?, interpreter.budget)?;
    let default = default.and_then(Value::some);
    let case_sensitive = flag(case_sensitive);
    let budget = interpreter.budget;
    let mut keyed = Vec::new();
    for item in interpreter.collect(&value)? {
        let name = interpreter.follow(&path, &item, default.as_ref())?;
        let key = compared(interpreter, name.clone(), case_sensitive)?;
        keyed.push((key.clone(), (key, name, item)));
    }
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (key, name, item) in sorted(interpreter, keyed, false)? {
        match groups.last_mut() {
            Some((last, _, items)) if equal(budget, last, &key)? => items.push(item),
            _ => groups.push((key, name, vec![item])),
        }
    }
    let groups = groups.into_iter().map(|(_, name, items)| {
        let items = vec![name, Value::list(items, budget)?];
        Ok(Value::Tuple(Rc::new(Items::new(items, &["grouper", "list"], budget)?)))
    });
    Value::list(groups.collect::<Result<_>>()?, budget)
}
