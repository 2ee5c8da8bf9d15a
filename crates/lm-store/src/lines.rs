//! Imports: JSON Lines, one conversation each.

use std::io::{BufRead, Read};

use serde_json::Value;

use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// Reads conversations from JSON Lines, as exports have them. A line may also be the file that the chat page
/// exports: `{"format": "lm-conversations", "version": 1, "conversations": […]}`, also with line breaks if
/// the file has nothing else.
pub fn read_lines<R: BufRead>(input: R) -> Lines<R> {
    Lines { input, limit: Limits::LINE, line: 0, has_failed: false, pending: Vec::new() }
}

/// Iterator over the conversations of an import. After an invalid line it goes on with the next one;
/// after an error of the input it ends.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    /// Longest line in bytes.
    limit: usize,
    line: usize,
    /// The input has failed: a next read might fail for ever.
    has_failed: bool,
    /// Conversations of the last line, in reverse order.
    pending: Vec<Value>,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line that is not empty.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            self.line += 1;
            let mut bytes = Vec::new();
            let (line, limit) = (self.line, self.limit);
            let failed = |source| Error::Read { line, source };
            let mut limited = self.input.by_ref().take(limit as u64 + 1);
            let len = limited.read_until(b'\n', &mut bytes).map_err(failed)?;
            if len > limit {
                if !bytes.ends_with(b"\n") {
                    self.input.skip_until(b'\n').map_err(failed)?;
                }
                return Err(Error::TooLarge {
                    at: format!("line {line}"),
                    size: len,
                    limit,
                    unit: "bytes or more",
                });
            }
            if len == 0 {
                return Ok(None);
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    /// Parses a line. The first one may be the beginning of a document of several lines.
    fn parse(&mut self, mut bytes: Vec<u8>) -> Result<Value> {
        let first = match serde_json::from_slice(&bytes) {
            Ok(value) => return Ok(value),
            Err(source) => source,
        };
        let line = self.line;
        if line == 1 && first.is_eof() {
            let mut limited = self.input.by_ref().take(self.limit.saturating_sub(bytes.len()) as u64);
            limited.read_to_end(&mut bytes).map_err(|source| Error::Read { line, source })?;
            return serde_json::from_slice(&bytes).map_err(|source| Error::NotJson { line, source });
        }
        Err(Error::NotJson { line, source: first })
    }

    fn read_next(&mut self) -> Result<Option<Conversation>> {
        let line = |error: Error, line| Error::InLine { line, source: Box::new(error) };
        loop {
            if let Some(value) = self.pending.pop() {
                return Conversation::from_json(value).map(Some).map_err(|error| line(error, self.line));
            }
            let Some(bytes) = self.next_line()? else { return Ok(None) };
            match self.parse(bytes)? {
                Value::Object(mut file) if file.contains_key("conversations") => {
                    let all = file.remove("conversations").unwrap_or_default();
                    let Value::Array(mut all) = all else {
                        return Err(line(Error::invalid("conversations", "an array", &all), self.line));
                    };
                    all.reverse();
                    self.pending = all;
                }
                value => self.pending.push(value),
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Conversation>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.read_next();
        self.has_failed = matches!(next, Err(Error::Read { .. }));
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_not_read_to_memory() {
        let good = "{\"id\": \"c\", \"nodes\": {}}";
        let long = "x".repeat(100);
        let text = format!("{good}\n{long}{long}\n{good}\n{}\n{good}\n{long}{long}{long}", "y".repeat(100));
        let lines = Lines { limit: 100, ..read_lines(text.as_bytes()) };
        let read: Vec<_> =
            lines.map(|line| line.map(|talk| talk.id).map_err(|error| error.to_string())).collect();
        let too_large = |line| Err(format!("line {line}: 101 bytes or more, at most 100 are kept"));
        let good = || Ok("c".to_owned());
        assert_eq!(read, [good(), too_large(2), good(), too_large(4), good(), too_large(6)]);
    }

    /// Fails at each read.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("broken"))
        }
    }

    #[test]
    fn broken_input_ends() {
        let read: Vec<_> = read_lines(std::io::BufReader::new(Broken)).collect();
        assert!(matches!(read[..], [Err(Error::Read { line: 1, .. })]), "{read:?}");
    }
}
