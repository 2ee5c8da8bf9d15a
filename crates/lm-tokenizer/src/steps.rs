//! Checks of a `tokenizer.json`'s pipeline steps: nesting depth, and growth of the text.

use serde_json::Value;

use crate::{Error, Result};

/// Maximum nesting depth of step sequences; files have one or two. The library's time to reject a step
/// doubles with each level.
const MAX_DEPTH: usize = 8;
/// Maximum number of bytes that all steps of a part make of one byte; SentencePiece's mark for a space has
/// three.
const MAX_GROWTH: usize = 1024;
/// Keys of the step lists, by part.
const LISTS: [&str; 4] = ["decoders", "normalizers", "pretokenizers", "processors"];

/// Checks a part of the file before any of it runs.
///
/// # Errors
/// [`Error::Unsupported`] for sequences nested too deep and for steps that expand a text too much.
pub(crate) fn check(part: &'static str, step: &Value) -> Result<()> {
    let unsupported = |value: String, known| Err(Error::Unsupported { part, value, known });
    if depth(step, 0) > MAX_DEPTH {
        return unsupported("sequences in more than 8 others".into(), "8 at most");
    }
    match growth(step) {
        ..=MAX_GROWTH => Ok(()),
        _ => unsupported("steps that make more than 1024 bytes of one".into(), "1024 bytes at most"),
    }
}

fn inner(step: &Value) -> impl Iterator<Item = &Value> {
    LISTS.iter().filter_map(|list| step.get(list)?.as_array()).flatten()
}

/// Nesting depth of the innermost step; stops beyond the limit.
fn depth(step: &Value, above: usize) -> usize {
    if above > MAX_DEPTH {
        return above;
    }
    inner(step).map(|step| depth(step, above + 1)).max().unwrap_or(above)
}

/// Maximum number of bytes that a step makes of one byte.
fn growth(step: &Value) -> usize {
    let bytes = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, str::len);
    let own = match step.get("type").and_then(Value::as_str) {
        Some("Replace") => {
            let content = bytes(step.get("content"));
            match bytes(step.pointer("/pattern/String")) {
                // A regular expression, or an empty pattern, can match before each character.
                0 => content.saturating_add(1),
                pattern => content.div_ceil(pattern),
            }
        }
        Some("Prepend") => bytes(step.get("prepend")).saturating_add(1),
        // Some bytes have two-byte characters in its alphabet.
        Some("ByteLevel") => 2,
        _ => 1,
    };
    inner(step).map(growth).fold(own.max(1), usize::saturating_mul)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sequence(list: &str, steps: &[Value]) -> Value {
        json!({"type": "Sequence", list: steps})
    }

    #[test]
    fn growth_covers_all_steps() {
        let replace = |from: Value, to: &str| json!({"type": "Replace", "pattern": from, "content": to});
        let mark = replace(json!({"String": " "}), "▁");
        assert_eq!(growth(&mark), 3);
        assert_eq!(growth(&replace(json!({"String": "▁"}), " ")), 1);
        assert_eq!(growth(&replace(json!({"Regex": " {2,}"}), " ")), 2);
        assert_eq!(growth(&replace(json!({"String": ""}), "ab")), 3);
        let prepend = json!({"type": "Prepend", "prepend": "▁"});
        assert_eq!(growth(&sequence("normalizers", &[prepend, mark.clone()])), 12);
        check("normalizer", &sequence("normalizers", &vec![mark.clone(); 6])).unwrap();
        assert!(check("normalizer", &sequence("normalizers", &vec![mark; 7])).is_err());
        let bytes = json!({"type": "ByteLevel"});
        assert!(check("pre_tokenizer", &sequence("pretokenizers", &vec![bytes; 11])).is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let nested =
            |depth| (0..depth).fold(json!({"type": "NFC"}), |step, _| sequence("normalizers", &[step]));
        check("normalizer", &nested(8)).unwrap();
        assert!(check("normalizer", &nested(9)).is_err());
    }
}
