//! The same loops with streamed replies on an async runtime (here the smallest one): text is printed as it
//! comes, calls are collected, and no thread waits for the model.

use std::error::Error;
use std::io::Write;

use futures_util::StreamExt;
use lm_conversation::{ConversationEvent, TurnOptions};
use serde_json::{Value, json};

#[path = "tool_loop.rs"]
#[allow(dead_code)] // Its `chat` and `main`.
pub(crate) mod tool_loop;

/// Answers `questions` on `out`, which has the text as soon as the model wrote it.
pub(crate) async fn chat(questions: &[&str], out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut conversation = tool_loop::conversation()?;
    for question in questions {
        let mut input_message = json!({"role": "user", "content": question});
        // Lines 376-439: the tool calling loop between application and model in asynchronous mode.
        loop {
            let mut tool_calls = Vec::new();
            let mut turn = conversation.stream(input_message, TurnOptions::default())?.into_stream();
            while let Some(event) = turn.next().await {
                match event? {
                    ConversationEvent::Text(text) => write!(out, "{text}")?,
                    ConversationEvent::ToolCall(call) => tool_calls.push(call),
                    _ => {}
                }
            }
            if tool_calls.is_empty() {
                writeln!(out)?;
                break;
            }
            let result = |call: &lm_conversation::ToolCall| {
                let content = tool_loop::call_tool(&call.name, &Value::Object(call.arguments.clone()));
                json!({"role": "tool", "tool_call_id": call.id, "content": content})
            };
            input_message = tool_calls.iter().map(result).collect();
        }
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let questions = ["How is the weather in Paris?", "What is the stock price of GOOGL?"];
    futures_executor::block_on(chat(&questions, &mut std::io::stdout()))
}
