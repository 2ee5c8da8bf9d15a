//! Syntax of JSON calls.

/// A call as a JSON value.
#[derive(Debug, Clone, Copy)]
pub struct JsonCall {
    /// One object per block, or a list.
    pub count: Count,
    /// Keys of an object.
    pub object: JsonObject,
    /// Separator of key and value that the family writes: `: ` or `:`.
    pub colon: &'static str,
    /// Separator of members that the family writes: `, ` or `,`.
    pub comma: &'static str,
}

impl JsonCall {
    /// `{"name": …, "arguments": {…}}`, with blanks as in Python.
    pub const ONE: Self = Self { count: Count::One, object: JsonObject::NAMED, colon: ": ", comma: ", " };
    /// The same with `parameters` instead of `arguments`.
    pub const ONE_WITH_PARAMETERS: Self = Self { object: JsonObject::NAMED_WITH_PARAMETERS, ..Self::ONE };
    /// A list on one line.
    pub const LIST: Self =
        Self { count: Count::List { after_open: "", comma: ", ", before_close: "" }, ..Self::ONE };
    /// A list with one line per call.
    pub const LINES: Self = Self {
        count: Count::List { after_open: "\n    ", comma: ",\n    ", before_close: "\n" },
        ..Self::ONE
    };
}

/// Number of calls in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// A list. A parser accepts a single call instead.
    List {
        /// Layout after `[`.
        after_open: &'static str,
        /// Separator of two calls.
        comma: &'static str,
        /// Layout before `]`.
        before_close: &'static str,
    },
}

/// Keys of a call's JSON object.
#[derive(Debug, Clone, Copy)]
pub enum JsonObject {
    /// One key per part. The parser accepts them in any order and ignores other keys.
    Keys {
        /// Keys in the order the family writes them.
        written: &'static [(JsonKey, &'static str)],
        /// Aliases that the parser accepts.
        aliases: &'static [(JsonKey, &'static str)],
    },
    /// The only key is the tool's name, its value the arguments.
    NameIsKey,
}

impl JsonObject {
    /// `name`, then `arguments`; accepted aliases: `parameters` and `args`.
    pub const NAMED: Self = Self::Keys {
        written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "arguments")],
        aliases: &[(JsonKey::Arguments, "parameters"), (JsonKey::Arguments, "args"), (JsonKey::Id, "id")],
    };

    /// `name`, then `parameters`; accepted aliases: `arguments` and `args`.
    pub const NAMED_WITH_PARAMETERS: Self = Self::Keys {
        written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "parameters")],
        aliases: &[(JsonKey::Arguments, "arguments"), (JsonKey::Arguments, "args"), (JsonKey::Id, "id")],
    };
}

/// A part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKey {
    /// Name of the tool.
    Name,
    /// Arguments, an object.
    Arguments,
    /// Id of the call.
    Id,
}
