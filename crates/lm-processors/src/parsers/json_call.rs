//! The JSON of one call (or of a list of calls), followed while it arrives.

use std::ops::Range;

/// The longest text of a call; a reader of endless text must end.
const MAX_CALL_BYTES: usize = 1 << 20;

/// How far the JSON is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More must come.
    Open,
    /// The value ended before this byte.
    Complete(usize),
    /// This is not a call.
    Invalid(&'static str),
}

/// Follows the structure of a JSON value as it grows. Whether it is correct JSON is judged when it is complete.
#[derive(Debug, Default)]
pub(crate) struct JsonCall {
    /// Where the name stands, quotes included, once it is complete.
    pub(crate) name: Option<Range<usize>>,
    /// Where the arguments begin, once they have, when they are an object.
    pub(crate) arguments_start: Option<usize>,
    /// Where they end, once they have.
    pub(crate) arguments_end: Option<usize>,
    /// How much of the text is read and may be JSON.
    pub(crate) at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    string_start: usize,
    key: Range<usize>,
    after_colon: bool,
}

impl JsonCall {
    /// Reads on in `text`, which begins with the text of the calls before.
    pub(crate) fn follow(&mut self, text: &str) -> Progress {
        let begin = self.at;
        for (offset, c) in text[begin..].char_indices() {
            self.at = begin + offset + c.len_utf8();
            let progress =
                if self.in_string { self.in_string(c, text) } else { self.between_strings(c, text) };
            match progress {
                Progress::Open => {}
                Progress::Complete(_) => return progress,
                Progress::Invalid(_) => {
                    self.at = begin + offset;
                    return progress;
                }
            }
        }
        if text.len() > MAX_CALL_BYTES { Progress::Invalid("it is too long") } else { Progress::Open }
    }

    fn in_string(&mut self, c: char, text: &str) -> Progress {
        match c {
            _ if self.escaped => self.escaped = false,
            '\\' => self.escaped = true,
            '"' => {
                self.in_string = false;
                if self.depth == 1 {
                    self.outer_string_ends(text);
                }
            }
            c if c < ' ' => return Progress::Invalid("a control character stands inside a string"),
            _ => {}
        }
        Progress::Open
    }

    fn outer_string_ends(&mut self, text: &str) {
        let string = self.string_start..self.at;
        if !self.after_colon {
            self.key = string;
        } else if &text[self.key.clone()] == "\"name\"" {
            self.name = Some(string);
        }
    }

    fn between_strings(&mut self, c: char, text: &str) -> Progress {
        match c {
            '{' | '[' => {
                let is_arguments =
                    ["\"arguments\"", "\"args\"", "\"parameters\""].contains(&&text[self.key.clone()]);
                if self.depth == 1 && self.after_colon && c == '{' && is_arguments {
                    self.arguments_start = Some(self.at - 1);
                }
                self.depth += 1;
            }
            c if c.is_whitespace() => {}
            _ if self.depth == 0 => return Progress::Invalid("it does not begin as a JSON object"),
            '}' | ']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Progress::Complete(self.at);
                }
                if self.depth == 1 && self.arguments_start.is_some() && self.arguments_end.is_none() {
                    self.arguments_end = Some(self.at);
                }
            }
            '"' => {
                self.in_string = true;
                self.string_start = self.at - 1;
            }
            ':' if self.depth == 1 => self.after_colon = true,
            ',' if self.depth == 1 => self.after_colon = false,
            ':' | ',' | '+' | '-' | '.' => {}
            c if c.is_ascii_alphanumeric() => {}
            _ => return Progress::Invalid("a character that is no JSON stands outside the strings"),
        }
        Progress::Open
    }
}
