//! Replies of a given form: calls or the answer, decided by their prefix.

use super::markers::is_bare;
use super::{Need, ReplyParser, State};
use crate::beginnings::call_beginnings;
use crate::dialect::Trim;
use crate::event::ProcessorEvent;
use crate::reply_form::{Given, ReplyForm};

/// Alternatives to the answer at the start of a reply of a given form.
#[derive(Debug, Clone, Copy)]
enum Beginning {
    Channel(usize),
    Calls,
}

impl ReplyParser {
    /// State at the start of a reply or after a channel; `layout` is the whitespace that may precede it.
    pub(super) fn beginning(&self, layout: Trim, layout_is_text: bool) -> State {
        match self.given() {
            Some(given) => {
                let layout = if given.begins_blank { Trim::Nothing } else { layout };
                State::Beginning { layout, layout_is_text }
            }
            None => State::Answer,
        }
    }

    fn given(&self) -> Option<&Given> {
        self.options.form.as_ref().and_then(|form| form.given.as_ref())
    }

    pub(super) fn advance_beginning(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Beginning { layout, layout_is_text } = self.state else { return Need::AnotherLook };
        let rest = self.buffer.rest();
        let text = layout.start(rest);
        let before = rest.len() - text.len();
        let texts = self.beginnings();
        let found = texts.iter().filter(|(begins, _)| text.starts_with(begins));
        let found = found.max_by_key(|(begins, _)| begins.len());
        let len = found.map_or(0, |(begins, _)| begins.len());
        let longer = |begins: &String| begins.len() > text.len() && begins.starts_with(text);
        if !self.ended && (text.is_empty() || texts.iter().any(|(begins, _)| longer(begins))) {
            return Need::MoreText;
        }
        let found = found.map(|(_, beginning)| *beginning);
        let layout = self.buffer.take(before);
        if layout_is_text {
            self.answer.push(layout, events);
        }
        match found {
            Some(Beginning::Channel(number)) => {
                self.buffer.take(len);
                self.answer.stays(events);
                self.enter_channel(number, None);
            }
            Some(Beginning::Calls) => {
                let marker = if is_bare(&self.syntaxes[0]) { 0 } else { len };
                self.enter_calls(0, marker);
            }
            None => {
                self.answer.stays(events);
                self.state = State::Given;
            }
        }
        Need::AnotherLook
    }

    /// Prefixes that a reply may start with other than the answer.
    fn beginnings(&self) -> Vec<(String, Beginning)> {
        let tokens = &self.options.tokens;
        let answers = |start: &str| self.given().and_then(|given| given.choice_that_spells(start, tokens));
        let channels = self.channels.iter().enumerate();
        let channels = channels.filter(|(_, channel)| answers(&channel.channel.start).is_none());
        let channels =
            channels.map(|(number, channel)| (channel.channel.start.to_string(), Beginning::Channel(number)));
        let tools: &[String] = self.options.form.as_ref().map_or(&[], |form: &ReplyForm| &form.tools);
        let calls =
            self.syntaxes.iter().flat_map(|syntax| call_beginnings(syntax, tools.iter().map(String::as_str)));
        let calls = calls.map(|text| (text, Beginning::Calls));
        channels.chain(calls).filter(|(text, _)| !text.is_empty()).collect()
    }

    /// Reads the answer, in which markers have no meaning.
    pub(super) fn advance_given(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let len = self.buffer.rest().len();
        if len > 0 {
            events.push(ProcessorEvent::Text(self.buffer.take(len).to_owned()));
        }
        Need::MoreText
    }
}
