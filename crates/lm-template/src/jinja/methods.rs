//! The methods of Python's strings, dicts and lists that templates call.

use minijinja::value::{Kwargs, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::marked::{Marked, unmark};

/// The widest text that padding makes.
const MAX_WIDTH: usize = 1 << 16;

/// Calls a method; an unknown one, those that change their value included, is an error.
pub(super) fn call(value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match (value.kind(), value.as_str()) {
        (_, Some(text)) => string_method(text, method, args),
        (ValueKind::Map, _) => map_method(value, method, args),
        (ValueKind::Seq, _) => list_method(value, method, args),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn map_method(map: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let item = |key: Value| Ok((key.clone(), map.get_item(&key)?));
    match method {
        "get" => {
            let (key, default) = from_args::<(Value, Option<Value>)>(args)?;
            let found = map.get_item(&key)?;
            Ok(if found.is_undefined() { default.unwrap_or(Value::from(())) } else { found })
        }
        "items" => {
            from_args::<()>(args)?;
            let items = map.try_iter()?.map(item).collect::<Result<Vec<_>, Error>>()?;
            Ok(items.into_iter().map(|(key, value)| Value::from(Tuple::from([key, value]))).collect())
        }
        "keys" => Ok(map.try_iter()?.collect()),
        "values" => Ok(map.try_iter()?.map(|key| map.get_item(&key)).collect::<Result<Vec<_>, _>>()?.into()),
        "copy" => Ok(map.clone()),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn list_method(list: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match method {
        "copy" => Ok(list.clone()),
        "count" => {
            let (wanted,) = from_args::<(Value,)>(args)?;
            Ok(Value::from(list.try_iter()?.filter(|item| *item == wanted).count()))
        }
        "index" => {
            let (wanted,) = from_args::<(Value,)>(args)?;
            let place = list.try_iter()?.position(|item| item == wanted);
            place.map(Value::from).ok_or_else(|| invalid("the value is not in the list"))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let marked = Marked::parse(text);
    let plain = marked.text.as_str();
    match method {
        "strip" | "lstrip" | "rstrip" => strip(&marked, method, args),
        "split" | "rsplit" => split(&marked, method, args),
        "splitlines" => splitlines(&marked, args),
        "partition" | "rpartition" => partition(&marked, method, args),
        "removeprefix" | "removesuffix" => remove(&marked, method, args),
        "replace" => replace(&marked, args),
        "startswith" | "endswith" => starts_or_ends(plain, method, args),
        "find" | "rfind" | "index" | "rindex" | "count" => find(plain, method, args),
        "lower" | "casefold" => Ok(Value::from(marked.map(str::to_lowercase))),
        "upper" => Ok(Value::from(marked.map(str::to_uppercase))),
        "title" | "capitalize" | "swapcase" => Ok(Value::from(change_case(&marked, method))),
        "ljust" | "rjust" | "center" | "zfill" => pad(text, plain.chars().count(), method, args),
        "join" => {
            let (items,) = from_args::<(Value,)>(args)?;
            let items = items.try_iter()?.map(|item| expect_text(&item)).collect::<Result<Vec<_>, _>>()?;
            Ok(Value::from(items.join(text)))
        }
        "format" => format(text, args),
        _ => question(plain, method).map(Value::from).ok_or_else(|| Error::from(ErrorKind::UnknownMethod)),
    }
}

/// The `is…` methods; false for empty text.
fn question(text: &str, method: &str) -> Option<bool> {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    let cased = |wanted: fn(char) -> bool, other: fn(char) -> bool| {
        text.chars().any(wanted) && !text.chars().any(other)
    };
    Some(match method {
        "isdigit" | "isdecimal" | "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(is_space),
        "islower" => cased(char::is_lowercase, char::is_uppercase),
        "isupper" => cased(char::is_uppercase, char::is_lowercase),
        "isascii" => text.is_ascii(),
        _ => return None,
    })
}

/// Python's `str.isspace`: Unicode's whitespace and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn expect_text(value: &Value) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| invalid("expected a string"))
}

fn strip(marked: &Marked, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (set,) = from_args::<(Option<Value>,)>(args)?;
    let set =
        set.filter(|set| !set.is_none()).map(|set| expect_text(&set)).transpose()?.map(|set| unmark(&set));
    let strips = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(c));
    let text = marked.text.as_str();
    let (mut start, mut end) = (0, text.len());
    if method != "rstrip" {
        start = text.len() - text.trim_start_matches(strips).len();
    }
    if method != "lstrip" {
        end = text.trim_end_matches(strips).len().max(start);
    }
    Ok(Value::from(marked.slice(start..end)))
}

fn split(marked: &Marked, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (positional, named) = from_args::<(&[Value], Kwargs)>(args)?;
    let option = |place: usize, name: &str| -> Result<Option<Value>, Error> {
        let value = positional.get(place).cloned().or(named.get::<Option<Value>>(name)?);
        Ok(value.filter(|value| !value.is_none()))
    };
    let separator = option(0, "sep")?.map(|value| expect_text(&value)).transpose()?.map(|text| unmark(&text));
    let limit =
        option(1, "maxsplit")?.and_then(|value| value.as_i64()).and_then(|limit| usize::try_from(limit).ok());
    named.assert_all_used()?;
    let text = marked.text.as_str();
    let mut gaps: Vec<(usize, usize)> = match &separator {
        Some(separator) if separator.is_empty() => return Err(invalid("empty separator")),
        Some(separator) if method == "split" => {
            text.match_indices(separator).map(|(at, s)| (at, at + s.len())).collect()
        }
        Some(separator) => text.rmatch_indices(separator).map(|(at, s)| (at, at + s.len())).collect(),
        None => space_runs(text),
    };
    if separator.is_some() || method == "split" {
        gaps.truncate(limit.unwrap_or(usize::MAX));
    } else {
        gaps.drain(..gaps.len().saturating_sub(limit.unwrap_or(usize::MAX)));
    }
    gaps.sort_unstable();
    let starts = std::iter::once(0).chain(gaps.iter().map(|gap| gap.1));
    let ends = gaps.iter().map(|gap| gap.0).chain([text.len()]);
    let pieces: Vec<Value> = match separator {
        Some(_) => starts.zip(ends).map(|(start, end)| Value::from(marked.slice(start..end))).collect(),
        None => words(marked, starts.zip(ends)),
    };
    Ok(Value::from(pieces))
}

/// The runs of whitespace between words; those at the ends of the text do not separate.
fn space_runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let last = text.trim_end_matches(is_space).len();
    let first = text.len() - text.trim_start_matches(is_space).len();
    for (at, c) in text.char_indices().filter(|(at, c)| is_space(*c) && (first..last).contains(at)) {
        match runs.last_mut() {
            Some(run) if run.1 == at => run.1 = at + c.len_utf8(),
            _ => runs.push((at, at + c.len_utf8())),
        }
    }
    runs
}

fn words(marked: &Marked, ranges: impl Iterator<Item = (usize, usize)>) -> Vec<Value> {
    let trimmed = ranges.map(|(start, end)| {
        let piece = &marked.text[start..end];
        let start = end - piece.trim_start_matches(is_space).len();
        (start, start + marked.text[start..end].trim_end_matches(is_space).len())
    });
    trimmed
        .filter(|(start, end)| start < end)
        .map(|(start, end)| Value::from(marked.slice(start..end)))
        .collect()
}

fn splitlines(marked: &Marked, args: &[Value]) -> Result<Value, Error> {
    let (positional, named) = from_args::<(&[Value], Kwargs)>(args)?;
    let keep = positional.first().cloned().or(named.get("keepends")?).is_some_and(|keep| keep.is_true());
    let text = marked.text.as_str();
    let mut lines = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let breaks =
            matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
        if !breaks {
            continue;
        }
        let mut end = at + c.len_utf8();
        if c == '\r' && characters.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push(Value::from(marked.slice(start..if keep { end } else { at })));
        start = end;
    }
    if start < text.len() {
        lines.push(Value::from(marked.slice(start..text.len())));
    }
    Ok(Value::from(lines))
}

fn partition(marked: &Marked, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (separator,) = from_args::<(&str,)>(args)?;
    let separator = unmark(separator);
    let text = marked.text.as_str();
    let found = if method == "partition" { text.find(&separator) } else { text.rfind(&separator) };
    let whole = || Value::from(marked.slice(0..text.len()));
    let parts = match found {
        Some(at) => [0..at, at..at + separator.len(), at + separator.len()..text.len()]
            .map(|range| Value::from(marked.slice(range))),
        None if method == "partition" => [whole(), Value::from(""), Value::from("")],
        None => [Value::from(""), Value::from(""), whole()],
    };
    Ok(Value::from(Tuple::from(parts)))
}

fn remove(marked: &Marked, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (affix,) = from_args::<(&str,)>(args)?;
    let (affix, text) = (unmark(affix), marked.text.as_str());
    let range = match method {
        "removeprefix" if text.starts_with(&affix) => affix.len()..text.len(),
        "removesuffix" if text.ends_with(&affix) => 0..text.len() - affix.len(),
        _ => 0..text.len(),
    };
    Ok(Value::from(marked.slice(range)))
}

fn replace(marked: &Marked, args: &[Value]) -> Result<Value, Error> {
    let (old, new, count) = from_args::<(&str, &str, Option<i64>)>(args)?;
    let (old, text) = (unmark(old), marked.text.as_str());
    let limit = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let mut replaced = String::new();
    let mut at = 0;
    for (start, found) in text.match_indices(&old).take(limit) {
        replaced.push_str(&marked.slice(at..start));
        replaced.push_str(new);
        at = start + found.len();
    }
    replaced.push_str(&marked.slice(at..text.len()));
    Ok(Value::from(replaced))
}

/// The part of a text between two positions in characters, negative ones from its end, and where it begins.
fn window(text: &str, start: Option<i64>, end: Option<i64>) -> (&str, usize) {
    let count = text.chars().count() as i64;
    let place = |at: i64| if at < 0 { (count + at).max(0) } else { at.min(count) };
    let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(count)));
    let byte = |at: i64| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    (&text[byte(start)..byte(end.max(start))], start as usize)
}

fn starts_or_ends(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (affix, start, end) = from_args::<(Value, Option<i64>, Option<i64>)>(args)?;
    let (text, _) = window(text, start, end);
    let affixes = match affix.as_str() {
        Some(affix) => vec![affix.to_owned()],
        None => affix.try_iter()?.map(|affix| expect_text(&affix)).collect::<Result<_, _>>()?,
    };
    let fits = |affix: &String| match method {
        "startswith" => text.starts_with(&unmark(affix)),
        _ => text.ends_with(&unmark(affix)),
    };
    Ok(Value::from(affixes.iter().any(fits)))
}

fn find(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (wanted, start, end) = from_args::<(&str, Option<i64>, Option<i64>)>(args)?;
    let ((text, offset), wanted) = (window(text, start, end), unmark(wanted));
    if method == "count" {
        return Ok(Value::from(text.matches(&wanted).count()));
    }
    let found = if method.starts_with('r') { text.rfind(&wanted) } else { text.find(&wanted) };
    match found {
        Some(byte) => Ok(Value::from(offset + text[..byte].chars().count())),
        None if method.ends_with("find") => Ok(Value::from(-1)),
        None => Err(invalid("substring not found")),
    }
}

fn change_case(marked: &Marked, method: &str) -> String {
    let mut at_start = true;
    marked.map(|run| {
        let mut changed = String::new();
        for c in run.chars() {
            let upper = match method {
                "swapcase" => c.is_lowercase(),
                _ => at_start,
            };
            if upper {
                changed.extend(c.to_uppercase())
            } else {
                changed.extend(c.to_lowercase())
            }
            at_start = method == "title" && !c.is_alphabetic();
        }
        changed
    })
}

fn pad(text: &str, width_now: usize, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill) = from_args::<(usize, Option<String>)>(args)?;
    if width > MAX_WIDTH {
        return Err(invalid("padding is limited to 65536 characters"));
    }
    let fill = fill.unwrap_or_else(|| if method == "zfill" { "0" } else { " " }.to_owned());
    let missing = width.saturating_sub(width_now);
    let (left, right) = match method {
        "ljust" => (0, missing),
        "center" => (missing / 2 + (missing & width & 1), missing - missing / 2 - (missing & width & 1)),
        _ => (missing, 0),
    };
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) if method == "zfill" => text.split_at(text.len() - digits.len()),
        _ => ("", text),
    };
    Ok(Value::from(format!("{sign}{}{digits}{}", fill.repeat(left), fill.repeat(right))))
}

/// `str.format` with plain fields: `{}`, `{0}`, `{name}`; a format specification is an error.
fn format(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (positional, named) = from_args::<(&[Value], Kwargs)>(args)?;
    let mut formatted = String::new();
    let mut rest = text;
    let mut next = 0;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        formatted.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            formatted.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let field = from.strip_prefix('{').and_then(|field| field.split_once('}'));
        let (field, after) = field.ok_or_else(|| invalid("format: a single brace"))?;
        let value = match field.parse::<usize>() {
            Ok(place) => positional.get(place).cloned(),
            Err(_) if field.is_empty() => {
                next += 1;
                positional.get(next - 1).cloned()
            }
            Err(_) => named.get::<Option<Value>>(field)?,
        };
        formatted
            .push_str(&super::python_text::str(&value.ok_or_else(|| invalid("format: no such field"))?)?);
        rest = after;
    }
    Ok(Value::from(formatted + rest))
}
