//! The embedded model, loaded once per test program.
#![allow(dead_code)] // every test program uses its own part

use lm_conversation::{Conversation, ConversationConfig};
use lm_model::{Device, LoadOptions, ModelFolder};
use lm_session::{Engine, EngineSettings};
use lm_template::{Preface, ToolSpec};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// An engine with the embedded model on `device`.
pub fn engine_on(device: Device) -> Engine {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let options = LoadOptions { device, ..LoadOptions::default() };
    Engine::load(&folder, &options, EngineSettings::default(), &mut |_| {})
        .unwrap_or_else(|error| panic!("the embedded model on {device}: {error}"))
}

/// The engine on the default device, shared by the tests of a program.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| engine_on(Device::Cpu))
}

/// A greedy conversation with this preface.
pub fn conversation(preface: Preface) -> Conversation {
    conversation_on(engine(), preface)
}

/// A greedy conversation on another engine.
pub fn conversation_on(engine: &Engine, preface: Preface) -> Conversation {
    Conversation::new(engine, config(preface)).expect("a conversation")
}

/// The default configuration, which is greedy, with a preface.
pub fn config(preface: Preface) -> ConversationConfig {
    ConversationConfig { preface, ..ConversationConfig::default() }
}

/// A preface of tools from JSON declarations.
pub fn tools(declarations: Value) -> Preface {
    let tools: Vec<ToolSpec> = serde_json::from_value(declarations).expect("tool declarations");
    Preface { tools, ..Preface::default() }
}

/// LiteRT-LM's two tools, as declared on its tool use page.
pub fn litert_tools() -> Value {
    json!([
      {
        "name": "get_weather",
        "description": "Returns the weather for a given location.",
        "parameters": {
          "type": "object",
          "properties": {
            "location": {
              "type": "string",
              "description": "The location to get the weather for."
            }
          },
          "required": [
            "location"
          ]
        }
      },
      {
        "name": "get_stock_price",
        "description": "Returns the stock price for a given stock symbol.",
        "parameters": {
          "type": "object",
          "properties": {
            "stock_symbol": {
              "type": "string",
              "description": "The stock symbol to get the price for."
            }
          },
          "required": [
            "stock_symbol"
          ]
        }
      }
    ])
}

/// The weather report in the page's example.
pub fn paris_report() -> Value {
    json!({
      "tool_name": "get_weather",
      "location": "Paris",
      "temperature": 72,
      "unit": "F",
      "humidity": 50,
      "condition": "Sunny"
    })
}

/// The final sentence of the page's example.
pub const PARIS_SENTENCE: &str =
    "The weather in Paris is sunny with a temperature of 72°F and humidity of 50%.";
