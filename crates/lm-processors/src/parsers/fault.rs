//! Reason for which a text is not a call.

use crate::event::CallFault;

/// Reason for which a text is not a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: CallFault,
    pub(crate) reason: String,
    /// True if the text is valid but not a call. It is text of the answer if it has no call marker.
    pub(crate) is_text: bool,
}

impl Fault {
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self { kind: CallFault::Malformed, reason: reason.into(), is_text: false }
    }

    pub(crate) fn not_a_call(reason: impl Into<String>) -> Self {
        Self { is_text: true, ..Self::malformed(reason) }
    }

    pub(crate) fn unfinished() -> Self {
        Self { kind: CallFault::Unfinished, reason: "it is unfinished".to_owned(), is_text: false }
    }

    pub(crate) fn undeclared(name: &str) -> Self {
        Self { kind: CallFault::Undeclared, reason: format!("there is no tool `{name}`"), is_text: false }
    }

    /// A call of an undeclared tool that is text.
    pub(crate) fn text_of_undeclared(name: &str) -> Self {
        Self { is_text: true, ..Self::undeclared(name) }
    }
}
