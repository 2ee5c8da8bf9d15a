//! Whitespace of an answer: text, or layout next to markers.

use crate::dialect::{AnswerSyntax, BeforeCalls, Trim};
use crate::event::ProcessorEvent;

impl Trim {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Nothing => false,
            Self::LineBreaks => c == '\n' || c == '\r',
            Self::Whitespace => c.is_whitespace(),
        }
    }

    pub(crate) fn start(self, text: &str) -> &str {
        text.trim_start_matches(|c| self.takes(c))
    }

    /// End of the text after trimming.
    pub(crate) fn end_of(self, text: &str) -> usize {
        text.trim_end_matches(|c| self.takes(c)).len()
    }
}

/// Emits text, and holds back whitespace until its meaning is known.
///
/// Whitespace-only text between two markers, or between a marker and either end, is layout.
#[derive(Debug)]
pub(crate) struct TextFlow {
    syntax: &'static AnswerSyntax,
    /// Undecided whitespace.
    held: String,
    at_boundary: bool,
    /// Trimming of the start of the next text.
    trim: Trim,
    after_call: bool,
}

impl TextFlow {
    pub(crate) fn new(syntax: &'static AnswerSyntax) -> Self {
        Self { syntax, held: String::new(), at_boundary: true, trim: syntax.trim, after_call: false }
    }

    /// Adds text of the answer.
    pub(crate) fn push(&mut self, text: &str, events: &mut Vec<ProcessorEvent>) {
        if (self.at_boundary || self.holds_all_whitespace()) && text.trim_start().is_empty() {
            self.held.push_str(text);
            return;
        }
        self.held.push_str(text);
        if std::mem::take(&mut self.at_boundary) {
            self.held = self.trim.start(&self.held).to_owned();
        }
        self.emit(self.certain(), events);
    }

    fn emit(&mut self, to: usize, events: &mut Vec<ProcessorEvent>) {
        let kept = self.held.split_off(to);
        let text = std::mem::replace(&mut self.held, kept);
        if !text.is_empty() {
            events.push(ProcessorEvent::Text(text));
        }
    }

    fn holds_all_whitespace(&self) -> bool {
        self.syntax.before_calls == BeforeCalls::Dropped || self.syntax.trim == Trim::Whitespace
    }

    /// Length of the held text that is text with any continuation.
    fn certain(&self) -> usize {
        let layout = match self.syntax.before_calls {
            _ if self.holds_all_whitespace() => return self.held.trim_end().len(),
            BeforeCalls::Layout(layout) => layout,
            BeforeCalls::OwnLine => "\n",
            BeforeCalls::Text | BeforeCalls::Dropped => "",
        };
        let end = self.held.char_indices().rev().take(layout.len()).take_while(|(_, c)| layout.contains(*c));
        end.last().map_or(self.held.len(), |(start, _)| start)
    }

    /// Returns true if only layout was read since the start of the reply or the last marker.
    pub(crate) fn at_boundary(&self) -> bool {
        self.at_boundary
    }

    /// Returns true if only layout was read since a call.
    pub(crate) fn is_right_after_call(&self) -> bool {
        self.after_call && self.at_boundary
    }

    /// Handles the marker of a call; `following` is the text after it.
    pub(crate) fn begin_call(&mut self, following: &str, events: &mut Vec<ProcessorEvent>) {
        let own_line = following.starts_with(['\n', '\r']);
        if self.syntax.before_calls == BeforeCalls::OwnLine && !own_line && !self.at_boundary {
            self.emit(self.held.len(), events);
        }
    }

    /// Handles the end of a call: held text is layout.
    pub(crate) fn end_call(&mut self) {
        self.boundary(self.syntax.trim_after_calls);
        self.after_call = true;
    }

    /// Handles a boundary of the text: held text is layout.
    pub(crate) fn boundary(&mut self, trim: Trim) {
        self.held.clear();
        (self.at_boundary, self.trim) = (true, trim);
    }

    /// Handles the start of something else: held text is text.
    pub(crate) fn keep_held(&mut self, events: &mut Vec<ProcessorEvent>) {
        if !self.at_boundary {
            self.emit(self.held.len(), events);
        }
        self.boundary(Trim::Nothing);
    }

    /// Starts another answer after the end of one.
    pub(crate) fn restart(&mut self) {
        self.boundary(self.syntax.trim);
    }

    /// Ends the reply.
    pub(crate) fn end(&mut self, events: &mut Vec<ProcessorEvent>) {
        if self.syntax.trim == Trim::Whitespace {
            self.held.clear();
        }
        self.keep_held(events);
    }
}
