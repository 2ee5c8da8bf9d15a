//! Conversations that probe which orders and gaps of messages a template accepts.

use serde_json::{Value, json};

use super::{CallStyle, OTHER, Probe, WORD, is_shown};
use crate::orders::{MissingContent, Orders};

/// Further words to search for in a rendering.
const THIRD: &str = "third9b4d";
const FOURTH: &str = "fourth1c8e";
const WORDS: [&str; 4] = [WORD, OTHER, THIRD, FOURTH];

/// A probe of orders.
pub(super) struct OrderProbe<'a> {
    pub(super) probe: &'a Probe<'a>,
    /// Form of calls that the template shows; `None` if it shows no calls.
    pub(super) style: Option<CallStyle>,
    /// A result that the template shows; `None` if it shows no results.
    pub(super) result: Option<Value>,
    /// Declared tools.
    pub(super) tools: &'a Value,
}

impl OrderProbe<'_> {
    pub(super) fn orders(&self) -> Orders {
        let system_shows = self.says_all(&[self.message("system", WORD), self.user(OTHER)]);
        let developer = self.says_all(&[self.message("developer", WORD), self.user(OTHER)]);
        let instructions: Vec<&str> = [("system", system_shows), ("developer", developer)]
            .iter()
            .filter(|role| role.1)
            .map(|role| role.0)
            .collect();
        let every_pair = |shows: &dyn Fn(&str, &str) -> bool| {
            instructions.iter().all(|first| instructions.iter().all(|second| shows(first, second)))
        };
        let call = self.style.map(|style| self.probe.called(style, &["f"], &json!(THIRD)));
        let accepts = |messages: &[&[Value]]| self.says_all(&messages.concat());
        let with_call = |shows: &dyn Fn(&[Value], &[Value]) -> bool| {
            call.as_deref().is_none_or(|call| shows(&call[..2], &call[2..]))
        };
        let [first, second] = [[self.user(WORD)], [self.user(OTHER)]];
        let [answer, further] = [[self.assistant(THIRD)], [self.assistant("Hello")]];
        let system = [self.message("system", FOURTH)];
        let system = if system_shows { &system[..] } else { &[] };
        Orders {
            developer,
            repeated_instructions: every_pair(&|one, other| {
                self.says_all(&[self.message(one, WORD), self.message(other, OTHER), self.user(THIRD)])
            }),
            late_instructions: instructions.iter().all(|role| self.late(role, &call)),
            instructions_before_reply: system.is_empty()
                || accepts(&[system, &first, &answer])
                    && with_call(&|call, result| accepts(&[system, call, result])),
            no_user: system.is_empty() || accepts(&[system]),
            assistant_first: accepts(&[&answer, &first])
                && accepts(&[system, &answer, &first])
                && self.style.is_none_or(|style| self.shows_first_call(style)),
            repeated_user: accepts(&[&first, &second]) && accepts(&[system, &first, &second]),
            repeated_assistant: accepts(&[&first, &answer, &further, &second])
                && accepts(&[&first, &further, &answer])
                && with_call(&|call, result| accepts(&[&first, &answer, call, result, &further, &second])),
            results_without_call: self.result.as_ref().is_none_or(|result| self.shows_orphans(result)),
            calls_without_result: with_call(&|call, result| {
                accepts(&[&first, call, &second])
                    && accepts(&[&first, call, &answer, &second])
                    && accepts(&[&first, call, call, result, &further, &second])
            }),
            results_apart: with_call(&|call, result| {
                accepts(&[call, &first, result, &further, &second])
                    && (system.is_empty() || accepts(&[call, system, result, &further, &second]))
            }),
            reasoning_beside_text: with_call(&|call, result| {
                let mut call = call.to_vec();
                call[1]["content"] = "Hello".into();
                call[1]["reasoning_content"] = "Hm".into();
                call[1]["thinking"] = "Hm".into();
                accepts(&[&call, result])
            }),
            missing_ids: with_call(&|call, result| {
                let mut messages = [call, result].concat();
                messages.iter_mut().for_each(remove_ids);
                accepts(&[&messages])
            }),
            empty_system: accepts(&[&[self.content_message("system", "")], &first]),
            empty_user: accepts(&[&[self.user("")], &further, &second]),
            empty_assistant: accepts(&[&first, &[self.assistant("")], &second]),
            missing_content: self.missing_content(&call),
        }
    }

    /// Returns true if a call is shown as the first message.
    fn shows_first_call(&self, style: CallStyle) -> bool {
        let call = self.probe.called(style, &[THIRD], &json!(OTHER));
        let messages = [&call[1..], &[self.user(WORD)]].concat();
        self.rendered(&messages).is_some_and(|text| is_shown(&text, &[WORD, OTHER, THIRD]))
    }

    /// Returns true if instructions of this role are shown after other messages.
    fn late(&self, role: &str, call: &Option<Vec<Value>>) -> bool {
        let instruction = || self.message(role, OTHER);
        let places = [
            vec![self.user(WORD), instruction()],
            vec![self.user(WORD), instruction(), self.user(THIRD)],
            vec![self.user(WORD), self.assistant("Hello"), instruction(), self.user(THIRD)],
        ];
        let again = vec![self.message(role, WORD), self.user("Hello"), instruction(), self.user(THIRD)];
        let after_results =
            call.iter().map(|call| [&call[..], &[instruction(), self.assistant("Hello")]].concat());
        places.into_iter().chain([again]).chain(after_results).all(|messages| self.says_all(&messages))
    }

    fn shows_orphans(&self, result: &Value) -> bool {
        let result =
            json!({"role": "tool", "name": "f", "tool_call_id": super::STRICT_ID, "content": result});
        let places = [
            vec![self.user(WORD), result.clone()],
            vec![self.user(WORD), self.assistant("Hello"), result.clone(), self.assistant("Hello")],
            vec![result, self.user(WORD)],
        ];
        places.iter().all(|messages| self.says_all(messages))
    }

    fn missing_content(&self, call: &Option<Vec<Value>>) -> MissingContent {
        let bare = |role: &str| json!({"role": role});
        let question = || self.user(WORD);
        MissingContent {
            system: self.says_all(&[bare("system"), question()]),
            user: self.says_all(&[bare("user"), self.assistant("Hello"), question()]),
            assistant: self.says_all(&[question(), bare(self.probe.model_role), self.user(OTHER)])
                && self.says_all(&[question(), bare(self.probe.model_role)]),
            calls: call.as_ref().is_none_or(|call| self.says_all(&without_content(call, 1))),
            results: call.as_ref().is_none_or(|call| self.says_all(&without_content(call, 2))),
        }
    }

    fn user(&self, text: &str) -> Value {
        self.content_message("user", text)
    }

    fn assistant(&self, text: &str) -> Value {
        self.content_message(self.probe.model_role, text)
    }

    fn message(&self, role: &str, text: &str) -> Value {
        self.probe.message(role, text)
    }

    /// A message as polyfills write it: empty text is an empty list where the template reads lists only.
    fn content_message(&self, role: &str, text: &str) -> Value {
        let mut message = self.message(role, text);
        if text.is_empty() && message["content"].is_array() {
            message["content"] = json!([]);
        }
        message
    }

    /// Returns true if the template renders the messages with all words of their instructions, questions and
    /// results. (Templates may drop what the assistant said.)
    fn says_all(&self, messages: &[Value]) -> bool {
        let said = |message: &&Value| message["role"] != self.probe.model_role;
        let text =
            messages.iter().filter(said).map(|message| message["content"].to_string()).collect::<String>();
        let words: Vec<&str> = WORDS.into_iter().filter(|word| text.contains(word)).collect();
        self.rendered(messages).is_some_and(|text| is_shown(&text, &words))
    }

    fn rendered(&self, messages: &[Value]) -> Option<String> {
        match self.tools {
            Value::Null => self.probe.rendered(messages),
            tools => self.probe.render(messages, tools, json!({})),
        }
    }
}

fn remove_ids(message: &mut Value) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
        call.shift_remove("id");
    }
    if let Some(message) = message.as_object_mut() {
        message.shift_remove("tool_call_id");
    }
}

fn without_content(messages: &[Value], index: usize) -> Vec<Value> {
    let mut messages = messages.to_vec();
    if let Some(message) = messages[index].as_object_mut() {
        message.shift_remove("content");
    }
    messages
}
