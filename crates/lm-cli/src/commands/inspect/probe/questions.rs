//! Questions of the probe, and their right answers.

use lm_template::{Message, ToolCall, ToolSpec, Value};
use serde::Deserialize;

/// Tools, and questions about them.
#[derive(Debug, Deserialize)]
pub struct Questions {
    pub tools: Vec<ToolSpec>,
    #[serde(rename = "questions")]
    pub list: Vec<Question>,
}

/// A question, and its only right call; none if no tool fits.
#[derive(Debug, Deserialize)]
pub struct Question {
    pub ask: String,
    pub call: Option<Call>,
}

/// Name and arguments of a call.
#[derive(Debug, Deserialize)]
pub struct Call {
    name: String,
    arguments: Value,
}

impl Questions {
    /// The questions of this program.
    pub fn read() -> Self {
        serde_json::from_str(include_str!("questions.json")).expect("a file of this program")
    }

    /// Number of questions for a tool.
    pub fn calls(&self) -> usize {
        self.list.iter().filter(|question| question.call.is_some()).count()
    }

    /// Number of questions that no tool fits.
    pub fn none(&self) -> usize {
        self.list.len() - self.calls()
    }
}

impl Question {
    /// Returns true for the one right call, or for text where no tool fits.
    pub fn is_right(&self, reply: &Message) -> bool {
        match (&self.call, reply.tool_calls.as_slice()) {
            (None, []) => !reply.content.text().trim().is_empty(),
            (Some(expected), [call]) => expected.is(call),
            _ => false,
        }
    }
}

impl Call {
    /// Compares the expected arguments, texts without their case; further arguments may be given.
    fn is(&self, call: &ToolCall) -> bool {
        let expected = self.arguments.as_object().into_iter().flatten();
        let same = |(key, value): (&String, &Value)| match (value, call.arguments.get(key)) {
            (Value::String(one), Some(Value::String(other))) => one.eq_ignore_ascii_case(other.trim()),
            (one, Some(other)) => one == other || one.as_f64().is_some() && one.as_f64() == other.as_f64(),
            (_, None) => false,
        };
        call.name == self.name && expected.into_iter().all(same)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn called(calls: Value) -> Message {
        Message::from_json(json!({"role": "assistant", "content": "", "tool_calls": calls}))
            .expect("a message")
    }

    fn call(name: &str, arguments: Value) -> Value {
        json!({"type": "function", "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn one_call_with_the_expected_arguments_is_right() {
        let questions = Questions::read();
        assert_eq!((questions.calls(), questions.none()), (8, 4));
        let weather = &questions.list[0];
        for (calls, right) in [
            (json!([call("get_weather", json!({"city": "paris"}))]), true),
            (json!([call("get_weather", json!({"city": "Paris", "unit": "celsius"}))]), true),
            (json!([call("get_weather", json!({"city": "Rome"}))]), false),
            (json!([call("get_weather", json!({}))]), false),
            (json!([call("set_timer", json!({"city": "Paris"}))]), false),
            (json!([]), false),
            (
                json!([
                    call("get_weather", json!({"city": "Paris"})),
                    call("set_timer", json!({"minutes": 1}))
                ]),
                false,
            ),
        ] {
            assert_eq!(weather.is_right(&called(calls.clone())), right, "{calls}");
        }
        let timer = &questions.list[2];
        assert!(timer.is_right(&called(json!([call("set_timer", json!({"minutes": 12.0}))]))));
    }

    #[test]
    fn text_is_right_where_no_tool_fits() {
        let questions = Questions::read();
        let sea = questions.list.iter().find(|question| question.call.is_none()).expect("one for no tool");
        assert!(sea.is_right(&Message::assistant("The sea is wide.")));
        assert!(!sea.is_right(&Message::assistant(" ")));
        assert!(!sea.is_right(&called(json!([call("get_weather", json!({"city": "Paris"}))]))));
    }

    /// Each expected call is one of a declared tool.
    #[test]
    fn expected_calls_are_of_declared_tools() {
        let questions = Questions::read();
        for call in questions.list.iter().filter_map(|question| question.call.as_ref()) {
            assert!(questions.tools.iter().any(|tool| tool.name() == call.name), "{}", call.name);
        }
    }
}
