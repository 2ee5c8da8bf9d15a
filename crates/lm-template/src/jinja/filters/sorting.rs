//! Filters that sort and compare items.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;

use super::Path;
use crate::jinja::args::{Args, flag, required};
use crate::jinja::dict::{self, Key};
use crate::jinja::error::{Error, Result};
use crate::jinja::generator::Generator;
use crate::jinja::machine::Machine;
use crate::jinja::methods;
use crate::jinja::operators::{self, equal, order};
use crate::jinja::value::{Items, Value};

/// Comparison key of a value: text in lower case, unless `case_sensitive`.
fn compared(machine: &Machine<'_>, value: Value, case_sensitive: bool) -> Result<Value> {
    match value {
        Value::Text(text) if !case_sensitive => methods::lower(machine.limits, &text).map(Value::Text),
        value => Ok(value),
    }
}

/// Sorts by keys. The sort is stable, also in reverse.
fn sorted<T>(machine: &Machine<'_>, mut keyed: Vec<(Value, T)>, reverse: bool) -> Result<Vec<T>> {
    if reverse {
        keyed.reverse();
    }
    let mut sorted = operators::sort(machine.limits, keyed)?;
    if reverse {
        sorted.reverse();
    }
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}

pub(super) fn sort(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [reverse, case_sensitive, attribute] = args.bind(["reverse", "case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let paths = Path::several(&attribute.unwrap_or(Value::None), machine.limits)?;
    let mut keyed = Vec::new();
    for item in machine.collect(&value)? {
        let mut keys = Vec::new();
        for path in &paths {
            let key = path.follow(machine, &item, None)?;
            keys.push(compared(machine, key, case_sensitive)?);
        }
        keyed.push((Value::list(keys, machine.limits)?, item));
    }
    let sorted = sorted(machine, keyed, flag(reverse))?;
    Value::list(sorted, machine.limits)
}

pub(super) fn dictsort(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [case_sensitive, by, reverse] = args.bind(["case_sensitive", "by", "reverse"])?;
    let place = match by.as_ref().map(Value::expect_text).transpose()?.map_or("key", |by| by.as_str()) {
        "key" => 0,
        "value" => 1,
        _ => return Err(Error::runtime("You can only sort by either \"key\" or \"value\"")),
    };
    let Value::Dict(dict) = &value else {
        return Err(Error::runtime(format!("'{} object' has no attribute 'items'", value.type_name())));
    };
    let case_sensitive = flag(case_sensitive);
    let mut keyed = Vec::new();
    for item in methods::items(machine, dict)? {
        let Value::Tuple(pair) = &item else { continue };
        keyed.push((compared(machine, pair.values[place].clone(), case_sensitive)?, item.clone()));
    }
    let sorted = sorted(machine, keyed, flag(reverse))?;
    Value::list(sorted, machine.limits)
}

pub(super) fn min(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    extreme(machine, value, args, Ordering::Less)
}

pub(super) fn max(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    extreme(machine, value, args, Ordering::Greater)
}

/// Returns the first minimum or maximum (`wanted`).
fn extreme(machine: &mut Machine<'_>, value: Value, args: Args, wanted: Ordering) -> Result<Value> {
    let [case_sensitive, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let path = Path::new(&attribute.unwrap_or(Value::None), machine.limits)?;
    let mut best: Option<(Value, Value)> = None;
    for item in machine.collect(&value)? {
        let key = path.follow(machine, &item, None)?;
        let key = compared(machine, key, case_sensitive)?;
        let better = match &best {
            Some((best, _)) => order(machine.limits, &key, best)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::missing("No aggregated item, sequence was empty."), |(_, item)| item))
}

pub(super) fn unique(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [case_sensitive, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let path = Path::new(&attribute.unwrap_or(Value::None), machine.limits)?;
    let mut seen = HashSet::new();
    let mut unique = Vec::new();
    for item in machine.collect(&value)? {
        let key = path.follow(machine, &item, None)?;
        let key = compared(machine, key, case_sensitive)?;
        machine.limits.build(dict::ENTRY_BYTES)?;
        if seen.insert(Key::of(&key, machine.limits)?) {
            unique.push(item);
        }
    }
    Value::generator(Generator::of(unique))
}

pub(super) fn groupby(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [attribute, default, case_sensitive] = args.bind(["attribute", "default", "case_sensitive"])?;
    let path = Path::new(&required(attribute, "attribute")?, machine.limits)?;
    let default = default.and_then(Value::some);
    let case_sensitive = flag(case_sensitive);
    let limits = machine.limits;
    let mut keyed = Vec::new();
    for item in machine.collect(&value)? {
        let name = path.follow(machine, &item, default.as_ref())?;
        let key = compared(machine, name.clone(), case_sensitive)?;
        keyed.push((key.clone(), (key, name, item)));
    }
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (key, name, item) in sorted(machine, keyed, false)? {
        match groups.last_mut() {
            Some((last, _, items)) if equal(limits, last, &key)? => items.push(item),
            _ => groups.push((key, name, vec![item])),
        }
    }
    let groups = groups.into_iter().map(|(_, name, items)| {
        let items = vec![name, Value::list(items, limits)?];
        Ok(Value::Tuple(Rc::new(Items::new(items, &["grouper", "list"], limits)?)))
    });
    Value::list(groups.collect::<Result<_>>()?, limits)
}
