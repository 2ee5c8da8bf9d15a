//! Text of a channel, without the layout next to its markers.

use std::borrow::Cow;

use super::text_flow::TextFlow;
use crate::channel::ReplyChannel;
use crate::dialect::{ChannelSyntax, Trim};
use crate::event::ProcessorEvent;

/// Emits the text of one span of a channel.
#[derive(Debug)]
pub(crate) enum ChannelFlow {
    /// As text of its channel.
    Split(Split),
    /// As text of the answer, markers included; `opening` is the start marker until text follows it.
    Inline { opening: String },
}

#[derive(Debug)]
pub(crate) struct Split {
    name: Cow<'static, str>,
    label: &'static str,
    trim_start: Trim,
    trim_end: Trim,
    held: String,
    started: bool,
}

impl ChannelFlow {
    pub(crate) fn new(ReplyChannel { channel, syntax }: &ReplyChannel) -> Self {
        let ChannelSyntax { label, trim_start, trim_end, start_is_text, .. } = *syntax;
        Self::Split(Split {
            name: channel.name.clone(),
            label,
            trim_start,
            trim_end,
            held: if start_is_text { channel.start.clone().into_owned() } else { String::new() },
            started: false,
        })
    }

    pub(crate) fn inline(opening: &str) -> Self {
        Self::Inline { opening: opening.to_owned() }
    }

    pub(crate) fn push(&mut self, text: &str, answer: &mut TextFlow, events: &mut Vec<ProcessorEvent>) {
        match self {
            _ if text.is_empty() => {}
            Self::Split(split) => split.push(text, events),
            Self::Inline { opening } => {
                answer.push(&std::mem::take(opening), events);
                answer.push(text, events);
            }
        }
    }

    /// Ends the channel with its end marker, or with an empty one if something else ends it.
    pub(crate) fn end(&mut self, marker: &str, answer: &mut TextFlow, events: &mut Vec<ProcessorEvent>) {
        match self {
            Self::Split(split) => split.end(events),
            Self::Inline { .. } => self.push(marker, answer, events),
        }
    }

    /// Ends the channel by something other than its end marker. Only the `layout` before that is dropped.
    pub(crate) fn interrupt(&mut self, layout: &str, events: &mut Vec<ProcessorEvent>) {
        if let Self::Split(split) = self {
            split.interrupt(layout, events);
        }
    }

    /// Ends the channel at the end of the reply.
    pub(crate) fn finish(&mut self, answer: &mut TextFlow, events: &mut Vec<ProcessorEvent>) {
        match self {
            Self::Split(split) => split.end(events),
            Self::Inline { opening } => answer.push(&std::mem::take(opening), events),
        }
    }
}

impl Split {
    fn push(&mut self, text: &str, events: &mut Vec<ProcessorEvent>) {
        let only_layout = self.started && self.trim_end.end_of(text) == 0;
        self.held.push_str(text);
        if only_layout {
            return;
        }
        if !self.started {
            if self.label.len() > self.held.len() && self.label.starts_with(&self.held) {
                return;
            }
            self.held = self.held.strip_prefix(self.label).unwrap_or(&self.held).to_owned();
            self.label = "";
            self.held = self.trim_start.start(&self.held).to_owned();
            self.started = !self.held.is_empty();
        }
        self.emit(self.trim_end.end_of(&self.held), events);
    }

    /// A partial label at the end of the channel is text.
    fn end(&mut self, events: &mut Vec<ProcessorEvent>) {
        if !self.started
            && !self.held.is_empty()
            && self.trim_start.start(&self.held).len() == self.held.len()
        {
            self.emit(self.trim_end.end_of(&self.held), events);
        }
    }

    fn interrupt(&mut self, layout: &str, events: &mut Vec<ProcessorEvent>) {
        if !self.started {
            self.end(events);
        } else if self.held != layout {
            self.emit(self.held.len(), events);
        }
    }

    fn emit(&mut self, to: usize, events: &mut Vec<ProcessorEvent>) {
        let kept = self.held.split_off(to);
        let text = std::mem::replace(&mut self.held, kept);
        if !text.is_empty() {
            events.push(ProcessorEvent::Channel { name: self.name.clone().into_owned(), text });
        }
    }
}
