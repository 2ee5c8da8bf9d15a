//! Structure of JSON text, byte by byte.

/// Maximum nesting depth; the JSON parser of complete values has the same limit.
pub(crate) const MAX_DEPTH: usize = 127;

/// Structural meaning of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonStep {
    /// Whitespace outside the strings.
    Layout,
    /// Part of a string, number or word.
    Inside,
    /// `{` or `[`: increments the depth.
    Open,
    /// `}` or `]`: decrements the depth.
    Close,
    /// Opening quote of a string.
    StringStart,
    /// Closing quote of a string.
    StringEnd,
    /// `:`
    Colon,
    /// `,`
    Comma,
    /// Invalid in JSON.
    Invalid(&'static str),
}

/// Tracks nesting and strings. Complete text is validated by the JSON parser.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonScan {
    depth: usize,
    /// Bit set of the open brackets that are lists, the innermost in the lowest bit.
    lists: u128,
    in_string: bool,
    escaped: bool,
    /// True if strings may contain control characters.
    is_lenient: bool,
    /// True in a string that contains one.
    spans_lines: bool,
}

impl JsonScan {
    /// Creates a scan of JSON whose strings may contain control characters if `is_lenient`.
    pub(crate) fn new(is_lenient: bool) -> Self {
        Self { is_lenient, ..Self::default() }
    }

    /// Number of open brackets.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns true if the next byte is inside a string.
    pub(crate) fn in_string(&self) -> bool {
        self.in_string
    }

    /// Returns true if the next byte is inside a string that contains a control character: it may lack its closing quote.
    pub(crate) fn in_defective_string(&self) -> bool {
        self.spans_lines
    }

    /// Consumes the next byte.
    pub(crate) fn step(&mut self, byte: u8) -> JsonStep {
        if self.in_string {
            return self.string_step(byte);
        }
        match byte {
            b'{' | b'[' if self.depth == MAX_DEPTH => JsonStep::Invalid("it is nested too deeply"),
            b'{' | b'[' => {
                self.depth += 1;
                self.lists = self.lists << 1 | u128::from(byte == b'[');
                JsonStep::Open
            }
            b' ' | b'\t' | b'\n' | b'\r' => JsonStep::Layout,
            _ if self.depth == 0 => JsonStep::Invalid("it does not begin as a JSON object"),
            b'}' | b']' if (self.lists & 1 == 1) != (byte == b']') => {
                JsonStep::Invalid("its brackets do not match")
            }
            b'}' | b']' => {
                self.depth -= 1;
                self.lists >>= 1;
                JsonStep::Close
            }
            b'"' => {
                self.in_string = true;
                JsonStep::StringStart
            }
            b':' => JsonStep::Colon,
            b',' => JsonStep::Comma,
            b'+' | b'-' | b'.' => JsonStep::Inside,
            byte if byte.is_ascii_alphanumeric() => JsonStep::Inside,
            _ => JsonStep::Invalid("invalid character outside of strings"),
        }
    }

    fn string_step(&mut self, byte: u8) -> JsonStep {
        match byte {
            0..b' ' if self.is_lenient => (self.escaped, self.spans_lines) = (false, true),
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                (self.in_string, self.spans_lines) = (false, false);
                return JsonStep::StringEnd;
            }
            0..b' ' => return JsonStep::Invalid("control character in a string"),
            _ => {}
        }
        JsonStep::Inside
    }
}
