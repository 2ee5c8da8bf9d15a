//! Calls without the family's markers.

/// Reading of a reply that is nothing but one call, without the family's markers: a JSON object
/// `{"name": …, "arguments": {…}}`, alone, in a code block, or in other tags.
///
/// Models that were trained on several syntaxes write such calls where their template asks for markers. A
/// question that no tool fits may be answered so as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmarkedCalls {
    /// It is a call if it has these two keys only, names a declared tool, and its arguments fit.
    Read,
    /// It is text.
    Text,
}
