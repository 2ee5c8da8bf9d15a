//! What a family's text looks like, as data. The parser reads by it and the grammar is written from it, so that the two
//! cannot disagree.
//!
//! Two kinds of text stand in a dialect. *Markers* (`open`, `close`, …) tell the parser where something begins or ends;
//! they must come as they are. *Layout* (`after_open`, `before_close`, `separator`, …) is the whitespace the family
//! writes between them: a grammar writes it, the parser takes any whitespace in its place.

mod answer;
mod call;
mod channel;
mod json;
mod markers;
mod parameters;

pub use answer::{AfterCalls, AnswerSyntax, BeforeCalls, Meaning, MessageSyntax};
pub use call::{
    BraceCall, CallBody, CallSyntax, NamedCall, NamedId, Nameless, PythonCall, PythonList, Reported,
    Undeclared,
};
pub use channel::{CallsInside, ChannelSyntax, Place, StrayEnd, Unmarked};
pub use json::{Count, JsonCall, JsonKey, JsonObject};
pub use parameters::{Accepted, ParameterCall, TypeAttribute, Untyped, ValueText};

/// One family's text.
#[derive(Debug)]
pub struct Dialect {
    /// The family's name.
    pub name: &'static str,
    /// Texts that are erased from a reply before anything else: each from its `open` to its `close`, or just the `open`
    /// where that is empty.
    pub erased: &'static [Tags],
    /// Channels beside the answer; the first is the one that thinking switches and budgets mean.
    pub channels: &'static [ChannelSyntax],
    /// The answer itself.
    pub answer: AnswerSyntax,
    /// The syntaxes of calls: the first is the one the family writes, the others are understood too.
    pub calls: &'static [CallSyntax],
}

impl Dialect {
    /// Plain text; the base that dialects are written over.
    pub const PLAIN: Self =
        Self { name: "plain", erased: &[], channels: &[], answer: AnswerSyntax::PLAIN, calls: &[] };
}

/// Two markers around something, and the layout inside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags {
    /// The marker before; may be empty.
    pub open: &'static str,
    /// The marker after; may be empty.
    pub close: &'static str,
    /// The layout after `open`.
    pub after_open: &'static str,
    /// The layout before `close`.
    pub before_close: &'static str,
}

impl Tags {
    /// No markers.
    pub const NONE: Self = Self::new("", "");

    /// Markers that stand right beside what they enclose.
    pub const fn new(open: &'static str, close: &'static str) -> Self {
        Self { open, close, after_open: "", before_close: "" }
    }

    /// Markers on lines of their own.
    pub const fn lines(open: &'static str, close: &'static str) -> Self {
        Self { open, close, after_open: "\n", before_close: "\n" }
    }
}

/// What is taken off the ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// Nothing.
    Nothing,
    /// Line breaks.
    LineBreaks,
    /// All whitespace.
    Whitespace,
}
