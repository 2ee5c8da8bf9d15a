//! Replies that begin with a given message, and the least length of a reply.

use crate::support::scripted;
use lm_api::{
    AnthropicRequest, ApiError, ChatEngine, ChatRequest, ChunkWriter, Limits, MessageWriter, Value,
};
use lm_session::testing::scripted_engine;
use serde_json::json;

const REST: &str = " three.";

fn engine(reply: &'static str) -> ChatEngine {
    let (engine, config) = scripted(&[reply, reply], "hermes");
    ChatEngine::new(engine, config)
}

/// A body whose last message is the beginning of a reply, with these fields added.
fn body(fields: Value) -> Value {
    let messages =
        json!([{"role": "user", "content": "Count."}, {"role": "assistant", "content": "One, two,"}]);
    let mut body = json!({"messages": messages, "max_tokens": 50, "temperature": 0});
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

fn chat(fields: Value) -> Result<ChatRequest, ApiError> {
    ChatRequest::from_json(body(fields))
}

fn whole(reply: &'static str, request: ChatRequest) -> Result<Value, ApiError> {
    engine(reply).start(request, ChunkWriter::for_request)?.wait()
}

#[test]
fn continued_final_message_returns_new_text_only() {
    let fields = json!({"continue_final_message": true, "add_generation_prompt": false, "n": 2});
    let request = chat(fields).expect("a request");
    let prompt = engine("").render(&request).expect("a prompt");
    assert!(prompt.text.ends_with("<|im_start|>assistant\nOne, two,"), "{}", prompt.text);
    let object = whole(REST, request.clone()).expect("a completion");
    for choice in object["choices"].as_array().expect("choices") {
        assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(REST), &json!("stop")));
    }
    let usage = &object["usage"];
    assert_eq!(usage["prompt_tokens"], prompt.ids.len());
    let rest = scripted_engine([""]).tokenizer().encode(REST).expect("it encodes").len();
    assert_eq!(usage["completion_tokens"], 2 * (rest + 1), "and the end of each choice");

    let frames = engine(REST).start(request, ChunkWriter::for_request).expect("it starts").frames();
    let mut texts = [String::new(), String::new()];
    for choice in frames.map(|frame| frame.expect("a frame").data["choices"][0].clone()) {
        let index = usize::from(choice["index"] == 1);
        texts[index] += choice["delta"]["content"].as_str().unwrap_or_default();
    }
    assert_eq!(texts, [REST, REST]);
}

#[test]
fn anthropic_last_assistant_message_is_prefilled() {
    let request = |fields| AnthropicRequest::message(body(fields), &Limits::default()).expect("a request");
    let start = |request| engine(REST).start(request, MessageWriter::for_request).expect("it starts");
    let message = start(request(json!({}))).wait().expect("a message");
    assert_eq!(message["content"], json!([{"type": "text", "text": REST}]));
    let counted = AnthropicRequest::count(body(json!({})), &Limits::default()).expect("a request");
    let prompt = engine("").render(&counted).expect("a prompt");
    assert_eq!(message["usage"]["input_tokens"], prompt.ids.len());
    let events = start(request(json!({"stream": true}))).frames().map(|frame| frame.expect("an event").data);
    let events: Vec<Value> = events.collect();
    assert_eq!(events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect::<String>(), REST);
    let usage =
        events.iter().find(|event| event["type"] == "message_delta").expect("a delta")["usage"].clone();
    assert_eq!(usage["output_tokens"], message["usage"]["output_tokens"]);
}

#[test]
fn invalid_continuation_names_the_field() {
    let error = |fields: Value| {
        let ran = chat(fields.clone()).and_then(|request| whole(REST, request));
        let error = ran.expect_err(&fields.to_string());
        (error.status, error.param)
    };
    let named = |param: &str| (400, Some(param.to_owned()));
    let user = json!([{"role": "user", "content": "Count."}]);
    assert_eq!(error(json!({"continue_final_message": true, "messages": user})), named("messages"));
    let both = json!({"continue_final_message": true, "add_generation_prompt": true});
    assert_eq!(error(both), named("add_generation_prompt"));
    assert_eq!(error(json!({"add_generation_prompt": false})), named("add_generation_prompt"));
    assert_eq!(error(json!({"continue_final_message": "yes"})), named("continue_final_message"));
    chat(json!({"add_generation_prompt": true, "continue_final_message": false})).expect("the default");
}

#[test]
fn min_tokens_delays_the_end() {
    let tokens = |fields: Value| {
        let object = whole("Hi", chat(fields).expect("a request")).expect("a completion");
        object["usage"]["completion_tokens"].as_u64().expect("a count")
    };
    assert_eq!(tokens(json!({})), 3, "two bytes and the end");
    for least in [4, 10, 50] {
        let count = tokens(json!({"min_tokens": least}));
        assert!(count >= least && count <= 50, "{count} tokens");
    }
    let random = json!({"min_tokens": 20, "temperature": 1.5, "seed": 1});
    assert!(tokens(random) >= 20);
    let error = chat(json!({"min_tokens": 51})).expect_err("more than max_tokens");
    assert_eq!((error.status, error.param.as_deref()), (400, Some("min_tokens")));
}
