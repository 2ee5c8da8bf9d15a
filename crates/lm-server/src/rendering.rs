//! Markdown of growing texts as sanitised HTML.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use lm_api::ApiError;
use lm_markdown::{HtmlStream, Piece};
use serde_json::{Value, json};

/// Streams that are kept; the least recently used one is dropped for another.
const MAX_STREAMS: usize = 64;
/// Longest text of a stream, in UTF-16 units.
const MAX_UNITS: usize = 2 << 20;

/// Texts that grow, the most recently used one last.
#[derive(Default)]
pub(crate) struct Renderings {
    streams: Mutex<VecDeque<(String, Arc<Mutex<Growing>>)>>,
}

impl std::fmt::Debug for Renderings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderings").finish_non_exhaustive()
    }
}

/// A text so far.
#[derive(Default)]
struct Growing {
    units: usize,
    html: HtmlStream,
}

impl Renderings {
    /// Takes the next piece of a stream's text, `at` UTF-16 units after its beginning; 0 begins it again.
    /// Returns the `pieces` that it completes, and the `open` ones that the next piece may change.
    ///
    /// # Errors
    /// 409 when the stream is not kept or at another place; 413 when it is too long.
    pub fn push(&self, stream: &str, at: usize, text: &str, done: bool) -> lm_api::Result<Value> {
        let growing = match at {
            0 => Arc::default(),
            _ => self.take(stream).ok_or_else(|| restart(stream))?,
        };
        let mut state = growing.lock().unwrap_or_else(PoisonError::into_inner);
        if state.units != at {
            return Err(restart(stream));
        }
        state.units = at.saturating_add(text.encode_utf16().count());
        if state.units > MAX_UNITS {
            let message = format!("the text has more than {MAX_UNITS} UTF-16 units");
            return Err(ApiError::refused(413, "invalid_request_error", message));
        }
        let mut pieces = state.html.push(text);
        if done {
            pieces.extend(std::mem::take(&mut state.html).finish());
            return Ok(json!({"pieces": all(&pieces), "open": []}));
        }
        let open = state.html.open();
        drop(state);
        self.keep(stream, growing);
        Ok(json!({"pieces": all(&pieces), "open": all(&open)}))
    }

    fn take(&self, name: &str) -> Option<Arc<Mutex<Growing>>> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let index = streams.iter().position(|(other, _)| other == name)?;
        streams.remove(index).map(|(_, growing)| growing)
    }

    fn keep(&self, name: &str, growing: Arc<Mutex<Growing>>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|(other, _)| other != name);
        while streams.len() >= MAX_STREAMS {
            streams.pop_front();
        }
        streams.push_back((name.to_owned(), growing));
    }
}

/// Error of a stream that is not kept, or at another place: the page sends the text from its beginning.
fn restart(stream: &str) -> ApiError {
    let message = format!("the stream `{stream:.40}` is not at this place; send its text from the beginning");
    ApiError::refused(409, "invalid_request_error", message).with_code("stream_restart")
}

/// Pieces as pairs of kind and text.
fn all(pieces: &[Piece]) -> Vec<Value> {
    let pair = |piece: &Piece| match piece {
        Piece::Html(html) => json!(["html", html]),
        Piece::CodeStart(language) => json!(["code", language]),
        Piece::CodeLines(html) => json!(["lines", html]),
        Piece::CodeEnd => json!(["end", ""]),
    };
    pieces.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_grows_at_its_end_only() {
        let renderings = Renderings::default();
        let first = renderings.push("a", 0, "é🌍\n\nb", false).expect("begins");
        assert_eq!(first["pieces"], json!([["html", "<p dir=\"auto\">é🌍</p>"]]));
        assert_eq!(first["open"], json!([["html", "<p dir=\"auto\">b</p>"]]));
        assert_eq!(
            renderings.push("a", 6, "c", true).expect("ends")["pieces"],
            json!([["html", "<p dir=\"auto\">bc</p>"]])
        );
        assert_eq!(renderings.push("a", 7, "d", false).expect_err("is dropped").status, 409);
        renderings.push("b", 0, "x", false).expect("begins");
        assert_eq!(renderings.push("b", 2, "y", false).expect_err("a gap").status, 409);
    }

    #[test]
    fn streams_are_bounded() {
        let renderings = Renderings::default();
        for index in 0..=MAX_STREAMS {
            renderings.push(&index.to_string(), 0, "x", false).expect("begins");
        }
        assert!(renderings.push("0", 1, "y", false).is_err(), "the oldest is dropped");
        renderings.push("1", 1, "y", false).expect("is kept");
        let long = "x\n\n".repeat(MAX_UNITS / 3 + 1);
        assert_eq!(renderings.push("a", 0, &long, false).expect_err("too long").status, 413);
    }
}
