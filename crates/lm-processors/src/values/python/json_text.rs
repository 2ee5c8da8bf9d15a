//! JSON text of a Python literal or call: brackets, keys and separators.

use super::super::{MAX_DEPTH, push_json_string};

/// JSON text whose innermost bracket is still open.
///
/// A bracket's kind may become known only after its first element: `{` starts a dictionary or a set, `(` a
/// tuple or one value in parentheses. The opening bracket is then rewritten in place.
#[derive(Debug)]
pub(super) struct JsonText {
    text: String,
    stack: Vec<Frame>,
    positional_names: std::vec::IntoIter<String>,
}

/// Kind of an open bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Arguments of the call.
    Arguments,
    List,
    /// `(`: a tuple, or parentheses around one value, depending on a comma.
    Round {
        comma: bool,
    },
    /// `{`: a dictionary or a set, depending on a colon.
    Curly,
    Dict,
    Set,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Position of its bracket in the JSON text.
    start: usize,
    /// Start of the current element in the JSON text.
    element: usize,
    /// True if an element is complete.
    filled: bool,
    /// True if the key of the next value has been written.
    keyed: bool,
}

pub(super) type Step = Result<(), String>;

impl JsonText {
    /// Creates the text of one open bracket; positional arguments take `positional_names` in order.
    pub(super) fn new(kind: Kind, positional_names: Vec<String>) -> Self {
        let positional_names = positional_names.into_iter();
        let mut json = Self { text: String::new(), stack: Vec::new(), positional_names };
        json.push_frame(kind);
        json
    }

    /// The text so far.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The text that can no longer change.
    pub(super) fn certain(&self) -> &str {
        let open = |frame: &&Frame| matches!(frame.kind, Kind::Curly | Kind::Round { .. });
        &self.text[..self.stack.iter().find(open).map_or(self.text.len(), |frame| frame.start)]
    }

    /// Returns true after the closing bracket of the whole.
    pub(super) fn is_closed(&self) -> bool {
        self.stack.is_empty()
    }

    /// Returns true where a keyword of the call may come next.
    pub(super) fn expects_keyword(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { kind: Kind::Arguments, keyed: false, .. }))
    }

    /// Text of the string that is open.
    pub(super) fn string(&mut self) -> &mut String {
        &mut self.text
    }

    /// Writes the key of the next argument.
    pub(super) fn keyword(&mut self, word: &str) -> Step {
        let frame = self.top()?;
        let separator = if frame.filled { ", " } else { "" };
        frame.keyed = true;
        self.text.push_str(separator);
        push_json_string(&mut self.text, word);
        self.text.push_str(": ");
        Ok(())
    }

    /// Writes the start of a value, or all of it: `json` after its comma or the name of a positional
    /// argument.
    pub(super) fn value(&mut self, json: &str) -> Step {
        self.begin_element()?;
        self.text.push_str(json);
        Ok(())
    }

    /// Opens a bracket as a value.
    pub(super) fn open(&mut self, kind: Kind) -> Step {
        if self.stack.len() == MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH}"));
        }
        self.begin_element()?;
        self.push_frame(kind);
        Ok(())
    }

    /// Ends an element at a comma.
    pub(super) fn comma(&mut self) -> Step {
        self.element_ends()?;
        match &mut self.top()?.kind {
            Kind::Round { comma } => *comma = true,
            Kind::Curly => self.becomes_set(),
            _ => {}
        }
        Ok(())
    }

    /// Turns the value into the key of a dictionary; JSON keys are strings only.
    pub(super) fn colon(&mut self) -> Step {
        let frame = self.top()?;
        if !matches!(frame.kind, Kind::Curly | Kind::Dict) || frame.keyed {
            return Err("unexpected `:` after a value".to_owned());
        }
        frame.kind = Kind::Dict;
        frame.keyed = true;
        let element = frame.element;
        match self.text.as_bytes().get(element) {
            Some(b'"') => {}
            Some(b'[' | b'{' | b' ') => return Err("a key is no string".to_owned()),
            _ => {
                self.text.insert(element, '"');
                self.text.push('"');
            }
        }
        self.text.push_str(": ");
        Ok(())
    }

    /// Ends the last element of the innermost bracket.
    pub(super) fn element_ends(&mut self) -> Step {
        let frame = self.top()?;
        if frame.kind == Kind::Dict && !frame.keyed {
            return Err("a key has no value".to_owned());
        }
        frame.keyed = false;
        frame.filled = true;
        Ok(())
    }

    /// Closes the innermost bracket with `c`.
    pub(super) fn close(&mut self, c: char) -> Step {
        let frame = self.top()?;
        if frame.keyed {
            return Err("a key has no value".to_owned());
        }
        let (start, set_of_one) = (frame.start, frame.kind == Kind::Curly && frame.filled);
        let bracket = match (frame.kind, c) {
            (Kind::Arguments, ')') => "}",
            (Kind::List, ']') | (Kind::Set, '}') => "]",
            // Parentheses around one value are not a tuple: a blank replaces them.
            (Kind::Round { comma: false }, ')') if frame.filled => {
                self.text.replace_range(start..=start, " ");
                ""
            }
            (Kind::Round { .. }, ')') => "]",
            (Kind::Curly, '}') if set_of_one => {
                self.becomes_set();
                "]"
            }
            (Kind::Curly | Kind::Dict, '}') => "}",
            _ => return Err(format!("`{c}` closes nothing")),
        };
        self.text.push_str(bracket);
        self.stack.pop();
        Ok(())
    }

    /// The innermost open bracket; an error if the arguments have ended.
    fn top(&mut self) -> Result<&mut Frame, String> {
        self.stack.last_mut().ok_or_else(|| "text follows the arguments".to_owned())
    }

    fn push_frame(&mut self, kind: Kind) {
        let start = self.text.len();
        self.text.push(match kind {
            Kind::List | Kind::Round { .. } | Kind::Set => '[',
            Kind::Arguments | Kind::Curly | Kind::Dict => '{',
        });
        self.stack.push(Frame { kind, start, element: start + 1, filled: false, keyed: false });
    }

    /// Writes the text before an element: a comma, or the name of a positional argument.
    fn begin_element(&mut self) -> Step {
        let end = self.text.len();
        let frame = self.top()?;
        if frame.keyed {
            return Ok(());
        }
        if frame.kind == Kind::Arguments {
            let name = self.positional_names.next().ok_or("an argument has no name")?;
            return self.keyword(&name);
        }
        let comma = frame.filled;
        frame.element = end + if comma { 2 } else { 0 };
        if comma {
            self.text.push_str(", ");
        }
        Ok(())
    }

    /// Turns the innermost bracket into a set.
    fn becomes_set(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.kind = Kind::Set;
            self.text.replace_range(frame.start..=frame.start, "[");
        }
    }
}
