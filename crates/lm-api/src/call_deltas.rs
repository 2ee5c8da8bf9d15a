//! Tool calls of a stream, in order and complete.

use lm_conversation::{ConversationEvent, ToolCall};
use lm_processors::{CallIdForm, FreshCallIds};

use crate::client_tools::ClientTools;
use crate::request::ChatRequest;

/// Part of a call for the frames of a stream.
#[derive(Debug, PartialEq)]
pub(crate) enum CallDelta {
    /// A call begins; `arguments` is empty or all of them.
    Started { id: String, name: String, arguments: String },
    /// Further JSON text of the arguments.
    Arguments(String),
}

/// Converter of the events of calls to deltas: each call begins with its name and its id, and its deltas add
/// up to the JSON text of its arguments, or to the input of a custom tool. Calls come one after another.
#[derive(Debug, Clone)]
pub(crate) struct CallDeltas {
    ids: FreshCallIds,
    tools: ClientTools,
    /// The current, incomplete call.
    call: Option<OpenCall>,
}

#[derive(Debug, Clone)]
struct OpenCall {
    /// True if its start was reported, which needs the name.
    named: bool,
    /// True if its text is reported at its end, as the input of a custom tool, which is a value in its JSON,
    /// or the action of a built-in one.
    whole: bool,
    /// True if a fragment of its arguments was reported.
    has_arguments: bool,
}

impl CallDeltas {
    /// Creates a converter for the reply to a request, whose ids it does not use again.
    pub(crate) fn new(request: &ChatRequest) -> Self {
        let messages = request.preface.messages.iter().chain([&request.last]);
        let ids = FreshCallIds::of_form(CallIdForm::Random, messages);
        Self { ids, tools: request.client_tools.clone(), call: None }
    }

    /// Converts an event, if it is of a call. A call without a name waits until it is complete.
    pub(crate) fn delta(&mut self, event: &ConversationEvent) -> Option<CallDelta> {
        match event {
            ConversationEvent::ToolCallStarted { name, id, .. } => {
                let whole = name.as_ref().is_some_and(|name| self.tools.is_whole(name));
                self.call = Some(OpenCall { named: name.is_some(), whole, has_arguments: false });
                Some(self.started(name.as_ref()?, id.clone(), String::new()))
            }
            ConversationEvent::ToolCallArguments { fragment, .. } => {
                let call = self.call.as_mut().filter(|call| call.named && !call.whole)?;
                call.has_arguments = true;
                Some(CallDelta::Arguments(fragment.clone()))
            }
            ConversationEvent::ToolCall(call) => self.complete(call),
            _ => None,
        }
    }

    fn complete(&mut self, call: &ToolCall) -> Option<CallDelta> {
        match self.call.take().filter(|open| open.named) {
            Some(open) if open.has_arguments => None,
            Some(_) => Some(CallDelta::Arguments(self.tools.text(call))),
            None => Some(self.started(&call.name, call.id.clone(), self.tools.text(call))),
        }
    }

    fn started(&mut self, name: &str, id: Option<String>, arguments: String) -> CallDelta {
        let id = id.unwrap_or_else(|| self.ids.next_id());
        CallDelta::Started { id, name: name.to_owned(), arguments }
    }
}
