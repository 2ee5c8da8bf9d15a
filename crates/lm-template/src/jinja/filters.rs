//! Jinja2's filters where the engine's differ, or do not see past marks.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, Value};

use super::marked::{GENERATION_CLOSE, GENERATION_OPEN, Marked};
use super::{json_text, methods, python_text};

/// The widest indent, in characters.
const MAX_INDENT: usize = 1024;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("tojson", |value: &Value, args: Rest<ValueOrKwargs>| {
        json_text::tojson(value, &args.into_values())
    });
    environment.add_filter("string", python_text::str);
    environment
        .add_filter("generation_span", |body: &str| format!("{GENERATION_OPEN}{body}{GENERATION_CLOSE}"));
    for name in ["length", "count"] {
        environment.add_filter(name, length);
    }
    for (filter, method) in [
        ("capitalize", "capitalize"),
        ("lower", "lower"),
        ("replace", "replace"),
        ("title", "title"),
        ("trim", "strip"),
        ("upper", "upper"),
    ] {
        environment.add_filter(filter, move |value: &Value, args: Rest<ValueOrKwargs>| {
            methods::call(&Value::from(python_text::str(value)?), method, &args.into_values())
        });
    }
    environment.add_filter("first", |value: &Value| end_of(value, End::First));
    environment.add_filter("last", |value: &Value| end_of(value, End::Last));
    environment.add_filter("int", |value: &Value, default: Option<i64>| int(value, default.unwrap_or(0)));
    environment
        .add_filter("float", |value: &Value, default: Option<f64>| float(value, default.unwrap_or(0.0)));
    environment
        .add_filter("indent", |text: &str, args: Rest<ValueOrKwargs>| indent(text, &args.into_values()));
    for name in ["e", "escape"] {
        environment.add_filter(name, escape);
    }
    environment.add_filter("wordcount", |text: &str| Marked::parse(text).text.split_whitespace().count());
}

fn length(value: &Value) -> Result<usize, Error> {
    match (value.kind(), value.as_str()) {
        (ValueKind::Undefined, _) => Ok(0),
        (_, Some(text)) => Ok(Marked::parse(text).text.chars().count()),
        (kind, None) => value
            .len()
            .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("{kind} has no length"))),
    }
}

#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

fn end_of(value: &Value, end: End) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        let marked = Marked::parse(text);
        let mut characters = marked.text.char_indices();
        let found = match end {
            End::First => characters.next(),
            End::Last => characters.next_back(),
        };
        return Ok(found.map_or(Value::UNDEFINED, |(at, c)| Value::from(marked.slice(at..at + c.len_utf8()))));
    }
    let mut items = value.try_iter()?;
    let found = match end {
        End::First => items.next(),
        End::Last => items.last(),
    };
    Ok(found.unwrap_or(Value::UNDEFINED))
}

/// Python's `int(value)`, or the default where that fails.
fn int(value: &Value, default: i64) -> Value {
    if let Some(text) = value.as_str() {
        let text = Marked::parse(text).text;
        let number = text.trim();
        let whole = number.parse::<i128>().ok().or_else(|| number.parse::<f64>().ok().and_then(whole));
        return whole.map_or(Value::from(default), Value::from);
    }
    match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.clone(),
        ValueKind::Number => {
            f64::try_from(value.clone()).ok().and_then(whole).map_or(Value::from(default), Value::from)
        }
        _ => Value::from(default),
    }
}

fn whole(float: f64) -> Option<i128> {
    float.is_finite().then_some(float as i128)
}

/// Python's `float(value)`, or the default where that fails.
fn float(value: &Value, default: f64) -> f64 {
    match value.as_str() {
        Some(text) => Marked::parse(text).text.trim().parse().unwrap_or(default),
        None if value.kind() == ValueKind::Bool => f64::from(u8::from(value.is_true())),
        None => f64::try_from(value.clone()).unwrap_or(default),
    }
}

/// HTML escapes as Jinja2 writes them.
fn escape(value: &Value) -> Result<String, Error> {
    let mut escaped = String::new();
    for c in python_text::str(value)?.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    Ok(escaped)
}

/// Jinja2's `indent(width=4, first=false, blank=false)`; width may be the text of the indent.
fn indent(text: &str, args: &[Value]) -> Result<String, Error> {
    let (positional, named) = from_args::<(&[Value], Kwargs)>(args)?;
    let option = |place: usize, name: &str| -> Result<Option<Value>, Error> {
        Ok(positional.get(place).cloned().or(named.get(name)?))
    };
    let width = option(0, "width")?.unwrap_or(Value::from(4));
    let first = option(1, "first")?.is_some_and(|first| first.is_true());
    let blank = option(2, "blank")?.is_some_and(|blank| blank.is_true());
    named.assert_all_used()?;
    let indent = match (width.as_str(), width.as_usize()) {
        (Some(indent), _) => indent.to_owned(),
        (None, Some(width)) if width <= MAX_INDENT => " ".repeat(width),
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "indent: expected a text or a width of at most 1024",
            ));
        }
    };
    let mut indented = String::new();
    for (number, line) in text.split('\n').enumerate() {
        indented.push_str(if number > 0 { "\n" } else { "" });
        if if number == 0 { first } else { blank || !line.is_empty() } {
            indented.push_str(&indent);
        }
        indented.push_str(line);
    }
    Ok(indented)
}
