//! The flows of the transformers page on tool use: functions as schemas, calls and results in a chat history.

use crate::common;
use lm_conversation::GenerationPrompt;
use lm_template::{Message, Preface, ToolSpec};
use lm_tools::{Tool, ToolCall, Toolset, tool};
use serde_json::{Value, json};

/// Get the current temperature at a location.
///
/// # Arguments
/// - `location`: The location to get the temperature for, in the format "City, Country"
/// - `unit`: The unit to return the temperature in. (choices: ["celsius", "fahrenheit"])
#[tool]
fn get_current_temperature(location: String, unit: String) -> f64 {
    let _ = (location, unit);
    22. // A real function should probably actually get the temperature!
}

/// Get the current wind speed in km/h at a given location.
///
/// # Arguments
/// - `location`: The location to get the wind speed for, in the format "City, Country"
#[tool]
fn get_current_wind_speed(location: String) -> f64 {
    let _ = location;
    6. // A real function should probably actually get the wind speed!
}

/// A function that multiplies two numbers
///
/// # Arguments
/// - `a`: The first number to multiply
/// - `b`: The second number to multiply
#[tool]
fn multiply(a: f64, b: f64) -> f64 {
    a * b
}

/// Get the current local time as a string.
#[tool]
fn current_time() -> String {
    "10:42".to_owned()
}

fn tools() -> Toolset {
    let tools = Toolset::new().with(get_current_temperature::tool());
    tools.and_then(|tools| tools.with(get_current_wind_speed::tool())).expect("two tools")
}

fn system() -> Value {
    json!({"role": "system", "content": "You are a bot that responds to weather queries. You should reply with the unit used in the queried location."})
}

fn question() -> Value {
    json!({"role": "user", "content": "Hey, what's the temperature in Paris right now?"})
}

fn call() -> Value {
    let tool_call = json!({"name": "get_current_temperature", "arguments": {"location": "Paris, France", "unit": "celsius"}});
    json!({"role": "assistant", "tool_calls": [{"type": "function", "function": tool_call}]})
}

fn preface() -> Preface {
    Preface { tools: tools().specs(), ..Preface::default() }
}

#[test]
fn function_schema_equals_get_json_schema() {
    let expected = json!({
      "type": "function",
      "function": {
        "name": "multiply",
        "description": "A function that multiplies two numbers",
        "parameters": {
          "type": "object",
          "properties": {
            "a": {
              "type": "number",
              "description": "The first number to multiply"
            },
            "b": {
              "type": "number",
              "description": "The second number to multiply"
            }
          },
          "required": ["a", "b"]
        }
      }
    });
    assert_eq!(
        multiply::tool().spec().to_json().to_string(),
        expected.to_string(),
        "key for key, in this order"
    );
}

#[test]
fn documented_functions_have_documented_schemas() {
    let expected = json!([
        {"type": "function", "function": {
            "name": "get_current_temperature",
            "description": "Get the current temperature at a location.",
            "parameters": {"type": "object", "properties": {
                "location": {"type": "string",
                    "description": "The location to get the temperature for, in the format \"City, Country\""},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"],
                    "description": "The unit to return the temperature in."}},
                "required": ["location", "unit"]}}},
        {"type": "function", "function": {
            "name": "get_current_wind_speed",
            "description": "Get the current wind speed in km/h at a given location.",
            "parameters": {"type": "object", "properties": {
                "location": {"type": "string",
                    "description": "The location to get the wind speed for, in the format \"City, Country\""}},
                "required": ["location"]}}},
    ]);
    let specs: Vec<Value> = tools().specs().iter().map(ToolSpec::to_json).collect();
    assert_eq!(Value::Array(specs).to_string(), expected.to_string());
}

#[test]
fn manual_and_generated_schemas_are_equal() {
    let by_hand = json!({
      "type": "function",
      "function": {
        "name": "current_time",
        "description": "Get the current local time as a string.",
        "parameters": {
            "type": "object",
            "properties": {}
        }
      }
    });
    assert_eq!(current_time::tool().spec().to_json().to_string(), by_hand.to_string());
}

#[test]
fn prompt_equals_apply_chat_template() {
    let conversation = common::conversation(preface());
    let messages = json!([system(), question()]);
    let rendered = conversation.render(messages, GenerationPrompt::Add).expect("a prompt");
    let expected = concat!(
        "<|im_start|>system\n",
        "You are a bot that responds to weather queries. You should reply with the unit used in the queried location.\n\n",
        "<tools>\n",
        r#"{"description": "Get the current temperature at a location.", "name": "get_current_temperature", "#,
        r#""parameters": {"type": "object", "properties": {"location": {"type": "string", "description": "#,
        r#""The location to get the temperature for, in the format \"City, Country\""}, "unit": {"type": "string", "#,
        r#""enum": ["celsius", "fahrenheit"], "description": "The unit to return the temperature in."}}, "#,
        r#""required": ["location", "unit"]}}"#,
        "\n",
        r#"{"description": "Get the current wind speed in km/h at a given location.", "name": "get_current_wind_speed", "#,
        r#""parameters": {"type": "object", "properties": {"location": {"type": "string", "description": "#,
        r#""The location to get the wind speed for, in the format \"City, Country\""}}, "required": ["location"]}}"#,
        "\n</tools><|im_end|>\n",
        "<|im_start|>user\nHey, what's the temperature in Paris right now?<|im_end|>\n",
        "<|im_start|>assistant\n",
    );
    assert_eq!(rendered.text, expected);
    assert_eq!(rendered.ids.len(), rendered.mask.len());
    let tokenizer = common::engine().tokenizer();
    assert_eq!(
        tokenizer.encode(expected).expect("ids"),
        rendered.ids,
        "no content here looks like a special token"
    );
}

#[test]
fn model_calls_and_answers_as_documented() {
    let mut conversation = common::conversation(preface());
    let reply = conversation.send(json!([system(), question()])).expect("a call");
    let expected = json!([{"type": "function", "function":
        {"name": "get_current_temperature", "arguments": {"location": "Paris, France", "unit": "celsius"}}}]);
    assert_eq!(without_ids(&reply.message), expected);

    let result = tools().call(&reply.message.tool_calls[0]);
    assert_eq!(result.content.text(), "22.0");
    // As on the page: the result is the text "22".
    let reply = conversation.send(json!({"role": "tool", "content": "22"})).expect("an answer");
    assert_eq!(reply.message.content.text(), "The temperature in Paris, France right now is 22°C.");
}

#[test]
fn manual_history_is_answered_like_a_generated_one() {
    let messages = json!([system(), question(), call(), {"role": "tool", "content": "22"}]);
    let mut conversation = common::conversation(preface());
    let reply = conversation.send(messages).expect("an answer");
    assert_eq!(reply.message.content.text(), "The temperature in Paris, France right now is 22°C.");
}

#[test]
fn json_declarations_are_callable() {
    let declarations = json!([
        {
          "type": "function",
          "function": {
            "name": "current_time",
            "description": "Get the current local time as a string.",
            "parameters": {
                "type": "object",
                "properties": {}
            }
          }
        },
        {
          "type": "function",
          "function": {
            "name": "multiply",
            "description": "A function that multiplies two numbers",
            "parameters": {
              "type": "object",
              "properties": {
                "a": {
                  "type": "number",
                  "description": "The first number to multiply"
                },
                "b": {
                  "type": "number", "description": "The second number to multiply"
                }
              },
              "required": ["a", "b"]
            }
          }
        }
    ]);
    let mut conversation = common::conversation(common::tools(declarations));
    let reply = conversation.send("What time is it?").expect("a call");
    let expected = json!([{"type": "function", "function": {"name": "current_time", "arguments": {}}}]);
    assert_eq!(without_ids(&reply.message), expected);

    let tools = Toolset::new().with(current_time::tool()).expect("one tool");
    let result = tools.call(&reply.message.tool_calls[0]);
    let reply = conversation.send(result).expect("an answer");
    assert_eq!(reply.message.content.text(), "It is 10:42.");
}

/// The calls of a message, as on the page: without ids.
fn without_ids(message: &Message) -> Value {
    let call = |call: &ToolCall| ToolCall::new(call.name.as_str(), call.arguments.clone()).to_json();
    message.tool_calls.iter().map(call).collect()
}
