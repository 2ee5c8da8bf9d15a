//! Stripping characters off the ends.

use std::collections::HashSet;

use super::questions::is_space;
use crate::jinja::args::{Args, required};
use crate::jinja::error::Result;
use crate::jinja::limits::Limits;
use crate::jinja::text::Text;
use crate::jinja::value::Value;

/// Cost of looking a character up in a set, relative to passing it.
const LOOKUP_COST: usize = 8;
/// Memory of a character in a set, spare capacity included.
const CHARACTER_BYTES: usize = 16;

/// `strip`, `lstrip` and `rstrip`.
pub(in crate::jinja) fn strip(limits: &Limits, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [set] = args.bind_positional()?;
    let set = set.and_then(Value::some).map(|set| set.expect_text().cloned()).transpose()?;
    let set = set.map(|set| characters(limits, &set)).transpose()?;
    let strips = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
    limits.read(text.len().saturating_mul(LOOKUP_COST))?;
    let string = text.as_str();
    let start = if name == "rstrip" { 0 } else { string.len() - string.trim_start_matches(strips).len() };
    let end = if name == "lstrip" { string.len() } else { string.trim_end_matches(strips).len() };
    Ok(Value::Text(text.slice(start..end.max(start), limits)?))
}

/// The set of characters to strip.
fn characters(limits: &Limits, set: &Text) -> Result<HashSet<char>> {
    limits.read(set.len().saturating_mul(LOOKUP_COST))?;
    let mut characters = HashSet::new();
    for c in set.as_str().chars() {
        if characters.insert(c) {
            limits.build(CHARACTER_BYTES)?;
        }
    }
    Ok(characters)
}

/// `removeprefix` and `removesuffix`.
pub(super) fn remove_affix(limits: &Limits, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [affix] = args.bind_positional()?;
    let affix = required(affix, "affix")?;
    let (affix, string) = (affix.expect_text()?.as_str(), text.as_str());
    let range = match name {
        "removeprefix" if string.starts_with(affix) => affix.len()..string.len(),
        "removesuffix" if string.ends_with(affix) => 0..string.len() - affix.len(),
        _ => 0..string.len(),
    };
    Ok(Value::Text(text.slice(range, limits)?))
}
