//! The text of the reasoning channel, without the line breaks that set it apart from its tags.

use crate::event::{ProcessorEvent, REASONING};

/// Passes reasoning on; line breaks at its start and at its end are layout.
#[derive(Debug, Default)]
pub(crate) struct ReasoningFlow {
    held: String,
    begun: bool,
}

impl ReasoningFlow {
    pub(crate) fn push(&mut self, text: &str, events: &mut Vec<ProcessorEvent>) {
        let text = if self.begun { text } else { text.trim_start_matches('\n') };
        self.begun |= !text.is_empty();
        self.held.push_str(text);
        let kept = self.held.split_off(self.held.trim_end_matches('\n').len());
        let text = std::mem::replace(&mut self.held, kept);
        if !text.is_empty() {
            events.push(ProcessorEvent::Channel { name: REASONING.to_owned(), text });
        }
    }
}
