//! Repair of JSON text that models write: control characters in strings.

use std::fmt::Write;

/// Repair of one JSON text that arrives in pieces: control characters in strings are escaped. All else is unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonMend {
    in_string: bool,
    escaped: bool,
}

impl JsonMend {
    /// Returns the repaired piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            match c {
                '\n' if self.in_string => out.push_str("\\n"),
                '\r' if self.in_string => out.push_str("\\r"),
                '\t' if self.in_string => out.push_str("\\t"),
                '\0'..' ' if self.in_string => {
                    write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes any text");
                }
                c => out.push(c),
            }
            self.in_string ^= c == '"' && !self.escaped;
            self.escaped = self.in_string && !self.escaped && c == '\\';
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_json_is_unchanged() {
        for (text, expected) in [
            (r#"{"a": [1, 2 , 3], "b\",]": ",}"}"#, r#"{"a": [1, 2 , 3], "b\",]": ",}"}"#),
            ("{\"a\":\n\"x\n\ty\r\u{1}\"\n}", "{\"a\":\n\"x\\n\\ty\\r\\u0001\"\n}"),
            ("{\"a\\\\\":\n\"\\\"\n\",}", "{\"a\\\\\":\n\"\\\"\\n\",}"),
        ] {
            assert_eq!(JsonMend::default().push(text), expected);
            let mut mend = JsonMend::default();
            let pieces: String = text.split_inclusive(|_| true).map(|piece| mend.push(piece)).collect();
            assert_eq!(pieces, expected, "by character");
        }
    }
}
