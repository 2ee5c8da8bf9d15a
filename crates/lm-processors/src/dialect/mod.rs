//! Dialects: the text syntax of model families, as data. Parser and grammar share this data, so that they
//! cannot disagree.
//!
//! A dialect holds two kinds of text. *Markers* (`open`, `close`, …) delimit parts for the parser and must
//! match exactly. *Layout* (`after_open`, `before_close`, `separator`, …) is the whitespace that the family
//! writes between them: a grammar writes it, and the parser accepts any whitespace instead.

mod answer;
mod call;
mod channel;
mod json;
mod markers;
mod parameters;
mod unmarked;

pub use answer::AnswerSyntax;
pub(crate) use answer::{BeforeCalls, MessageKind, MessageSyntax};
pub use call::{BraceCall, CallBody, CallSyntax, NamedCall, NamedId, PythonCall, PythonList, Undeclared};
pub(crate) use call::{Nameless, Reported};
pub(crate) use channel::{CallsInside, Unmarked, UnmatchedEnd};
pub use channel::{ChannelSyntax, Place};
pub use json::{Count, JsonCall, JsonKey, JsonObject};
pub(crate) use parameters::{Accepted, Untyped};
pub use parameters::{ParameterCall, TypeAttribute, ValueText};
pub use unmarked::UnmarkedCalls;

/// Text syntax of one family.
#[derive(Debug)]
pub struct Dialect {
    /// Name of the family.
    pub name: &'static str,
    /// Parts stripped from the text of the answer and the channels, such as citation markers: each from its
    /// `open` to its `close`, or only the `open` if `close` is empty. Calls keep them.
    pub stripped: &'static [Tags],
    /// Channels besides the answer; thinking switches and budgets apply to the first.
    pub channels: &'static [ChannelSyntax],
    /// Syntax of the answer.
    pub answer: AnswerSyntax,
    /// Reading of replies that are nothing but a call without markers.
    pub unmarked: UnmarkedCalls,
    /// Instruction that repeats the call syntax, for models that do not write it in spite of their template;
    /// empty if there is none.
    pub calls_note: &'static str,
    /// Call syntaxes: the family writes the first, and the parser accepts all.
    pub calls: &'static [CallSyntax],
}

impl Dialect {
    /// Plain text; the base for other dialects.
    pub const PLAIN: Self = Self {
        name: "plain",
        stripped: &[],
        channels: &[],
        answer: AnswerSyntax::PLAIN,
        unmarked: UnmarkedCalls::Text,
        calls_note: "",
        calls: &[],
    };
}

/// A pair of markers, and the layout inside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags {
    /// Opening marker; may be empty.
    pub open: &'static str,
    /// Closing marker; may be empty.
    pub close: &'static str,
    /// Layout after `open`.
    pub after_open: &'static str,
    /// Layout before `close`.
    pub before_close: &'static str,
}

impl Tags {
    /// No markers.
    pub const NONE: Self = Self::new("", "");

    /// Markers directly around their content.
    pub const fn new(open: &'static str, close: &'static str) -> Self {
        Self { open, close, after_open: "", before_close: "" }
    }

    /// Markers on separate lines.
    pub const fn lines(open: &'static str, close: &'static str) -> Self {
        Self { open, close, after_open: "\n", before_close: "\n" }
    }
}

/// Trimming of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trim {
    /// Nothing.
    Nothing,
    /// Line breaks.
    LineBreaks,
    /// All whitespace.
    Whitespace,
}
