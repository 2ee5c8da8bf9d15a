//! Tool results by the names of their functions.

use std::borrow::Cow;

use serde_json::Value;

use crate::content::{Content, Part};
use crate::message::Message;
use crate::role::Role;

/// Tool results with the names of their functions: a result without a name has that of the call with its id,
/// or of the first call without a result.
///
/// A result in LiteRT-LM's form, `{"type": "tool_response", "name", "response"}`, or in Google's,
/// `{"name", "response"}`, has the name and the content of its parts; a message with several of them becomes
/// one for each. All other messages stay. Item `n` of the list has what message `n` becomes.
pub fn results_with_names(messages: &[Message]) -> Vec<Vec<Cow<'_, Message>>> {
    let mut open = OpenCalls::default();
    let convert = |message| {
        let mut results = unwrapped(message);
        results.iter_mut().for_each(|result| open.next(result));
        results
    };
    messages.iter().map(convert).collect()
}

/// Ids and names of calls without a result.
#[derive(Default)]
struct OpenCalls(Vec<(Option<String>, String)>);

impl OpenCalls {
    /// Names a result, and collects the calls of another message.
    fn next(&mut self, message: &mut Cow<'_, Message>) {
        if message.role != Role::Tool {
            self.0.extend(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
            return;
        }
        let is_answered = |(id, name): &(Option<String>, String)| match (&message.tool_call_id, &message.name)
        {
            (Some(answered), _) => id.as_ref() == Some(answered),
            (None, Some(answered)) => name == answered,
            (None, None) => true,
        };
        let place = self.0.iter().position(is_answered);
        if let Some((_, name)) = place.map(|place| self.0.remove(place))
            && message.name.is_none()
        {
            message.to_mut().name = Some(name);
        }
    }
}

/// The results that a message has in the forms of LiteRT-LM and of Google, or else the message.
fn unwrapped(message: &Message) -> Vec<Cow<'_, Message>> {
    let responses: Option<Vec<(&str, &Value)>> = match &message.content {
        _ if message.role != Role::Tool => None,
        Content::Parts(parts) => parts.iter().map(|part| response(part_json(part)?)).collect(),
        Content::Json(Value::Array(items)) => items.iter().map(response).collect(),
        Content::Json(item) => response(item).map(|response| vec![response]),
        _ => None,
    };
    let Some(responses) = responses.filter(|responses| !responses.is_empty()) else {
        return vec![Cow::Borrowed(message)];
    };
    let result = |(name, response): (&str, &Value)| {
        let content = match response {
            Value::String(text) => Content::Text(text.clone()),
            other => Content::Json(other.clone()),
        };
        let name = Some(name.to_owned()).filter(|name| !name.is_empty()).or_else(|| message.name.clone());
        let mut result = message.clone();
        (result.content, result.name) = (content, name);
        Cow::Owned(result)
    };
    responses.into_iter().map(result).collect()
}

fn part_json(part: &Part) -> Option<&Value> {
    match part {
        Part::Other(value) => Some(value),
        _ => None,
    }
}

/// Name and content of a result that is an object of these two keys, and of a type that says so.
fn response(item: &Value) -> Option<(&str, &Value)> {
    let keys = ["type", "name", "response", "id"];
    let object = item.as_object().filter(|object| object.keys().all(|key| keys.contains(&key.as_str())))?;
    let is_typed =
        object.get("type").is_none_or(|kind| kind == "tool_response" || kind == "function_response");
    let name = object.get("name").and_then(Value::as_str)?;
    object.get("response").filter(|_| is_typed).map(|response| (name, response))
}
