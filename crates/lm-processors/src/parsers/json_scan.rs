//! Structure of JSON text, byte by byte.

use super::marker_scan::{Prefix, prefix};
use super::recovery::{Departure, Tolerance};

/// Maximum nesting depth; the JSON parser of complete values has the same limit.
pub(crate) const MAX_DEPTH: usize = 127;

/// Fault of a text with the call's closing marker inside a defective string or a comment.
pub(crate) const UNTERMINATED: &str = "unterminated string or comment";

/// Structural meaning of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonStep {
    /// Whitespace outside the strings, or part of a comment.
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

const INVALID: JsonStep = JsonStep::Invalid("invalid character outside of strings");

/// Tracks nesting, strings and comments. Complete text is validated by the JSON parser.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonScan {
    depth: usize,
    /// Bit set of the open brackets that are lists, the innermost in the lowest bit.
    lists: u128,
    place: JsonPlace,
    /// Departures from valid JSON that the scan accepts.
    tolerance: Tolerance,
}

/// Place of a byte in JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    /// Outside of strings and comments.
    #[default]
    Outside,
    /// Inside a string with this quote.
    String {
        quote: u8,
        /// True after a backslash.
        escaped: bool,
        /// True if the string is not valid JSON.
        is_defective: bool,
    },
    /// After the `/` that begins a comment.
    Slash,
    /// Inside a comment that the line's end ends.
    LineComment,
    /// Inside a comment that `*/` ends.
    BlockComment {
        /// True after an asterisk.
        star: bool,
    },
}

impl JsonScan {
    /// Creates a scan of JSON with these departures.
    pub(crate) fn new(tolerance: Tolerance) -> Self {
        Self { tolerance, ..Self::default() }
    }

    /// Number of open brackets.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Place of the next byte.
    pub(crate) fn place(&self) -> JsonPlace {
        self.place
    }

    /// Returns true if the next byte is outside of strings and comments.
    pub(crate) fn is_outside(&self) -> bool {
        self.place == JsonPlace::Outside
    }

    /// Returns true if the next byte is inside a string.
    pub(crate) fn in_string(&self) -> bool {
        matches!(self.place, JsonPlace::String { .. })
    }

    /// Searches for the closing marker of a call at the start of `rest`, inside a string that is not valid
    /// JSON, or a comment: its end is missing.
    pub(crate) fn unterminated_at(&self, rest: &[u8], close: &str) -> Prefix {
        match self.place {
            JsonPlace::Outside | JsonPlace::String { is_defective: false, .. } => Prefix::Absent,
            _ => prefix(rest, close),
        }
    }

    /// Consumes the next byte.
    pub(crate) fn step(&mut self, byte: u8) -> JsonStep {
        match self.place {
            JsonPlace::Outside => self.outside_step(byte),
            JsonPlace::String { quote, escaped, is_defective } => {
                self.string_step(byte, quote, escaped, is_defective)
            }
            JsonPlace::Slash => match byte {
                b'/' => self.enter(JsonPlace::LineComment, JsonStep::Layout),
                b'*' => self.enter(JsonPlace::BlockComment { star: false }, JsonStep::Layout),
                _ => self.enter(JsonPlace::Outside, INVALID),
            },
            JsonPlace::LineComment if byte == b'\n' => self.enter(JsonPlace::Outside, JsonStep::Layout),
            JsonPlace::LineComment => JsonStep::Layout,
            JsonPlace::BlockComment { star: true } if byte == b'/' => {
                self.enter(JsonPlace::Outside, JsonStep::Layout)
            }
            JsonPlace::BlockComment { .. }
                if byte < b' ' && !self.tolerance.accepts(Departure::ControlCharacters) =>
            {
                JsonStep::Invalid("control character in a comment")
            }
            JsonPlace::BlockComment { .. } => {
                self.enter(JsonPlace::BlockComment { star: byte == b'*' }, JsonStep::Layout)
            }
        }
    }

    fn enter(&mut self, place: JsonPlace, step: JsonStep) -> JsonStep {
        self.place = place;
        step
    }

    fn outside_step(&mut self, byte: u8) -> JsonStep {
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
            b'"' => self.enter(
                JsonPlace::String { quote: byte, escaped: false, is_defective: false },
                JsonStep::StringStart,
            ),
            b'\'' if self.tolerance.accepts(Departure::InvalidJson) => self.enter(
                JsonPlace::String { quote: byte, escaped: false, is_defective: true },
                JsonStep::StringStart,
            ),
            b'/' if self.tolerance.accepts(Departure::InvalidJson) => {
                self.enter(JsonPlace::Slash, JsonStep::Layout)
            }
            b':' => JsonStep::Colon,
            b',' => JsonStep::Comma,
            b'+' | b'-' | b'.' => JsonStep::Inside,
            byte if byte.is_ascii_alphanumeric() => JsonStep::Inside,
            _ => INVALID,
        }
    }

    fn string_step(&mut self, byte: u8, quote: u8, escaped: bool, is_defective: bool) -> JsonStep {
        if byte == quote && !escaped {
            return self.enter(JsonPlace::Outside, JsonStep::StringEnd);
        }
        let is_control = byte < b' ';
        if is_control && !escaped && !self.tolerance.accepts(Departure::ControlCharacters) {
            return JsonStep::Invalid("control character in a string");
        }
        let is_defective = is_defective || is_control;
        let escaped = byte == b'\\' && !escaped;
        self.enter(JsonPlace::String { quote, escaped, is_defective }, JsonStep::Inside)
    }
}
