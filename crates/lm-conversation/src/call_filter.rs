//! Calls of a reply that are not the model's own: cut off by the token limit, or identical repeats.

use std::mem;

use lm_processors::ProcessorEvent;
use lm_template::ToolCall;

use crate::config::CutCalls;

/// A tool call that the token limit cut off: the part that the model wrote. It is not valid, and must not
/// run.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct CutCall {
    /// The tool, if the model has named it.
    pub name: Option<String>,
    /// Beginning of the arguments' JSON text.
    pub arguments: String,
}

/// Filter of a reply's calls: passes those that the model wrote to their end, without identical repeats.
#[derive(Debug, Default)]
pub(crate) struct CallFilter {
    cut_calls: CutCalls,
    /// Complete calls, with the texts of their arguments.
    complete: Vec<(ToolCall, String)>,
    /// The call being written, as far as it was read.
    open: Option<CutCall>,
    /// Events of the open call, which so far equals the beginning of a complete one.
    held: Vec<ProcessorEvent>,
    /// The call that was being written when steering replaced the model's tokens.
    cut: Option<CutCall>,
    repeated: bool,
}

impl CallFilter {
    pub(crate) fn new(cut_calls: CutCalls) -> Self {
        Self { cut_calls, ..Self::default() }
    }

    /// The call that was cut off.
    pub(crate) fn cut(&self) -> Option<&CutCall> {
        self.cut.as_ref()
    }

    /// Returns true if the model repeats a call, so that the reply ends before it.
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated
    }

    /// Reads the next event, and returns those to pass on. `steered` is true if the text is no longer the
    /// model's.
    pub(crate) fn push(&mut self, event: ProcessorEvent, steered: bool) -> Vec<ProcessorEvent> {
        if self.repeated {
            return Vec::new();
        }
        match &event {
            ProcessorEvent::Text(_) | ProcessorEvent::Channel { .. } => return vec![event],
            _ if self.cut_calls == CutCalls::Omit && (steered || self.cut.is_some()) => {
                let open = self.open.take();
                self.cut.get_or_insert_with(|| open.unwrap_or_default());
                return mem::take(&mut self.held);
            }
            ProcessorEvent::ToolCallStarted { name, .. } => {
                self.open = Some(CutCall { name: name.clone(), arguments: String::new() });
            }
            ProcessorEvent::ToolCallArguments { fragment, .. } => {
                self.open.get_or_insert_default().arguments += fragment;
            }
            ProcessorEvent::ToolCall { call, .. } => return self.end_call(call.clone(), event),
            _ => self.open = None,
        }
        self.held.push(event);
        if self.may_repeat() { Vec::new() } else { mem::take(&mut self.held) }
    }

    /// Takes the end of the reply. `steered` as in [`push`](Self::push).
    pub(crate) fn finish(&mut self, steered: bool) {
        if steered && self.cut_calls == CutCalls::Omit && self.cut.is_none() {
            self.cut = self.open.take();
        }
    }

    fn end_call(&mut self, call: ToolCall, event: ProcessorEvent) -> Vec<ProcessorEvent> {
        let same = |known: &ToolCall| (&known.name, &known.arguments) == (&call.name, &call.arguments);
        let arguments = self.open.take().unwrap_or_default().arguments;
        if self.complete.iter().any(|(known, _)| same(known)) {
            self.repeated = true;
            // A repeat in another spelling was passed on while it was written, and so is its end.
            let is_announced = self.held.is_empty();
            self.held.clear();
            return if is_announced { vec![event] } else { Vec::new() };
        }
        self.complete.push((call, arguments));
        let mut events = mem::take(&mut self.held);
        events.push(event);
        events
    }

    /// Returns true if the open call equals a complete one so far.
    fn may_repeat(&self) -> bool {
        let Some(CutCall { name, arguments }) = &self.open else { return false };
        self.complete.iter().any(|(call, text)| {
            name.as_ref().is_none_or(|name| *name == call.name) && text.starts_with(arguments.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events(index: usize, name: &str, city: &str) -> Vec<ProcessorEvent> {
        let call = ToolCall::new(name, json!({"city": city}).as_object().expect("an object").clone());
        vec![
            ProcessorEvent::ToolCallStarted { index, name: Some(name.to_owned()), id: None },
            ProcessorEvent::ToolCallArguments { index, fragment: r#"{"city":"#.to_owned() },
            ProcessorEvent::ToolCallArguments { index, fragment: format!("\"{city}\"}}") },
            ProcessorEvent::ToolCall { index, call },
        ]
    }

    #[test]
    fn other_calls_pass_in_order() {
        let mut filter = CallFilter::default();
        let all = [events(0, "read", "Paris"), events(1, "read", "Rome"), events(2, "list", "Rome")].concat();
        let mut passed = Vec::new();
        for event in &all {
            passed.extend(filter.push(event.clone(), false));
        }
        assert_eq!(passed, all);
        filter.finish(false);
        assert!(filter.cut().is_none() && !filter.is_repeated());
    }

    #[test]
    fn identical_repeat_is_dropped_from_its_start() {
        let mut filter = CallFilter::default();
        let first = events(0, "read", "Paris");
        first
            .iter()
            .for_each(|event| assert_eq!(filter.push(event.clone(), false), std::slice::from_ref(event)));
        for event in events(1, "read", "Paris") {
            assert!(!filter.is_repeated());
            assert_eq!(filter.push(event, false), []);
        }
        assert!(filter.is_repeated());
        assert_eq!(filter.push(events(2, "list", "Rome").remove(0), false), []);
    }

    #[test]
    fn repeat_in_another_spelling_ends_as_it_began() {
        let mut filter = CallFilter::default();
        events(0, "read", "Paris").into_iter().for_each(|event| drop(filter.push(event, false)));
        let mut again = events(1, "read", "Paris");
        again[1] = ProcessorEvent::ToolCallArguments { index: 1, fragment: r#"{ "city": "#.to_owned() };
        let passed: Vec<_> = again.iter().flat_map(|event| filter.push(event.clone(), false)).collect();
        assert_eq!(passed, again);
        assert!(filter.is_repeated());
    }

    #[test]
    fn steered_call_is_cut_where_the_model_stopped() {
        for read in 0..4 {
            let mut filter = CallFilter::default();
            let all = events(0, "read", "Paris");
            for (at, event) in all.iter().enumerate() {
                let passed = filter.push(event.clone(), at >= read);
                assert_eq!(!passed.is_empty(), at < read, "{read}: {event:?}");
            }
            filter.finish(true);
            let cut = filter.cut().expect("it was cut");
            assert_eq!(cut.name.as_deref(), (read > 0).then_some("read"));
            assert_eq!(cut.arguments.len(), [0, 0, 8, 16][read]);
        }
    }

    #[test]
    fn cut_call_that_began_as_a_repeat_is_passed_as_far_as_it_was_written() {
        let mut filter = CallFilter::default();
        events(0, "read", "Paris").into_iter().for_each(|event| drop(filter.push(event, false)));
        let again = events(1, "read", "Paris");
        again[..2].iter().for_each(|event| assert_eq!(filter.push(event.clone(), false), []));
        assert_eq!(filter.push(again[2].clone(), true), again[..2]);
        assert_eq!(filter.cut().map(|cut| cut.arguments.len()), Some(8));
    }
}
