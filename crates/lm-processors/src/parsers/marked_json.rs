//! A call as JSON between two markers: from its text to events.

use lm_template::{ToolCall, Value};

use super::json_call::{JsonCall, Progress};
use crate::event::ProcessorEvent;

/// How far the block between the markers is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// More must come.
    Open,
    /// The call is complete, and its block ends before this byte.
    Complete(usize),
    /// This is not a call.
    Invalid(String),
}

/// A call that is being written.
#[derive(Debug, Default)]
pub(crate) struct MarkedJson {
    json: JsonCall,
    started: bool,
    /// Bytes of the block whose argument text has been passed on.
    passed_on: usize,
    end: Option<usize>,
}

impl MarkedJson {
    /// Reads on in `block`, the text since the opening marker, and reports the beginning and the arguments.
    pub(crate) fn follow(
        &mut self,
        block: &str,
        close: &str,
        index: usize,
        events: &mut Vec<ProcessorEvent>,
    ) -> Block {
        if self.end.is_none() {
            let progress = self.json.follow(block);
            self.report(block, index, events);
            match progress {
                Progress::Open => return Block::Open,
                Progress::Invalid(reason) => return Block::Invalid(reason.to_owned()),
                Progress::Complete(end) => self.end = Some(end),
            }
        }
        let end = self.end.unwrap_or(block.len());
        let rest = block[end..].trim_start();
        if rest.starts_with(close) {
            Block::Complete(block.len() - rest.len() + close.len())
        } else if close.starts_with(rest) {
            Block::Open
        } else {
            Block::Invalid("text follows the JSON".to_owned())
        }
    }

    fn report(&mut self, block: &str, index: usize, events: &mut Vec<ProcessorEvent>) {
        let JsonCall { name, arguments_start, arguments_end, at, .. } = &self.json;
        if !self.started && (name.is_some() || arguments_start.is_some()) {
            let before_arguments =
                |name: &std::ops::Range<usize>| arguments_start.is_none_or(|start| name.start < start);
            let name = name.clone().filter(before_arguments);
            let name = name.and_then(|name| serde_json::from_str(&block[name]).ok());
            events.push(ProcessorEvent::ToolCallStarted { index, name });
            self.started = true;
        }
        if let Some(start) = *arguments_start {
            let (from, to) = (self.passed_on.max(start), arguments_end.unwrap_or(*at));
            if from < to {
                events
                    .push(ProcessorEvent::ToolCallArguments { index, fragment: block[from..to].to_owned() });
                self.passed_on = to;
            }
        }
    }

    /// Whether the call was reported as begun.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// The calls of a complete block; a single object is one call, a list is several.
    ///
    /// # Errors
    /// What is wrong, when there is no whole call.
    pub(crate) fn finish(
        &mut self,
        block: &str,
        index: usize,
        events: &mut Vec<ProcessorEvent>,
    ) -> Result<usize, String> {
        let end = self.end.ok_or("it is unfinished")?;
        let value: Value = serde_json::from_str(&block[..end]).map_err(|error| error.to_string())?;
        let values = match value {
            Value::Array(values) if values.is_empty() => return Err("the list of calls is empty".to_owned()),
            Value::Array(values) => values,
            value => vec![value],
        };
        let calls = values.into_iter().map(ToolCall::from_json).collect::<Result<Vec<_>, _>>();
        let calls = calls.map_err(|error| error.to_string())?;
        let count = calls.len();
        for (offset, call) in calls.into_iter().enumerate() {
            self.report_whole(index + offset, call, events);
        }
        Ok(count)
    }

    /// Reports a call with whatever was not reported while it was written: its beginning, arguments in text form.
    fn report_whole(&mut self, index: usize, call: ToolCall, events: &mut Vec<ProcessorEvent>) {
        if !self.started {
            events.push(ProcessorEvent::ToolCallStarted { index, name: Some(call.name.clone()) });
        }
        if self.passed_on == 0 && !call.arguments.is_empty() {
            let fragment = Value::Object(call.arguments.clone()).to_string();
            events.push(ProcessorEvent::ToolCallArguments { index, fragment });
        }
        events.push(ProcessorEvent::ToolCall { index, call });
    }
}
