//! Streamed replies, and the times of their events.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::wire::Connection;

/// Path of chat completions.
pub const PATH: &str = "/v1/chat/completions";

/// Response to a request, as its client saw it.
#[derive(Debug, Default)]
pub struct Reply {
    pub status: u16,
    /// Seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// Milliseconds from the request to the first event with output.
    pub ttft: Option<f64>,
    /// Milliseconds between events with output.
    pub gaps: Vec<f64>,
    /// Number of output tokens.
    pub tokens: usize,
    /// True if the client left before the end.
    pub left: bool,
    /// True if it has a finish reason.
    has_reason: bool,
    /// True after `[DONE]`.
    is_done: bool,
    /// Event that reports an error, or error of the connection.
    pub error: Option<String>,
}

impl Reply {
    /// Sends a request, and reads its reply.
    pub fn read(connection: &mut Connection, body: &str) -> Self {
        Self::read_until(connection, body, |_| false)
    }

    /// Sends a request, and reads its reply until `leaves` returns true for the number of events with output
    /// so far.
    pub fn read_until(connection: &mut Connection, body: &str, leaves: impl FnMut(usize) -> bool) -> Self {
        let mut reply = Self::default();
        match reply.receive(connection, body, leaves) {
            Ok(()) => reply,
            Err(error) => Self { error: Some(format!("{error:#}")), ..reply },
        }
    }

    /// Reply of a client that has no connection.
    pub fn unconnected(error: &anyhow::Error) -> Self {
        Self { error: Some(format!("{error:#}")), ..Self::default() }
    }

    /// Returns true if the stream ended as it should: with a finish reason, `[DONE]` and the end of the body.
    pub fn is_complete(&self) -> bool {
        self.status == 200 && self.has_reason && self.is_done && self.error.is_none()
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        body: &str,
        mut leaves: impl FnMut(usize) -> bool,
    ) -> Result<()> {
        let sent = Instant::now();
        let head = connection.post(PATH, body)?;
        (self.status, self.retry_after) = (head.status, head.retry_after);
        if self.status != 200 {
            let text = connection.body(&head)?;
            self.error = (self.status != 429).then_some(text);
            return Ok(());
        }
        let mut last = None;
        while let Some(data) = connection.event()? {
            if self.note(data)? {
                let now = Instant::now();
                match last.replace(now) {
                    None => self.ttft = Some(milliseconds(now - sent)),
                    Some(last) => self.gaps.push(milliseconds(now - last)),
                }
                self.left = leaves(self.gaps.len() + 1);
                if self.left {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Notes the data of an event; returns true if it has output.
    fn note(&mut self, data: &str) -> Result<bool> {
        if data.starts_with("{\"error\"") {
            self.error = Some(data.to_owned());
        }
        self.is_done |= data == "[DONE]";
        self.has_reason |= data.contains("\"finish_reason\":\"");
        if data.contains("\"usage\":{") {
            let usage: Value = serde_json::from_str(data)?;
            self.tokens = tokens(&usage);
        }
        Ok(["{\"content\":\"", "\"tool_calls\":[", "{\"reasoning_content\":\""]
            .iter()
            .any(|output| data.contains(output)))
    }
}

/// Number of output tokens of a response with a usage.
pub fn tokens(response: &Value) -> usize {
    response["usage"]["completion_tokens"].as_u64().unwrap_or(0) as usize
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(events: &[&str]) -> (Reply, usize) {
        let mut reply = Reply { status: 200, ..Reply::default() };
        let outputs = events.iter().filter(|data| reply.note(data).expect("it is read")).count();
        (reply, outputs)
    }

    #[test]
    fn complete_stream_has_reason_and_done() {
        let events = [
            r#"{"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#,
            r#"{"choices":[],"usage":{"completion_tokens":3}}"#,
            "[DONE]",
        ];
        let (reply, outputs) = noted(&events);
        assert!(reply.is_complete());
        assert_eq!((outputs, reply.tokens), (2, 3));
        assert!(!noted(&events[..5]).0.is_complete());
        assert!(!noted(&[r#"{"error":{}}"#, events[3], "[DONE]"]).0.is_complete());
    }
}
