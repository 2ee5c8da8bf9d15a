//! Id and kind of a message that cannot be read.

use rmcp::model::RequestId;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The readable part of a message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Envelope {
    pub id: Option<RequestId>,
    /// True for an answer to a request.
    pub is_answer: bool,
}

/// Members of a message up to a fault.
#[derive(Default)]
struct Members {
    id: Option<RequestId>,
    has_version: bool,
    has_method: bool,
    has_result: bool,
}

impl Envelope {
    /// Reads the members of a line up to a fault in it.
    pub fn of_line(line: &[u8]) -> Self {
        let Members { id, has_version, has_method, has_result } = Members::of(line);
        Self { id, is_answer: !has_method && (has_version || has_result) }
    }

    /// Reads the first and last bytes of a line.
    pub fn of_edges(start: &[u8], end: &[u8]) -> Self {
        let Self { id, is_answer } = Self::of_line(start);
        let end = || String::from_utf8_lossy(end).into_owned();
        Self { id: id.or_else(|| is_answer.then(end).and_then(|end| id_at(&end))), is_answer }
    }
}

/// The id among the last members of a message.
fn id_at(end: &str) -> Option<RequestId> {
    let (_, id) = end.rsplit_once("\"id\"")?;
    let members = format!("{{\"id\"{id}");
    serde_json::from_str::<IgnoredAny>(&members).ok()?; // A nested object would have another brace.
    Members::of(members.as_bytes()).id
}

impl Members {
    fn of(line: &[u8]) -> Self {
        let mut members = Self::default();
        let mut json = serde_json::Deserializer::from_slice(line);
        let _ = json.deserialize_map(&mut members); // The line is broken: those before the fault count.
        members
    }
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => {
                    self.id = map.next_value()?;
                    continue;
                }
                "jsonrpc" => self.has_version = true,
                "method" => self.has_method = true,
                "result" => self.has_result = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Replaces the parts of a line that are no Unicode by U+FFFD: bytes that are not UTF-8, and escaped halves
/// of surrogate pairs, as in a text that was cut. `None` if there are none.
pub(super) fn mended(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let (mut mended, mut rest) = (String::with_capacity(text.len()), &*text);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended += before;
        let is_low = |text: &str| matches!(unit(text), Some(0xdc00..=0xdfff));
        let (length, shown) = match unit(escape) {
            Some(0xd800..=0xdbff) if is_low(&escape[6..]) => (12, &escape[..12]),
            Some(0xd800..=0xdfff) => (6, "\\ufffd"),
            Some(_) => (6, &escape[..6]),
            None => {
                let length = escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at);
                (length, &escape[..length])
            }
        };
        mended += shown;
        rest = &escape[length..];
    }
    mended += rest;
    (mended.as_bytes() != line).then_some(mended)
}

/// The code unit of an escape `\uHHHH` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(id: i64) -> Envelope {
        Envelope { id: Some(RequestId::Number(id)), is_answer: true }
    }

    #[test]
    fn id_of_a_broken_line_is_found() {
        let nothing = Envelope::default();
        let without_id = Envelope { is_answer: true, ..Envelope::default() };
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":4,"result":{"a":"#, answer(4)),
            (r#"{"result":{"a":["\ud800",{}]},"jsonrpc":"2.0","id":4}"#, answer(4)),
            (r#"{"jsonrpc":"2.0","id":4,"error":"no"}"#, answer(4)),
            (r#"{"result":{"id":4,"#, without_id),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":["#,
                Envelope { is_answer: false, ..answer(4) },
            ),
            (r#"{"level":"info","text":"#, Envelope::default()),
            ("Server started", Envelope::default()),
        ] {
            assert_eq!(Envelope::of_line(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(Envelope::of_line(b"\xff{"), nothing);
    }

    #[test]
    fn id_at_the_edges_of_a_line_is_found() {
        let of = |start: &str, end: &str| Envelope::of_edges(start.as_bytes(), end.as_bytes());
        let start = r#"{"result":{"content":[{"type":"text","text":"xx"#;
        assert_eq!(of(start, r#"xx"}]},"jsonrpc":"2.0","id":4}"#), answer(4));
        assert_eq!(of(start, r#"xx"}]},"id": 4 , "jsonrpc":"2.0"} "#), answer(4));
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":5,"result":{"#, r#""id":4}"#), answer(5));
        assert_eq!(of(start, r#"xx","id":4}}"#).id, None);
        assert_eq!(of("xxxx", r#""id":4}"#), Envelope::default());
    }

    #[test]
    fn text_that_is_not_unicode_is_mended() {
        assert_eq!(mended(b"\"\xc3(\""), Some("\"\u{fffd}(\"".to_owned()));
        assert_eq!(mended(br#""\ud83d""#).as_deref(), Some(r#""\ufffd""#));
        assert_eq!(
            mended(br#""\ude00\ud83d\ude00\ud83d\u0041""#).as_deref(),
            Some(r#""\ufffd\ud83d\ude00\ufffd\u0041""#)
        );
        for whole in [r#""\ud83d\ude00 \\ud83d \n \u00e9""#, "\"\u{1f600}\\", r#""\u12"#, "\"\\\u{e9}"] {
            assert_eq!(mended(whole.as_bytes()), None, "{whole}");
        }
    }
}
