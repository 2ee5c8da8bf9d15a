//! Departures from a family's syntax that the parser accepts.

use crate::parser::Recovery;

/// Departure of a reply from its family's syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// JSON that [`JsonMend`](super::json_mend::JsonMend) repairs.
    InvalidJson,
    /// Control characters in strings and comments of JSON.
    ControlCharacters,
    /// A Python literal in place of JSON.
    PythonLiteral,
    /// An object with its tool's name under the key `name`, where that should be the key itself.
    NamedObject,
    /// Brackets, ends of strings, or all arguments that are missing before the call's closing marker.
    Unclosed,
    /// Brackets after a call that close nothing, and commas between calls.
    StrayBrackets,
    /// An id whose separators were lost or replaced.
    AffixedName,
    /// Arguments in braces that [`BraceArguments`](crate::values::BraceArguments) repairs.
    InvalidBraces,
    /// Markers of a parameter that are missing or repeated.
    ParameterMarkers,
    /// Quotes around names and keys, and the slash of an empty element after them.
    QuotedName,
    /// All arguments as the value of one parameter.
    WrappedArguments,
    /// All arguments as a JSON object, in place of the parameters.
    JsonArguments,
    /// Carriage returns before line feeds.
    CarriageReturns,
    /// Text in place of a call without markers.
    TextForCall,
    /// Markers in the answer that open or close nothing there.
    StrayMarker,
    /// A call in a channel without an end marker.
    CallInChannel,
}

/// Departures that a parser accepts: a set of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tolerance(u32);

impl Tolerance {
    /// No departures.
    pub(crate) const NONE: Self = Self(0);
    /// All departures.
    pub(crate) const ALL: Self = Self(u32::MAX);

    /// All departures but control characters: the line's end ends a string that lacks its quote. All text may
    /// resemble a call without a marker.
    pub(crate) const ON_ONE_LINE: Self = Self(!Self::bit(Departure::ControlCharacters));

    /// Departures that replies with this setting may have.
    pub(crate) fn of(recovery: Recovery) -> Self {
        match recovery {
            Recovery::On => Self::ALL,
            Recovery::Off => Self::NONE,
        }
    }

    /// Departures in both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn accepts(self, departure: Departure) -> bool {
        self.0 & Self::bit(departure) != 0
    }

    const fn bit(departure: Departure) -> u32 {
        1 << departure as u32
    }
}
