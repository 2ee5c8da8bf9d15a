//! The OpenAI document's flow at message level: `messages` and `tools` of its request bodies in, `tool_calls`
//! out.

use crate::common;
use lm_conversation::Conversation;
use lm_template::{Message, Role};
use lm_tools::{ToolCall, Toolset};
use serde_json::{Value, json};

/// The tools of step 1.
fn first_tools() -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {
            "location": {
                "type": "string",
                "description": "The city and state, e.g. San Francisco, CA"
            },
            "format": {
                "type": "string",
                "enum": [
                    "celsius",
                    "fahrenheit"
                ],
                "description": "The temperature unit to use. Infer this from the users location."
            }
        },
        "required": [
            "location",
            "format"
        ]
    });
    weather_tools(&parameters)
}

/// The tools of step 5, whose second argument has another name and is optional.
fn second_tools() -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {
            "location": {
                "type": "string",
                "description": "The city and state, e.g. San Francisco, CA"
            },
            "unit": {
                "type": "string",
                "enum": [
                    "celsius",
                    "fahrenheit"
                ]
            }
        },
        "required": [
            "location"
        ]
    });
    weather_tools(&parameters)
}

fn weather_tools(parameters: &Value) -> Value {
    json!([
        {
            "type": "function",
            "function": {
                "name": "get_current_weather",
                "description": "Get the current weather in a given location",
                "parameters": parameters
            }
        },
        {
            "type": "function",
            "function": {
                "name": "predict_weather",
                "description": "Predict the weather in 24 hours",
                "parameters": parameters
            }
        }
    ])
}

fn question() -> Value {
    json!({
        "role": "user",
        "content": "Hey! What is the weather like in auckland?"
    })
}

/// The message of step 2's response.
fn response_message() -> Value {
    json!({
        "content": "[{\"name\":\"get_current_weather\",\"arguments\":{\"location\": \"Auckland, NZ\", \"format\": \"celsius\"}}]",
        "tool_calls": [
            {
                "id": "call_abc123",
                "type": "function",
                "function": {
                    "name": "\"get_current_weather\"",
                    "arguments": "{\"format\":\"celsius\",\"location\":\"Auckland, NZ\"}"
                }
            }
        ],
        "role": "tool_call"
    })
}

/// The messages of step 5's request.
fn messages_with_result() -> Value {
    json!([
        {
            "role": "user",
            "content": "Hey! What is the weather like in auckland?"
        },
        {
            "role": "tool_call",
            "content": "[{\"name\":\"get_current_weather\",\"arguments\":{\"location\":\"Auckland, NZ\",\"format\":\"celsius\"}}]"
        },
        {
            "role": "tool",
            "content": "Fine, with a chance of showers."
        }
    ])
}

const ANSWER: &str = "Today in Auckland, the current weather is fine but there's a chance of showers. Make sure to check the forecast for any potential changes throughout the day!";

fn conversation(tools: Value) -> Conversation {
    common::conversation(common::tools(tools))
}

#[test]
fn step_1_and_2_question_is_answered_by_a_call() {
    let reply = conversation(first_tools()).send(question()).expect("a call");
    let message = reply.message.to_json();
    let calls = message["tool_calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["type"], "function");
    assert!(calls[0]["id"].is_string(), "{}", calls[0]);
    let function = json!({"name": "get_current_weather", "arguments": {"location": "Auckland, NZ", "format": "celsius"}});
    assert_eq!(calls[0]["function"], function);
}

#[test]
fn step_2_response_message_is_read_as_one_call() {
    let message = Message::from_json(response_message()).expect("a message");
    assert_eq!(message.role, Role::Assistant);
    assert_eq!(message.tool_calls.len(), 1, "content and tool_calls say the same: it is one call");
    let call = &message.tool_calls[0];
    assert_eq!((call.id.as_deref(), call.name.as_str()), (Some("call_abc123"), "get_current_weather"));
    assert_eq!(
        Value::Object(call.arguments.clone()),
        json!({"format": "celsius", "location": "Auckland, NZ"})
    );
}

#[test]
fn step_3_and_4_call_is_executed_and_answered_by_id() {
    let specs: Vec<lm_tools::ToolSpec> = serde_json::from_value(first_tools()).expect("declarations");
    let fine = |_| Ok("Fine, with a chance of showers.".into());
    let tools = specs.into_iter().try_fold(Toolset::new(), |tools, spec| tools.with_fn(spec, fine));
    let call = Message::from_json(response_message()).expect("a message").tool_calls.remove(0);
    let expected = json!({
        "role": "tool",
        "content": "Fine, with a chance of showers.",
        "tool_call_id": "call_abc123",
        "name": "get_current_weather"
    });
    assert_eq!(tools.expect("two tools").call(&call).to_json(), expected);
}

#[test]
fn step_5_tool_call_role_is_an_assistant_call() {
    let messages = lm_template::messages_from_json(messages_with_result()).expect("messages");
    assert_eq!(messages[1].role, Role::Assistant);
    let arguments = json!({"location": "Auckland, NZ", "format": "celsius"});
    let call = ToolCall::from_json(json!({"name": "get_current_weather", "arguments": arguments}));
    assert_eq!(messages[1].tool_calls, [call.expect("a call")]);
}

#[test]
fn step_6_result_is_answered_by_a_sentence() {
    for tools in [first_tools(), second_tools()] {
        let mut conversation = conversation(tools);
        let reply = conversation.send(question()).expect("a call");
        let result = json!({
            "role": "tool",
            "tool_call_id": reply.message.tool_calls[0].id,
            "content": "Fine, with a chance of showers."
        });
        let message = conversation.send(result).expect("an answer").message;
        assert_eq!(message.content.text(), ANSWER);
        assert_eq!(message.tool_calls, []);
    }
}

#[test]
fn step_5_and_6_whole_body_is_answered_by_a_sentence() {
    for tools in [first_tools(), second_tools()] {
        let message = conversation(tools).send(messages_with_result()).expect("an answer").message;
        assert_eq!((message.role, message.tool_calls.len()), (Role::Assistant, 0));
        assert_eq!(message.content.text(), ANSWER);
    }
}

#[test]
fn optional_unit_of_second_declaration_is_omitted() {
    let reply = conversation(second_tools()).send(question()).expect("a call");
    let call = &reply.message.tool_calls[0];
    assert_eq!(
        (call.name.as_str(), Value::Object(call.arguments.clone())),
        ("get_current_weather", json!({"location": "Auckland, NZ"}))
    );
}
