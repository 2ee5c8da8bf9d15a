//! Taking characters off the ends.

use super::questions::is_space;
use crate::jinja::args::{Args, required};
use crate::jinja::error::Result;
use crate::jinja::limits::Limits;
use crate::jinja::text::Text;
use crate::jinja::value::Value;

/// `strip`, `lstrip` and `rstrip`.
pub(in crate::jinja) fn strip(limits: &Limits, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [set] = args.bind_positional()?;
    let set = set.and_then(Value::some).map(|set| set.expect_text().cloned()).transpose()?;
    let strips = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.as_str().contains(c));
    let string = text.as_str();
    let start = if name == "rstrip" { 0 } else { string.len() - string.trim_start_matches(strips).len() };
    let end = if name == "lstrip" { string.len() } else { string.trim_end_matches(strips).len() };
    Ok(Value::Text(text.slice(start..end.max(start), limits)?))
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
