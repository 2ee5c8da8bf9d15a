//! The first documented flow, with the model embedded in the programs.

use lm_conversation::{Conversation, ConversationConfig, Engine, Message, Preface};
use lm_model::{LoadOptions, ModelFolder};
use lm_session::EngineSettings;
use serde_json::json;

#[test]
fn weather_in_paris_conversation_matches() -> anyhow::Result<()> {
    let folder = ModelFolder::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/pocket/model"))?;
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
    let preface: Preface = serde_json::from_value(json!({
        "messages": [{"role": "system", "content": "You are a helpful assistant."}],
        "tools": [
            {
                "name": "get_weather",
                "description": "Returns the weather for a given location.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "location": {"type": "string", "description": "The location to get the weather for."},
                    },
                    "required": ["location"],
                },
            },
            {
                "name": "get_stock_price",
                "description": "Returns the stock price for a given stock symbol.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "stock_symbol": {"type": "string", "description": "The stock symbol to get the price for."},
                    },
                    "required": ["stock_symbol"],
                },
            },
        ],
    }))?;
    let config = ConversationConfig::from_engine(&engine).with_preface(preface);
    let mut conversation = Conversation::new(&engine, config.clone())?;
    let reply = conversation.send("How is the weather in Paris?")?;
    assert_eq!(reply.tool_calls().len(), 1, "{:?}", reply.message);
    let call = &reply.tool_calls()[0];
    assert_eq!((call.name.as_str(), &call.arguments["location"]), ("get_weather", &json!("Paris")));
    let result = json!({"temperature": 25, "unit": "celsius", "condition": "sunny"});
    let answer = conversation.send(Message::tool(call.id.clone().as_deref(), "get_weather", result))?;
    assert!(answer.text().contains("25"), "{}", answer.text());
    // The second turn runs only the tokens that the first one did not.
    let usage = answer.finish.usage;
    assert!(usage.cached_tokens * 2 > usage.prompt_tokens, "{usage:?}");
    // Another conversation reuses the cached system prompt and tools of the first one.
    drop(conversation);
    let reply = Conversation::new(&engine, config)?.send("How is the weather in Rome?")?;
    let usage = reply.finish.usage;
    assert!(usage.cached_tokens * 2 > usage.prompt_tokens, "{usage:?}");
    assert_eq!(reply.tool_calls()[0].arguments["location"], "Rome");
    Ok(())
}
