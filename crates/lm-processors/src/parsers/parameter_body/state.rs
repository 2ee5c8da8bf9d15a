//! States of the reader of a call.

use super::value::ValueReader;
use crate::dialect::{CallSyntax, ParameterCall};
use crate::parsers::json_scan::JsonScan;
use crate::parsers::recovery::Tolerance;

/// Syntax of a body, and the departures from it that are accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) syntax: &'static ParameterCall,
    /// Markers around the body.
    pub(super) around: &'static CallSyntax,
    pub(super) tolerance: Tolerance,
}

#[derive(Debug)]
pub(super) enum State {
    /// Before the name's marker.
    NameOpen,
    /// In the name; its marker ended with this quote.
    Name(Option<char>),
    Number,
    /// Before a parameter or the end.
    Parameter,
    /// In a key; its marker ended with this quote.
    Key(Option<char>),
    Type(Parameter),
    /// Before the value's marker.
    ValueOpen(Parameter),
    /// Before the value's first character.
    ValueStart(Parameter),
    Value(ValueReader),
    /// After protected text (CDATA), before the value's end.
    ValueClose,
    /// In a JSON object of all arguments, which was searched up to this byte.
    Object {
        scan: JsonScan,
        searched: usize,
    },
}

/// Key of a parameter, and the interpretation of its value.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) key: String,
    pub(super) kind: ValueKind,
}

/// Interpretation of the text of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Verbatim text.
    Text,
    /// By the schema.
    BySchema,
    /// JSON.
    Json,
    /// Elements, or a value of a type other than string.
    Elements,
    /// Ignored: the parameter is dropped.
    Ignored,
    /// An object of all arguments.
    Wrapped,
}

/// Next step of the state machine.
pub(super) enum Next {
    Enter(State),
    /// More text is needed in this state.
    Wait(State),
    /// The body ended before this byte.
    End(usize),
}
