//! Calls that are JSON.

/// A call as a JSON value.
#[derive(Debug, Clone, Copy)]
pub struct JsonCall {
    /// One object per block, or a list.
    pub count: Count,
    /// How an object says what it says.
    pub object: JsonObject,
    /// Between a key and its value, as the family writes it: `: ` or `:`.
    pub colon: &'static str,
    /// Between two members, as the family writes it: `, ` or `,`.
    pub comma: &'static str,
}

impl JsonCall {
    /// `{"name": …, "arguments": {…}}`, with blanks as Python writes them.
    pub const ONE: Self = Self { count: Count::One, object: JsonObject::NAMED, colon: ": ", comma: ", " };
    /// The same with `parameters` in place of `arguments`.
    pub const ONE_WITH_PARAMETERS: Self = Self { object: JsonObject::NAMED_WITH_PARAMETERS, ..Self::ONE };
    /// A list in one line.
    pub const LIST: Self =
        Self { count: Count::List { after_open: "", comma: ", ", before_close: "" }, ..Self::ONE };
    /// A list with a line for each call.
    pub const LINES: Self = Self {
        count: Count::List { after_open: "\n    ", comma: ",\n    ", before_close: "\n" },
        ..Self::ONE
    };
}

/// How many calls stand in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// A list. A parser takes a single call in its place.
    List {
        /// The layout after `[`.
        after_open: &'static str,
        /// Between two calls.
        comma: &'static str,
        /// The layout before `]`.
        before_close: &'static str,
    },
}

/// The keys of a call's JSON object.
#[derive(Debug, Clone, Copy)]
pub enum JsonObject {
    /// A key for each part. The parser takes them in any order and ignores other keys.
    Keys {
        /// The parts in the order the family writes them.
        written: &'static [(JsonKey, &'static str)],
        /// Further names under which a part is understood.
        understood: &'static [(JsonKey, &'static str)],
    },
    /// The tool's name is the only key, the arguments are its value.
    NameIsKey,
}

impl JsonObject {
    /// `name`, then `arguments`; also understood: `parameters` and `args`.
    pub const NAMED: Self = Self::Keys {
        written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "arguments")],
        understood: &[(JsonKey::Arguments, "parameters"), (JsonKey::Arguments, "args"), (JsonKey::Id, "id")],
    };

    /// `name`, then `parameters`; also understood: `arguments` and `args`.
    pub const NAMED_WITH_PARAMETERS: Self = Self::Keys {
        written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "parameters")],
        understood: &[(JsonKey::Arguments, "arguments"), (JsonKey::Arguments, "args"), (JsonKey::Id, "id")],
    };
}

/// A part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKey {
    /// The tool's name.
    Name,
    /// The arguments: an object.
    Arguments,
    /// The call's id.
    Id,
}
