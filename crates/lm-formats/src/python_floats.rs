//! Numbers that Python's JSON has and JSON lacks.

/// Literals, the longer before its own ending.
const LITERALS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Replaces the literals outside of strings by `{"__float__": "Infinity"}`; `None` if there are none.
pub(crate) fn tagged_floats(json: &[u8]) -> Option<Vec<u8>> {
    let (mut tagged, mut found, mut rest) = (Vec::new(), false, json);
    while let Some((&first, after)) = rest.split_first() {
        if let Some(literal) = LITERALS.iter().find(|literal| rest.starts_with(literal.as_bytes())) {
            tagged.extend_from_slice(format!(r#"{{"__float__": "{literal}"}}"#).as_bytes());
            (found, rest) = (true, &rest[literal.len()..]);
        } else {
            let len = if first == b'"' { 1 + string_len(after) } else { 1 };
            tagged.extend_from_slice(&rest[..len]);
            rest = &rest[len..];
        }
    }
    found.then_some(tagged)
}

/// Length of a string up to and including its closing quote.
fn string_len(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literals_outside_of_strings_change() {
        let tagged = |json: &str| tagged_floats(json.as_bytes()).map(|json| String::from_utf8(json).unwrap());
        let json = r#"{"a\"NaN": [0.0, Infinity, "Infinity"], "b": -Infinity, "c": NaN}"#;
        let expected = r#"{"a\"NaN": [0.0, {"__float__": "Infinity"}, "Infinity"], "b": {"__float__": "-Infinity"}, "c": {"__float__": "NaN"}}"#;
        assert_eq!(tagged(json).as_deref(), Some(expected));
        for plain in [r#"{"a": "Infinity \\", "b": 1e3}"#, "", r#"""#, r#""\"#] {
            assert_eq!(tagged(plain), None, "{plain}");
        }
    }
}
