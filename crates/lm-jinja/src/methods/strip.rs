//! Stripping characters off the ends.

use std::collections::HashSet;

use super::character_classes::is_space;
use crate::budget::Budget;
use crate::error::BoxedResult as Result;
use crate::text::Text;
use crate::values::{Args, Value, required};

/// Cost of looking a character up in a set, relative to passing it.
const LOOKUP_COST: usize = 8;
/// Memory of a character in a set, spare capacity included.
const CHARACTER_BYTES: usize = 16;

/// `strip`, `lstrip` and `rstrip`.
pub(crate) fn strip(budget: &Budget, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [set] = args.bind_positional()?;
    let set = set.and_then(Value::some).map(|set| set.expect_text().cloned()).transpose()?;
    let set = set.map(|set| characters(budget, &set)).transpose()?;
    let strips = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
    budget.read(text.len().saturating_mul(LOOKUP_COST))?;
    let string = text.as_str();
    let start = if name == "rstrip" { 0 } else { string.len() - string.trim_start_matches(strips).len() };
    let end = if name == "lstrip" { string.len() } else { string.trim_end_matches(strips).len() };
    Ok(Value::Text(text.slice(start..end.max(start), budget)?))
}

/// The set of characters to strip.
fn characters(budget: &Budget, set: &Text) -> Result<HashSet<char>> {
    budget.read(set.len().saturating_mul(LOOKUP_COST))?;
    let mut characters = HashSet::new();
    for c in set.as_str().chars() {
        if characters.insert(c) {
            budget.build(CHARACTER_BYTES)?;
        }
    }
    Ok(characters)
}

/// `removeprefix` and `removesuffix`.
pub(super) fn remove_affix(budget: &Budget, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [affix] = args.bind_positional()?;
    let affix = required(affix, "affix")?;
    let (affix, string) = (affix.expect_text()?.as_str(), text.as_str());
    let range = match name {
        "removeprefix" if string.starts_with(affix) => affix.len()..string.len(),
        "removesuffix" if string.ends_with(affix) => 0..string.len() - affix.len(),
        _ => 0..string.len(),
    };
    Ok(Value::Text(text.slice(range, budget)?))
}
