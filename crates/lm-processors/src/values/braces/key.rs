//! Keys of arguments in braces.

use super::{BraceArguments, Need, State, json_string};
use crate::values::push_json_string;
use crate::values::schema::Schema;

/// Search for the end of a key that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct KeyEnd {
    /// Bytes of the key that were searched.
    searched: usize,
    /// True after a backslash of a JSON string.
    escaped: bool,
}

impl BraceArguments {
    /// Reads the key at the start of `rest`.
    pub(super) fn key(&mut self, rest: &str, schema: Option<Schema<'_>>) -> Result<Need, String> {
        if rest.len() < self.mark.len() && self.mark.starts_with(rest) {
            return Ok(Need::MoreText);
        }
        let found = if let Some(marked) = rest.strip_prefix(self.mark) {
            let from = self.key_end.resume(marked, self.mark.len());
            let end = marked[from..].find(self.mark).map(|offset| from + offset);
            end.map(|end| (marked[..end].to_owned(), end + 2 * self.mark.len()))
        } else if rest.starts_with('"') {
            self.key_end
                .json_string(rest)
                .map(|end| json_string(&rest[..end]).map(|key| (key, end)))
                .transpose()?
        } else {
            let from = self.key_end.resume(rest, 0);
            let is_end = |c| ":,{}[]".contains(c) || (self.round && c == ')');
            let end = rest[from..].find(is_end).map(|offset| from + offset);
            end.map(|end| self.bare_key(&rest[..end], schema)).transpose()?
        };
        let Some((key, end)) = found else { return Ok(Need::MoreText) };
        self.key_end = KeyEnd::default();
        self.at += end;
        self.write_key(key);
        Ok(Need::AnotherLook)
    }

    /// A key without marks, and its length: of `city='Paris'`, the declared `city`.
    fn bare_key(&self, text: &str, schema: Option<Schema<'_>>) -> Result<(String, usize), String> {
        let declares = |key: &str| schema.is_some_and(|schema| schema.declares(key));
        let assigned = text.find('=').filter(|&end| {
            !self.close.is_empty()
                && self.is_argument()
                && !declares(text.trim_end())
                && declares(text[..end].trim_end())
        });
        let end = assigned.unwrap_or(text.len());
        match text[..end].trim_end() {
            "" => Err("a key is empty".to_owned()),
            key => Ok((key.to_owned(), end)),
        }
    }

    fn write_key(&mut self, key: String) {
        let before = if self.stack.last().is_some_and(|frame| frame.filled) { ", " } else { "" };
        self.write(|out| {
            out.push_str(before);
            push_json_string(out, &key);
            out.push_str(": ");
        });
        if self.stack.len() == 1 {
            self.argument = key;
        }
        self.state = State::Colon;
    }
}

impl KeyEnd {
    /// Place from which `text`, which starts with the key, is searched for a mark of this length.
    fn resume(&mut self, text: &str, mark: usize) -> usize {
        let searched = std::mem::replace(&mut self.searched, text.len());
        text.floor_char_boundary(searched.saturating_sub(mark))
    }

    /// End of the JSON string that `text` starts with.
    fn json_string(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate().skip(self.searched.max(1)) {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => return Some(at + 1),
                _ => {}
            }
        }
        self.searched = text.len();
        None
    }
}
