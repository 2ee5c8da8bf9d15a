//! Requests of the scenarios.

use serde_json::{Value, json};

const PLACES: [&str; 6] = ["Paris", "Berlin", "Lima", "Oslo", "Nairobi", "Kyoto"];

/// Streamed request with tools; the number decides which: free to call, required to call, an answer to a
/// result, and a long text.
pub fn with_tools(number: usize) -> Value {
    let place = PLACES[number / 4 % PLACES.len()];
    let question = json!({"role": "user", "content": format!("How is the weather in {place}?")});
    let call = json!({"id": "call_1", "type": "function",
        "function": {"name": "get_weather", "arguments": json!({"location": place}).to_string()}});
    let fields = match number % 4 {
        0 => json!({"messages": [question], "max_tokens": 128}),
        1 => json!({"messages": [question], "max_tokens": 128, "tool_choice": "required"}),
        2 => json!({"max_tokens": 128, "messages": [
            question,
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "{\"temperature\": 21, \"sky\": \"clear\"}"},
        ]}),
        _ => json!({"messages": [question], "max_tokens": 128, "tool_choice": "none", "ignore_eos": true}),
    };
    let fields = merged(fields, json!({"tools": tools(), "temperature": 0.7, "seed": number}));
    merged(fields, streamed())
}

/// Request for a reply of exactly this many tokens.
pub fn of_length(tokens: usize) -> Value {
    json!({
        "messages": [{"role": "user", "content": "Tell a long story about a river and a mill."}],
        "temperature": 0, "max_tokens": tokens, "ignore_eos": true,
    })
}

/// Fields of a stream that ends with its usage.
pub fn streamed() -> Value {
    json!({"stream": true, "stream_options": {"include_usage": true}})
}

/// Adds fields to a request.
pub fn merged(mut request: Value, fields: Value) -> Value {
    if let (Value::Object(request), Value::Object(fields)) = (&mut request, fields) {
        request.extend(fields);
    }
    request
}

fn tools() -> Value {
    let place = json!({"type": "string", "description": "Name of a place"});
    json!([
        {"type": "function", "function": {
            "name": "get_weather", "description": "Gets the weather of a place.",
            "parameters": {"type": "object", "properties": {"location": place}, "required": ["location"]}}},
        {"type": "function", "function": {
            "name": "get_time", "description": "Gets the time of day at a place.",
            "parameters": {"type": "object", "properties": {"location": place}, "required": ["location"]}}},
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_streamed_with_tools() {
        for number in 0..8 {
            let request = with_tools(number);
            assert_eq!(
                (request["stream"].as_bool(), request["seed"].as_u64()),
                (Some(true), Some(number as u64))
            );
            assert!(request["tools"].is_array() && request["messages"].is_array(), "{request}");
        }
        assert_ne!(with_tools(0)["messages"], with_tools(4)["messages"]);
    }
}
