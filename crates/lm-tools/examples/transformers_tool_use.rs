//! The flow of the transformers page on tool use, on the embedded model: functions as schemas, a call, its
//! result, the answer; tools as JSON schemas. `// Lines …` names the lines of the page to which the code
//! corresponds; its results are asserted, not printed.

use lm_conversation::Preface;
use lm_tools::{Conversation, ConversationConfig, Engine, EngineSettings, LoadOptions, ModelFolder};
use lm_tools::{Tool, ToolSpec, Toolset, tool};
use serde_json::json;

// Lines 12-27: functions as tools.
/// Get the current temperature at a location.
///
/// Args:
///     location: The location to get the temperature for, in the format "City, Country"
///     unit: The unit to return the temperature in. (choices: ["celsius", "fahrenheit"])
#[tool]
fn get_current_temperature(location: String, unit: String) -> i64 {
    if location.starts_with("Paris") && unit == "celsius" { 22 } else { 72 }
}

/// Get the current wind speed in km/h at a given location.
///
/// Args:
///     location: The location to get the wind speed for, in the format "City, Country"
#[tool]
fn get_current_wind_speed(location: String) -> i64 {
    if location.starts_with("Paris") { 6 } else { 12 }
}

// Lines 75-83: a function whose schema is read.
/// A function that multiplies two numbers
///
/// Args:
///     a: The first number to multiply
///     b: The second number to multiply
#[tool]
fn multiply(a: f64, b: f64) -> f64 {
    a * b
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Lines 33-37: the model.
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
    let tools = Toolset::new().with(get_current_temperature::tool())?.with(get_current_wind_speed::tool())?;
    let mut model = tools.bind(&engine, ConversationConfig::default())?;

    // Lines 39-42, 45-47: the model calls a tool.
    let mut messages = vec![
        json!({"role": "system", "content": "You are a bot that responds to weather queries. You should reply with the unit used in the queried location."}),
        json!({"role": "user", "content": "Hey, what's the temperature in Paris right now?"}),
    ];
    let outputs = model.invoke(json!(messages))?.message;
    assert_eq!(outputs.tool_calls[0].name, "get_current_temperature");

    // Lines 58-59, 62-62: the call and its result are added to the history.
    messages.push(outputs.to_json());
    messages.push(tools.call(&outputs.tool_calls[0]).to_json());

    // Lines 64-66: the model reads the result.
    let out = model.invoke(json!(messages))?;
    assert_eq!(out.text(), "The temperature in Paris, France right now is 22°C.");

    // Lines 84-85: the schema made of a function.
    let schema = multiply::tool().spec().to_json();

    // Lines 110-145: the schemas given as JSON.
    let a = json!({"type": "number", "description": "The first number to multiply"});
    let b = json!({"type": "number", "description": "The second number to multiply"});
    let by_hand = json!({"type": "function", "function": {
        "name": "multiply",
        "description": "A function that multiplies two numbers",
        "parameters": {"type": "object", "properties": {"a": a, "b": b}, "required": ["a", "b"]}
    }});
    assert_eq!(schema, by_hand);
    let current_time = json!({"type": "function", "function": {
        "name": "current_time",
        "description": "Get the current local time as a string.",
        "parameters": {"type": "object", "properties": {}}
    }});
    let tools = vec![ToolSpec::from_json(current_time)?, ToolSpec::from_json(by_hand)?];
    let preface = Preface { tools, ..Preface::default() };
    let config = ConversationConfig::default().with_preface(preface);
    let reply = Conversation::new(&engine, config)?.send("What time is it?")?;
    assert_eq!(reply.tool_calls()[0].name, "current_time");
    Ok(())
}
