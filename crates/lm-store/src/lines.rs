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
    Lines { input, line: 0, has_failed: false, pending: Vec::new() }
}

/// Iterator over the conversations of an import. After an invalid line it goes on with the next one;
/// after an error of the input it ends.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
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
            let mut limited = self.input.by_ref().take(Limits::LINE as u64 + 1);
            let read = limited.read_until(b'\n', &mut bytes);
            let len = read.map_err(|source| Error::Read { line: self.line, source })?;
            if len > Limits::LINE {
                self.skip_line()?;
                let at = format!("line {}", self.line);
                return Err(Error::TooLarge { at, size: len, limit: Limits::LINE, unit: "bytes or more" });
            }
            if len == 0 {
                return Ok(None);
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    fn skip_line(&mut self) -> Result<()> {
        loop {
            let read = self.input.fill_buf().map_err(|source| Error::Read { line: self.line, source })?;
            let end = read.iter().position(|byte| *byte == b'\n');
            let (used, is_over) = (end.map_or(read.len(), |end| end + 1), end.is_some() || read.is_empty());
            self.input.consume(used);
            if is_over {
                return Ok(());
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
            let mut limited = self.input.by_ref().take((Limits::LINE - bytes.len().min(Limits::LINE)) as u64);
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
