//! Search in texts.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::text::Text;
use crate::values::{Args, Value, required};

/// The part of a text between two character positions (negative ones count from the end), with its start
/// position; `None` if the start is after the end.
fn window(text: &str, start: Option<Value>, end: Option<Value>) -> Result<Option<(&str, usize)>> {
    let (start, end) = (start.and_then(Value::some), end.and_then(Value::some));
    if start.is_none() && end.is_none() {
        return Ok(Some((text, 0)));
    }
    let count = text.chars().count() as i128;
    let index = |at: i128| if at < 0 { at.saturating_add(count).max(0) } else { at };
    let start = index(start.map_or(Ok(0), |at| at.expect_int())?);
    let end = index(end.map_or(Ok(count), |at| at.expect_int())?).min(count);
    if start > end {
        return Ok(None);
    }
    let byte = |at: i128| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    Ok(Some((&text[byte(start)..byte(end)], start as usize)))
}

/// `startswith` and `endswith`.
pub(super) fn affix(interpreter: &mut Interpreter<'_>, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [affix, start, end] = args.bind_positional()?;
    let affixes = match required(affix, "prefix")? {
        Value::Tuple(items) => {
            interpreter.budget.build(items.values.len() * size_of::<Value>())?;
            items.values.clone()
        }
        affix => vec![affix],
    };
    let part = window(text.as_str(), start, end)?;
    for affix in affixes {
        interpreter.budget.step()?;
        let affix = affix.expect_text()?.as_str();
        let Some((part, _)) = part else { continue };
        interpreter.budget.read(affix.len().min(part.len()))?;
        if if name == "startswith" { part.starts_with(affix) } else { part.ends_with(affix) } {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// `find`, `rfind`, `index`, `rindex` and `count`.
pub(super) fn find(text: &Text, name: &str, args: Args) -> Result<Value> {
    let [wanted, start, end] = args.bind_positional()?;
    let wanted = required(wanted, "sub")?;
    let wanted = wanted.expect_text()?.as_str();
    let window = window(text.as_str(), start, end)?;
    if name == "count" {
        return Ok(Value::Int(window.map_or(0, |(part, _)| part.matches(wanted).count()) as i128));
    }
    let found = window.and_then(|(part, start)| {
        let byte = if name.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
        byte.map(|byte| start + part[..byte].chars().count())
    });
    match found {
        Some(index) => Ok(Value::Int(index as i128)),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => Err(Error::runtime("substring not found")),
    }
}
