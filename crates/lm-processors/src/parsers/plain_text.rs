//! The parser of a family without a dialect.

use crate::event::ProcessorEvent;
use crate::parser::OutputParser;

/// Everything is text.
pub(crate) struct PlainText;

impl OutputParser for PlainText {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        if delta.is_empty() { Vec::new() } else { vec![ProcessorEvent::Text(delta.to_owned())] }
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        Vec::new()
    }
}
