//! `tojson` as transformers defines it: Python's `json.dumps` without ASCII escapes.

use minijinja::value::{Kwargs, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::marked::MARKS;
use super::python_text::{MAX_DEPTH, number, too_deep};

/// The options of `json.dumps` that the filter passes on.
struct Dump {
    ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

/// The filter: `value | tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn tojson(value: &Value, args: &[Value]) -> Result<Value, Error> {
    let dump = Dump::from_args(args)?;
    let mut text = String::new();
    dump.write(&mut text, value, 0)?;
    Ok(Value::from(text))
}

impl Dump {
    fn from_args(args: &[Value]) -> Result<Self, Error> {
        let (positional, named) = from_args::<(&[Value], Kwargs)>(args)?;
        let option = |place: usize, name: &str| -> Result<Value, Error> {
            let named: Option<Value> = named.get(name)?;
            Ok(positional.get(place).cloned().or(named).unwrap_or(Value::from(())))
        };
        let ascii = option(0, "ensure_ascii")?.is_true();
        let indent = option(1, "indent")?;
        let indent = match indent.as_usize() {
            Some(width) if width > 64 => return Err(invalid("tojson: an indent of more than 64 blanks")),
            Some(width) => Some(" ".repeat(width)),
            None => indent.as_str().map(str::to_owned),
        };
        let separators = option(2, "separators")?;
        let (item_separator, key_separator) = if separators.is_none() {
            (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned())
        } else {
            (separators.get_item_by_index(0)?.to_string(), separators.get_item_by_index(1)?.to_string())
        };
        let sort_keys = option(3, "sort_keys")?.is_true();
        named.assert_all_used()?;
        Ok(Self { ascii, indent, item_separator, key_separator, sort_keys })
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&json_number(value)),
            ValueKind::String => self.write_string(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?;
                self.write_items(out, ['[', ']'], items, depth, |out, item| {
                    self.write(out, &item, depth + 1)
                })?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.write_items(out, ['{', '}'], keys, depth, |out, key| {
                    self.write_key(out, &key)?;
                    out.push_str(&self.key_separator);
                    self.write(out, &value.get_item(&key)?, depth + 1)
                })?;
            }
            kind => return Err(invalid(&format!("tojson: {kind} is not JSON serializable"))),
        }
        Ok(())
    }

    fn write_items(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        items: impl IntoIterator<Item = Value>,
        depth: usize,
        mut write: impl FnMut(&mut String, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let new_line = |out: &mut String, depth: usize| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                (0..depth).for_each(|_| out.push_str(indent));
            }
        };
        out.push(open);
        let mut empty = true;
        for item in items {
            if !empty {
                out.push_str(&self.item_separator);
            }
            empty = false;
            new_line(out, depth + 1);
            write(out, item)?;
        }
        if !empty {
            new_line(out, depth);
        }
        out.push(close);
        Ok(())
    }

    fn write_key(&self, out: &mut String, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.write_string(out, key.as_str().unwrap_or_default()),
            ValueKind::Number | ValueKind::Bool | ValueKind::None => {
                out.push('"');
                self.write(out, key, 0)?;
                out.push('"');
            }
            kind => return Err(invalid(&format!("tojson: {kind} is not a key"))),
        }
        Ok(())
    }

    fn write_string(&self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ascii && !c.is_ascii() && !MARKS.contains(&c)) => {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units)
                        .iter()
                        .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// Python writes floats the same in JSON but for the three that JSON has no word for.
fn json_number(value: &Value) -> String {
    match number(value).as_str() {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        number => number.to_owned(),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}
