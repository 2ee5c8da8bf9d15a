//! Replies of a given format: calls or the answer, decided by their prefix.

use super::markers::is_bare;
use super::{ReplyParser, State, Step};
use crate::call_prefixes::call_prefixes;
use crate::dialect::Trim;
use crate::event::ProcessorEvent;
use crate::reply_form::{FormattedAnswer, ReplyForm};

/// Alternatives to the answer at the start of a reply of a given format.
#[derive(Debug, Clone, Copy)]
enum Alternative {
    Channel(usize),
    Calls,
}

impl ReplyParser {
    /// State at the start of a reply or after a channel; `layout` is the whitespace that may precede it.
    pub(super) fn start_state(&self, layout: Trim, layout_is_text: bool) -> State {
        match self.formatted_answer() {
            Some(answer) => {
                let layout = if answer.may_start_with_whitespace { Trim::Nothing } else { layout };
                State::ReplyStart { layout, layout_is_text }
            }
            None => State::Answer,
        }
    }

    fn formatted_answer(&self) -> Option<&FormattedAnswer> {
        self.options.form.as_ref().and_then(|form| form.formatted.as_ref())
    }

    pub(super) fn advance_reply_start(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::ReplyStart { layout, layout_is_text } = self.state else { return Step::Continue };
        let rest = self.buffer.rest();
        let text = layout.start(rest);
        let before = rest.len() - text.len();
        let texts = self.alternatives();
        let found = texts.iter().filter(|(begins, _)| text.starts_with(begins));
        let found = found.max_by_key(|(begins, _)| begins.len());
        let len = found.map_or(0, |(begins, _)| begins.len());
        let longer = |begins: &String| begins.len() > text.len() && begins.starts_with(text);
        if !self.ended && (text.is_empty() || texts.iter().any(|(begins, _)| longer(begins))) {
            return Step::NeedText;
        }
        let found = found.map(|(_, alternative)| *alternative);
        let layout = self.buffer.take(before);
        if layout_is_text {
            self.answer.push(layout, events);
        }
        match found {
            Some(Alternative::Channel(number)) => {
                self.buffer.take(len);
                self.answer.keep_held(events);
                self.enter_channel(number, None);
            }
            Some(Alternative::Calls) => {
                let marker = if is_bare(&self.syntaxes[0]) { 0 } else { len };
                self.enter_calls(0, marker);
            }
            None => {
                self.answer.keep_held(events);
                self.state = State::Formatted;
            }
        }
        Step::Continue
    }

    /// Prefixes that a reply may start with other than the answer.
    fn alternatives(&self) -> Vec<(String, Alternative)> {
        let tokens = &self.options.tokens;
        let answers = |start: &str| {
            self.formatted_answer().and_then(|answer| answer.choice_starting_with(start, tokens))
        };
        let channels = self.channels.iter().enumerate();
        let channels = channels.filter(|(_, channel)| answers(&channel.channel.start).is_none());
        let channels = channels
            .map(|(number, channel)| (channel.channel.start.to_string(), Alternative::Channel(number)));
        let tools: &[String] = self.options.form.as_ref().map_or(&[], |form: &ReplyForm| &form.tools);
        let calls =
            self.syntaxes.iter().flat_map(|syntax| call_prefixes(syntax, tools.iter().map(String::as_str)));
        let calls = calls.map(|text| (text, Alternative::Calls));
        channels.chain(calls).filter(|(text, _)| !text.is_empty()).collect()
    }

    /// Reads the answer, in which markers have no meaning.
    pub(super) fn advance_formatted(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let len = self.buffer.rest().len();
        if len > 0 {
            events.push(ProcessorEvent::Text(self.buffer.take(len).to_owned()));
        }
        Step::NeedText
    }
}
