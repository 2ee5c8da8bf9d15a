//! The whitespace of an answer: what belongs to the text, and what only sets the markers apart.

use crate::event::ProcessorEvent;

/// Whether a line break right before a call marker belongs to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreakBeforeCall {
    /// It is text.
    Keep,
    /// The template puts it there itself, so one is taken off.
    Drop,
}

/// Passes text on and holds back the whitespace whose meaning shows only later.
///
/// Text between two markers, or between a marker and either end, that is whitespace only is layout; so are the line
/// breaks right after the reasoning.
#[derive(Debug)]
pub(crate) struct TextFlow {
    line_break: LineBreakBeforeCall,
    held: String,
    at_border: bool,
    after_reasoning: bool,
}

impl TextFlow {
    pub(crate) fn new(line_break: LineBreakBeforeCall) -> Self {
        Self { line_break, held: String::new(), at_border: true, after_reasoning: false }
    }

    /// Takes text of the answer.
    pub(crate) fn push(&mut self, text: &str, events: &mut Vec<ProcessorEvent>) {
        self.held.push_str(text);
        if self.at_border {
            if self.held.trim_start().is_empty() {
                return;
            }
            self.at_border = false;
            if std::mem::take(&mut self.after_reasoning) {
                self.held = self.held.trim_start_matches('\n').to_owned();
            }
        }
        let ends_in_break = self.line_break == LineBreakBeforeCall::Drop && self.held.ends_with('\n');
        let kept = self.held.split_off(self.held.len() - usize::from(ends_in_break));
        let text = std::mem::replace(&mut self.held, kept);
        if !text.is_empty() {
            events.push(ProcessorEvent::Text(text));
        }
    }

    /// A marker begins: what is held back is layout.
    pub(crate) fn border(&mut self) {
        self.held.clear();
        self.at_border = true;
    }

    /// The reasoning begins: what was text until now stays text.
    pub(crate) fn reasoning_begins(&mut self, events: &mut Vec<ProcessorEvent>) {
        self.end(events);
        self.border();
    }

    /// The reasoning has ended.
    pub(crate) fn reasoning_ended(&mut self) {
        self.border();
        self.after_reasoning = true;
    }

    /// The reply has ended.
    pub(crate) fn end(&mut self, events: &mut Vec<ProcessorEvent>) {
        if !self.at_border && !self.held.is_empty() {
            events.push(ProcessorEvent::Text(std::mem::take(&mut self.held)));
        }
    }
}
