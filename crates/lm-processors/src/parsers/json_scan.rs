//! The structure of JSON text, followed byte by byte.

/// The deepest nesting; the JSON reader that judges a complete value knows the same limit.
pub(crate) const MAX_DEPTH: usize = 127;

/// What a byte means for the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Whitespace outside the strings.
    Layout,
    /// A part of a string, a number or a word.
    Inside,
    /// `{` or `[`: the depth is one more now.
    Open,
    /// `}` or `]`: the depth is one less now.
    Close,
    /// The first quote of a string.
    StringStart,
    /// The last quote of a string.
    StringEnd,
    /// `:`
    Colon,
    /// `,`
    Comma,
    /// This cannot stand in JSON.
    Invalid(&'static str),
}

/// Follows nesting and strings. Whether the text is correct JSON is judged when it is complete.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonScan {
    depth: usize,
    /// Which of the open brackets are those of lists, the innermost in the lowest bit.
    lists: u128,
    in_string: bool,
    escaped: bool,
}

impl JsonScan {
    /// How many brackets are open.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the next byte stands in a string.
    pub(crate) fn in_string(&self) -> bool {
        self.in_string
    }

    /// Takes the next byte.
    pub(crate) fn step(&mut self, byte: u8) -> Step {
        if self.in_string {
            return self.string_step(byte);
        }
        match byte {
            b'{' | b'[' if self.depth == MAX_DEPTH => Step::Invalid("it is nested too deeply"),
            b'{' | b'[' => {
                self.depth += 1;
                self.lists = self.lists << 1 | u128::from(byte == b'[');
                Step::Open
            }
            b' ' | b'\t' | b'\n' | b'\r' => Step::Layout,
            _ if self.depth == 0 => Step::Invalid("it does not begin as a JSON object"),
            b'}' | b']' if (self.lists & 1 == 1) != (byte == b']') => {
                Step::Invalid("its brackets do not match")
            }
            b'}' | b']' => {
                self.depth -= 1;
                self.lists >>= 1;
                Step::Close
            }
            b'"' => {
                self.in_string = true;
                Step::StringStart
            }
            b':' => Step::Colon,
            b',' => Step::Comma,
            b'+' | b'-' | b'.' => Step::Inside,
            byte if byte.is_ascii_alphanumeric() => Step::Inside,
            _ => Step::Invalid("a character that is no JSON stands outside the strings"),
        }
    }

    fn string_step(&mut self, byte: u8) -> Step {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.in_string = false;
                return Step::StringEnd;
            }
            0..b' ' => return Step::Invalid("a control character stands inside a string"),
            _ => {}
        }
        Step::Inside
    }
}
