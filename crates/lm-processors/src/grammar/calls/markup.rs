//! Parameters in markup and the markers around them.

use super::super::lark::{Lark, sequence};
use super::space;
use crate::dialect::{CallSyntax, ParameterCall, ValueText};
use crate::layout::Layout;

/// Syntax of the parameters, and of the calls around them.
#[derive(Clone, Copy)]
pub(super) struct Markup<'a> {
    pub(super) call: &'a ParameterCall,
    pub(super) around: &'a CallSyntax,
}

impl Markup<'_> {
    /// Returns true if a text may contain the marker that closes it, where no marker of the syntax follows.
    pub(super) fn holds_markers(self, lark: &Lark) -> bool {
        let ParameterCall { key, value, written, .. } = *self.call;
        let close = value.close.trim();
        written != ValueText::Elements && !key.open.is_empty() && !close.is_empty() && !lark.protects(close)
    }

    /// Markers that may follow a value; some are empty.
    pub(super) fn after_value(self) -> [&'static str; 6] {
        let (CallSyntax { section, call, .. }, ParameterCall { key, value, end, .. }) =
            (self.around, self.call);
        [key.open, value.close.trim(), end, call.open, call.close, section.close]
    }

    /// Layout before a parameter and before the end.
    pub(super) fn lead(self) -> &'static str {
        if self.call.value.close == self.call.between { "" } else { self.call.between }
    }

    /// Builds `marker` after a value: with the layout before it in one lexeme, since a text that holds its
    /// closing marker may begin like both.
    pub(super) fn next(self, lark: &mut Lark, layout: Layout, before: &str, marker: &str) -> String {
        if !self.holds_markers(lark) {
            return sequence([&*space(lark, before, layout), &lark.marker(marker)]);
        }
        // After a closing marker, other blanks would begin a further part of a text. A bare name ends at
        // them.
        let layout = if self.call.name.close.is_empty() { layout } else { Layout::Any };
        let space = space(lark, before, layout);
        lark.spaced(&space, marker)
    }
}
