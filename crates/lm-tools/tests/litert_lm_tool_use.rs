//! The flows of LiteRT-LM's page on tool use: declaration, call, execution, response, the loop, and its
//! stream.

use crate::common;
use crate::common::{PARIS_SENTENCE, litert_tools, paris_report};
use lm_conversation::{ConversationEvent, TurnOptions};
use lm_template::{Map, Message, ToolSpec};
use lm_tools::{Agent, ToolCall, Toolset, demo};
use serde_json::{Value, json};

fn user_message() -> Value {
    json!({
      "role": "user",
      "content": {
        "type": "text",
        "text": "How is the weather in Paris?"
      }
    })
}

fn paris_call() -> Value {
    json!({"type": "function", "function": {"name": "get_weather", "arguments": {"location": "Paris"}}})
}

/// A call as on the page: without an id.
fn without_id(call: &ToolCall) -> Value {
    ToolCall::new(call.name.as_str(), call.arguments.clone()).to_json()
}

/// The page's class `Tools`, with its example results instead of random ones.
fn page_tools() -> Toolset {
    let specs: Vec<ToolSpec> = serde_json::from_value(litert_tools()).expect("two declarations");
    let [weather, price] = <[ToolSpec; 2]>::try_from(specs).expect("two declarations");
    let get_weather = |arguments: Map<String, Value>| {
        let mut report = paris_report();
        report["location"] = arguments["location"].clone();
        Ok(report)
    };
    let get_stock_price = |arguments: Map<String, Value>| {
        let symbol = arguments["stock_symbol"].clone();
        Ok(
            json!({"tool_name": "get_stock_price", "stock_symbol": symbol, "price": 173.25, "currency": "USD"}),
        )
    };
    let tools = Toolset::new().with_fn(weather, get_weather);
    tools.and_then(|tools| tools.with_fn(price, get_stock_price)).expect("two tools")
}

#[test]
fn demo_tools_are_declared_as_on_the_page() {
    let demo: Vec<Value> = demo().specs().iter().map(|spec| spec.to_json()["function"].clone()).collect();
    assert_eq!(Value::from(&demo[..2]).to_string(), litert_tools().to_string());
}

#[test]
fn demo_weather_in_paris_equals_the_page() {
    let call = ToolCall::from_json(paris_call()).expect("a call");
    let content = demo().call(&call).to_json()["content"].clone();
    assert_eq!(content.to_string(), paris_report().to_string());
}

#[test]
fn question_yields_a_call_and_its_result_a_sentence() {
    let mut conversation = common::conversation(common::tools(litert_tools()));
    let model_message = conversation.send(user_message()).expect("a call").to_json();
    assert_eq!(model_message.get("content"), None, "a call and nothing else, as on the page");
    let calls = model_message["tool_calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["type"], "function");
    assert_eq!(calls[0]["function"], paris_call()["function"]);

    let tool_message = json!({"role": "tool", "content": paris_report()});
    let reply = conversation.send(tool_message).expect("an answer");
    assert_eq!(reply.message.tool_calls, []);
    assert_eq!(reply.to_json()["content"], json!([{"type": "text", "text": PARIS_SENTENCE}]));
}

#[test]
fn chat_loop_runs_over_two_questions() {
    let tools = page_tools();
    let mut conversation = common::conversation(common::tools(litert_tools()));
    for (input_prompt, answer) in [
        ("How is the weather in Paris?", PARIS_SENTENCE),
        ("What is the stock price of GOOGL?", "The stock price of GOOGL is 173.25 USD."),
    ] {
        let mut input = json!({"role": "user", "content": [{"type": "text", "text": input_prompt}]});
        let text = loop {
            let message = conversation.send(input).expect("a reply").message;
            if message.tool_calls.is_empty() {
                break message.content.text();
            }
            let results = message.tool_calls.iter().map(|call| tools.call(call).to_json());
            input = Value::Array(results.collect());
        };
        assert_eq!(text, answer);
    }
}

#[test]
fn streamed_loop_yields_whole_calls_and_text_chunks() {
    let tools = page_tools();
    let mut conversation = common::conversation(common::tools(litert_tools()));
    let (mut said, mut called) = (String::new(), Vec::new());
    let mut input = vec![Message::from_json(user_message()).expect("a message")];
    loop {
        let mut tool_calls: Vec<ToolCall> = Vec::new();
        let stream = conversation.stream(std::mem::take(&mut input), TurnOptions::default());
        for event in stream.expect("a stream") {
            match event.expect("an event") {
                ConversationEvent::Text(text) => said += &text,
                ConversationEvent::ToolCall(call) => tool_calls.push(call),
                _ => {}
            }
        }
        if tool_calls.is_empty() {
            break;
        }
        input.extend(tool_calls.iter().map(|call| tools.call(call)));
        called.extend(tool_calls.iter().map(without_id));
    }
    assert_eq!(called, [paris_call()]);
    assert_eq!(said, PARIS_SENTENCE);
}

#[test]
fn unknown_tool_answer_equals_the_page() {
    let call = ToolCall::new("get_humidity", Map::new());
    let content = page_tools().call(&call).to_json()["content"].clone();
    assert_eq!(content.to_string(), r#"{"tool_name":"get_humidity","error":"Tool not found"}"#);
}

#[test]
fn demo_agent_answers_both_questions_of_the_page() {
    let mut agent = Agent::builder(common::engine(), demo()).build().expect("an agent");
    let reply = agent.run("How is the weather in Paris?").expect("an answer");
    assert_eq!(reply.message.content.text(), PARIS_SENTENCE);
    assert_eq!(without_id(&reply.steps[0].call), paris_call());
    let reply = agent.run("What is the stock price of GOOGL?").expect("an answer");
    assert_eq!(reply.message.content.text(), "The stock price of GOOGL is 173.25 USD.");
}
