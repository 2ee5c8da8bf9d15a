//! State of the parser of arguments in braces.

/// An open object or list.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) object: bool,
    /// True if it has an item.
    pub(super) filled: bool,
}

/// Place of the parser in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Before the outer brace.
    Start,
    /// Before a key, or the end of an object.
    Key,
    /// Between a key and its value.
    Colon,
    /// Before a value, or the end of a list.
    Value,
    /// Inside a string between marks, started at this byte.
    Marked { start: usize },
    /// Inside a marked value, started at this byte, that is not a string by the schema.
    MarkedOther { start: usize },
    /// Inside a JSON string, started at this byte.
    Quoted { start: usize, escaped: bool },
    /// Inside a string in single quotes, started at this byte.
    SingleQuoted { start: usize },
    /// Inside a value without marks, started at this byte.
    Bare { start: usize },
    /// After a value.
    After,
}

/// Next step of the parser.
pub(super) enum Need {
    MoreText,
    AnotherLook,
}
