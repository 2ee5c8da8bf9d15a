//! `tojson` as transformers defines it: Python's `json.dumps` without ASCII escapes.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::operators::sort;
use crate::python_text;
use crate::text::{Text, TextWriter};
use crate::values::{Args, Value, flag};

/// Options of `json.dumps` that the filter supports.
struct Dump {
    ascii: bool,
    indent: Option<Text>,
    item_separator: Text,
    key_separator: Text,
    sort_keys: bool,
}

/// The filter `value | tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn tojson(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let dump = Dump::from_args(interpreter, args)?;
    let mut out = TextWriter::new(interpreter.budget);
    dump.write(&mut out, &value, 0)?;
    Ok(Value::Text(out.finish()))
}

impl Dump {
    fn from_args(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Self> {
        let [ascii, indent, separators, sort_keys] =
            args.bind(["ensure_ascii", "indent", "separators", "sort_keys"])?;
        let indent = match indent.and_then(Value::some) {
            None => None,
            Some(Value::Text(indent)) => Some(indent),
            Some(width) => {
                let width = usize::try_from(width.expect_int()?.max(0)).unwrap_or(usize::MAX);
                let mut indent = TextWriter::new(interpreter.budget);
                indent.repeat(&Text::template(" "), width)?;
                Some(indent.finish())
            }
        };
        let [item_separator, key_separator] = match separators.and_then(Value::some) {
            None => [Text::template(if indent.is_some() { "," } else { ", " }), Text::template(": ")],
            Some(separators) => {
                let separators = interpreter.collect(&separators)?;
                let [item, key] = separators.as_slice() else {
                    return Err(Error::runtime("separators are two texts"));
                };
                [item.expect_text()?.clone(), key.expect_text()?.clone()]
            }
        };
        Ok(Self { ascii: flag(ascii), indent, item_separator, key_separator, sort_keys: flag(sort_keys) })
    }

    fn write(&self, out: &mut TextWriter<'_>, value: &Value, depth: usize) -> Result<()> {
        out.budget().step()?;
        match value {
            Value::None => out.template("null"),
            Value::Bool(value) => out.template(if *value { "true" } else { "false" }),
            Value::Int(value) => out.template(&value.to_string()),
            Value::Float(value) => out.template(&float(*value)),
            Value::Text(text) => self.write_text(out, text),
            Value::List(items) | Value::Tuple(items) => {
                self.write_items(out, ["[", "]"], &items.values, depth, |out, item| {
                    self.write(out, item, depth + 1)
                })
            }
            Value::Dict(dict) if self.sort_keys => {
                let sorted = sort(out.budget(), dict.entries().to_vec())?;
                self.write_entries(out, &sorted, depth)
            }
            Value::Dict(dict) => self.write_entries(out, dict.entries(), depth),
            other => {
                Err(Error::runtime(format!("Object of type {} is not JSON serializable", other.type_name())))
            }
        }
    }

    fn write_entries(
        &self,
        out: &mut TextWriter<'_>,
        entries: &[(Value, Value)],
        depth: usize,
    ) -> Result<()> {
        self.write_items(out, ["{", "}"], entries, depth, |out, (key, value)| {
            self.write_key(out, key)?;
            out.text(&self.key_separator)?;
            self.write(out, value, depth + 1)
        })
    }

    fn write_items<T>(
        &self,
        out: &mut TextWriter<'_>,
        [open, close]: [&str; 2],
        items: &[T],
        depth: usize,
        mut write: impl FnMut(&mut TextWriter<'_>, &T) -> Result<()>,
    ) -> Result<()> {
        out.template(open)?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.text(&self.item_separator)?;
            }
            self.new_line(out, depth + 1)?;
            write(out, item)?;
        }
        if !items.is_empty() {
            self.new_line(out, depth)?;
        }
        out.template(close)
    }

    fn new_line(&self, out: &mut TextWriter<'_>, depth: usize) -> Result<()> {
        let Some(indent) = &self.indent else { return Ok(()) };
        out.template("\n")?;
        out.repeat(indent, depth)
    }

    fn write_key(&self, out: &mut TextWriter<'_>, key: &Value) -> Result<()> {
        match key {
            Value::Text(text) => self.write_text(out, text),
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                out.template("\"")?;
                self.write(out, key, 0)?;
                out.template("\"")
            }
            other => {
                let kind = other.type_name();
                Err(Error::runtime(format!("keys must be str, int, float, bool or None, not {kind}")))
            }
        }
    }

    fn write_text(&self, out: &mut TextWriter<'_>, text: &Text) -> Result<()> {
        out.template("\"")?;
        let escaped = text.map(out.budget(), |c, out| match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (self.ascii && (!c.is_ascii() || c == '\u{7f}')) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        })?;
        out.text(&escaped)?;
        out.template("\"")
    }
}

/// Writes a float as in `repr`, except the three values that JSON lacks.
fn float(float: f64) -> String {
    match python_text::float(float).as_str() {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        number => number.to_owned(),
    }
}
