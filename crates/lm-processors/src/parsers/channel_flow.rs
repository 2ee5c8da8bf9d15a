//! The text of a channel, without the layout that sets it apart from its markers.

use std::borrow::Cow;

use crate::dialect::{ChannelSyntax, Trim};
use crate::event::ProcessorEvent;

/// Passes the text of one span of a channel on.
#[derive(Debug)]
pub(crate) struct ChannelFlow {
    name: Cow<'static, str>,
    label: &'static str,
    trim: Trim,
    held: String,
    begun: bool,
}

impl ChannelFlow {
    pub(crate) fn new(syntax: &ChannelSyntax) -> Self {
        let ChannelSyntax { channel, label, trim, .. } = syntax;
        Self { name: channel.name.clone(), label, trim: *trim, held: String::new(), begun: false }
    }

    pub(crate) fn push(&mut self, text: &str, events: &mut Vec<ProcessorEvent>) {
        self.held.push_str(text);
        if !self.begun {
            if self.label.len() > self.held.len() && self.label.starts_with(&self.held) {
                return;
            }
            if let Some(rest) = self.held.strip_prefix(self.label) {
                self.held = rest.to_owned();
                self.label = "";
            }
            self.held = self.trim.start(&self.held).to_owned();
            self.begun = !self.held.is_empty();
        }
        self.pass_on(self.trim.end_of(&self.held), events);
    }

    /// The channel ends without its marker: nothing but layout is lost.
    pub(crate) fn end(&mut self, events: &mut Vec<ProcessorEvent>) {
        if !self.begun && self.label.starts_with(&self.held) {
            self.pass_on(self.held.len(), events);
        }
    }

    fn pass_on(&mut self, to: usize, events: &mut Vec<ProcessorEvent>) {
        let kept = self.held.split_off(to);
        let text = std::mem::replace(&mut self.held, kept);
        if !text.is_empty() {
            events.push(ProcessorEvent::Channel { name: self.name.clone().into_owned(), text });
        }
    }
}
