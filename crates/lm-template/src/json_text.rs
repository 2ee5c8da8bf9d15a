//! JSON from outside, whose strings may have escapes of half a character.

use std::borrow::Cow;

use serde_json::Value;

/// Reads JSON as `serde_json` does, except that the escape of a lone surrogate, such as `"\ud83d"`, is read
/// as U+FFFD: texts that were cut between the two halves of a character have one.
///
/// ```
/// use lm_template::json_from_slice;
///
/// assert_eq!(json_from_slice(br#"["\ud83d", "\ud83d\ude00"]"#)?, serde_json::json!(["\u{FFFD}", "😀"]));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// When the bytes are not JSON otherwise.
pub fn json_from_slice(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| match with_whole_characters(bytes) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(mended) => serde_json::from_slice(&mended),
    })
}

/// Replaces each escape of a lone surrogate.
fn with_whole_characters(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (mut mended, mut copied, mut at) = (Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        let step = match (byte, surrogate(&bytes[at..])) {
            (b'\\', Some(Half::First)) if matches!(surrogate(&bytes[at + 6..]), Some(Half::Second)) => 12,
            (b'\\', Some(_)) => {
                mended.extend_from_slice(&bytes[copied..at]);
                mended.extend_from_slice(b"\\ufffd");
                copied = at + 6;
                6
            }
            (b'\\', None) => 2,
            _ => 1,
        };
        at += step;
    }
    if mended.is_empty() {
        return Cow::Borrowed(bytes);
    }
    mended.extend_from_slice(&bytes[copied..]);
    Cow::Owned(mended)
}

enum Half {
    First,
    Second,
}

/// The half of a character that the text starts with as an escape.
fn surrogate(text: &[u8]) -> Option<Half> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Half::First),
        0xDC00..=0xDFFF => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_halves_are_replaced_and_pairs_kept() {
        for (text, expected) in [
            (r#""a\ud83d""#, json!("a\u{FFFD}")),
            (r#""\ude00b""#, json!("\u{FFFD}b")),
            (r#"{"\uD83D\uD83D\uDE00": "\ud83dx"}"#, json!({"\u{FFFD}😀": "\u{FFFD}x"})),
            (r#""\\ud83d""#, json!("\\ud83d")),
            (r#"["\ud83d\n", "\u00e9"]"#, json!(["\u{FFFD}\n", "é"])),
        ] {
            assert_eq!(json_from_slice(text.as_bytes()).expect(text), expected, "{text}");
        }
        for text in [r#"{"a": "\ud8"#, r#""\ud83d"#, r#"{"a": "b"#] {
            assert!(json_from_slice(text.as_bytes()).is_err(), "{text}");
        }
    }
}
