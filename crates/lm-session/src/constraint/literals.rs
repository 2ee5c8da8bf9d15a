//! String literals of a grammar.

use std::sync::Arc;

use super::ConstraintSpec;

/// Maximum number of literals kept, and maximum length of one, in bytes.
const MAX_LITERALS: usize = 256;
const MAX_BYTES: usize = 64;

/// String literals and markers of a Lark grammar; they include the ones that close a part of the text.
pub(super) fn string_literals(spec: &ConstraintSpec) -> Arc<[String]> {
    let mut found = Vec::new();
    if let ConstraintSpec::Lark { text, markers } = spec {
        found.extend(markers.iter().cloned());
        found.extend(text.lines().flat_map(in_line));
    }
    found.retain(|text| !text.is_empty() && text.len() <= MAX_BYTES);
    found.sort();
    found.dedup();
    found.truncate(MAX_LITERALS);
    found.into()
}

/// Texts between double quotes. A quote inside a regular expression yields a text that is not a literal; this
/// is harmless, as literals are only candidates.
fn in_line(line: &str) -> Vec<String> {
    let (mut literals, mut rest) = (Vec::new(), line);
    while let Some(start) = rest.find('"') {
        let body = &rest[start + 1..];
        let escaped =
            |at: usize| body.as_bytes()[..at].iter().rev().take_while(|&&b| b == b'\\').count() % 2 == 1;
        let Some(end) = body.match_indices('"').map(|(at, _)| at).find(|&at| !escaped(at)) else { break };
        literals.extend(serde_json::from_str(&rest[start..start + end + 2]).ok());
        rest = &body[end + 1..];
    }
    literals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_unescaped() {
        let text = "start: \"a\\n\" TEXT \"\\\"}\"\nTEXT: /[^\"]*/\nx: \"end\"".to_owned();
        let spec = ConstraintSpec::Lark { text, markers: vec!["</x>".to_owned()] };
        assert_eq!(*string_literals(&spec), ["\"}", "</x>", "a\n", "end"]);
        assert!(string_literals(&ConstraintSpec::Regex("\"a\"".to_owned())).is_empty());
    }
}
