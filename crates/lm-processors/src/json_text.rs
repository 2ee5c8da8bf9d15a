//! JSON text in the form used in prompts.

use std::io;

use lm_template::Value;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Serializes a value like Python's `json.dumps(value, ensure_ascii=False)`: a blank after commas and colons.
pub(crate) fn json_text(value: &Value) -> String {
    let mut text = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut text, Spaced))
        .expect("a JSON value is written to memory");
    String::from_utf8(text).expect("JSON is UTF-8")
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        CompactFormatter.begin_object_value(writer)?;
        writer.write_all(b" ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn output_equals_python() {
        let value = json!({"a": [1, 2.5, {"ü": "\"\n"}], "b": {}, "c": null});
        assert_eq!(super::json_text(&value), r#"{"a": [1, 2.5, {"ü": "\"\n"}], "b": {}, "c": null}"#);
    }
}
