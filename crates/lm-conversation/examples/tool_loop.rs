//! The chat loop of LiteRT-LM's page on tool use, written by hand with `Conversation` alone: the outer loop
//! between the user and the model, the inner one between the model and the tools. It reads questions from
//! standard input until an empty line.
//!
//! `printf 'How is the weather in Paris?\n\n' | cargo run --release -p lm-conversation --example tool_loop`

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{BufRead, Write};

use lm_conversation::{Conversation, ConversationConfig, Engine, EngineSettings, LoadOptions, ModelFolder};
use serde_json::{Value, json};

// Lines 55-91:
/// Declarations of the tools.
fn declarations() -> Value {
    json!([
        {"name": "get_weather", "description": "Returns the weather for a given location.", "parameters": {"type": "object",
            "properties": {"location": {"type": "string", "description": "The location to get the weather for."}},
            "required": ["location"]}},
        {"name": "get_stock_price", "description": "Returns the stock price for a given stock symbol.", "parameters": {"type": "object",
            "properties": {"stock_symbol": {"type": "string", "description": "The stock symbol to get the price for."}},
            "required": ["stock_symbol"]}}
    ])
}

// Lines 224-277:
/// A random number from `start` on, below `end`: each `RandomState` has its own keys.
fn uniform(start: u64, end: u64) -> u64 {
    start + RandomState::new().hash_one(()) % (end - start)
}

/// Calls a tool: its name and arguments in, a JSON result out.
pub(crate) fn call_tool(name: &str, arguments: &Value) -> Value {
    let argument = |name: &str| arguments[name].as_str().unwrap_or("Unknown");
    match name {
        // Random weather conditions.
        "get_weather" => {
            let condition = ["Sunny", "Cloudy", "Rainy", "Windy"][uniform(0, 4) as usize];
            json!({"tool_name": name, "location": argument("location"), "temperature": uniform(50, 91), "unit": "F",
                "humidity": uniform(20, 81), "condition": condition})
        }
        // A random stock price.
        "get_stock_price" => {
            let price = uniform(10_000, 40_001) as f64 / 100.0;
            json!({"tool_name": name, "stock_symbol": argument("stock_symbol"), "price": price, "currency": "USD"})
        }
        _ => json!({"tool_name": name, "error": "Tool not found"}),
    }
}

// Lines 96-115:
/// A conversation on the embedded model that knows the tools.
pub(crate) fn conversation() -> Result<Conversation, Box<dyn std::error::Error>> {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
    let preface = serde_json::from_value(json!({ "tools": declarations() }))?;
    Ok(Conversation::new(&engine, ConversationConfig::default().with_preface(preface))?)
}

/// Answers the questions of `input` on `output`.
pub(crate) fn chat(input: impl BufRead, output: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let mut conversation = conversation()?;
    // Lines 292-357: the chat loop between user and model.
    for line in input.lines() {
        let input_prompt = line?;
        if input_prompt.is_empty() {
            break;
        }
        let mut input_message = json!({"role": "user", "content": [{"type": "text", "text": input_prompt}]});
        // The loop between application and model.
        loop {
            let reply = conversation.send(input_message)?;
            if reply.tool_calls().is_empty() {
                writeln!(output, "{}", reply.text())?;
                break;
            }
            let mut tool_messages = Vec::new();
            for call in reply.tool_calls() {
                let content = call_tool(&call.name, &Value::Object(call.arguments.clone()));
                tool_messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": content}));
            }
            input_message = Value::Array(tool_messages);
        }
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    chat(std::io::stdin().lock(), &mut std::io::stdout())
}
