//! Anthropic's messages: requests, and responses of scripted replies, compared with the committed vectors.
//!
//! `validate.py` parses the vectors with the types of Anthropic's Python client.

use crate::support::{CALLS, check, scripted, with_counted_ids};
use lm_api::{
    AnthropicRequest, ApiError, ChatCompletions, ChatEngine, ChatRequest, Limits, MessageWriter, ToolChoice,
    Value,
};
use lm_conversation::{Calls, Role, ThinkingMode};
use lm_template::{Media, Part};
use serde_json::json;

const THOUGHT: &str = "<think>\nA greeting.\n</think>\nHello, Zürich!";

fn body(fields: Value) -> Value {
    let location = json!({"type": "object", "properties": {"location": {"type": "string"}}});
    let mut body = json!({
        "model": "scripted",
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [
            {"name": "get_weather", "description": "Weather of a place.", "input_schema": location},
            {"type": "custom", "name": "now", "description": "The time.", "input_schema": {"type": "object"}},
        ],
    });
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

fn read(fields: Value) -> Result<ChatRequest, ApiError> {
    AnthropicRequest::message(body(fields), &Limits::default())
}

fn chat(reply: &'static str) -> ChatEngine {
    let (engine, config) = scripted(&[reply], "hermes");
    ChatEngine::new(engine, config)
}

fn start(reply: &'static str, fields: Value) -> lm_api::Running<MessageWriter> {
    chat(reply).start(read(fields).expect("a request"), MessageWriter::for_request).expect("it starts")
}

fn whole(reply: &'static str, fields: Value) -> Value {
    let mut message = start(reply, fields).wait().expect("a message");
    message["id"] = "msg_1".into();
    message
}

fn events(reply: &'static str, fields: Value) -> Vec<Value> {
    let frames = start(reply, fields).frames().map(|frame| {
        let mut frame = frame.expect("an event");
        assert_eq!(frame.event, frame.data["type"].as_str());
        if frame.event == Some("message_start") {
            frame.data["message"]["id"] = "msg_1".into();
        }
        frame.data
    });
    frames.collect()
}

#[test]
fn messages_equal_the_vectors() {
    check("message_text.json", &whole("Hello, Zürich!", json!({})));
    check("message_thinking.json", &whole(THOUGHT, json!({})));
    check("message_calls.json", &whole(CALLS, json!({})));
    check("message_max_tokens.json", &whole("Hello, Zürich!", json!({"max_tokens": 5})));
    check("message_stop.json", &whole("Hello, Zürich!", json!({"stop_sequences": ["Zü", "x"]})));
}

#[test]
fn events_equal_the_vectors() {
    check("events_thinking.json", &events(THOUGHT, json!({"stream": true})).into());
    check("events_calls.json", &events(CALLS, json!({"stream": true})).into());
}

#[test]
fn stream_adds_up_to_the_message() {
    let stops = json!({"stop_sequences": ["Zü"]});
    for (reply, fields) in [
        ("Hello, Zürich!", json!({})),
        ("Hello, Zürich!", stops),
        (THOUGHT, json!({})),
        (CALLS, json!({})),
        (CALLS, json!({"tool_choice": {"type": "any", "disable_parallel_tool_use": true}})),
    ] {
        let expected = whole(reply, fields.clone());
        let events = events(reply, fields);
        let mut message = events[0]["message"].clone();
        let (mut blocks, mut json) = (Vec::<Value>::new(), String::new());
        for event in &events[1..] {
            if let Some(index) = event.get("index") {
                let begins = event["type"] == "content_block_start";
                assert_eq!(*index, blocks.len() - usize::from(!begins), "one block after another: {event}");
            }
            match event["type"].as_str().expect("a type") {
                "content_block_start" => blocks.push(event["content_block"].clone()),
                "content_block_delta" => {
                    let (delta, block) = (&event["delta"], blocks.last_mut().expect("a block"));
                    for (kind, field) in [("text_delta", "text"), ("thinking_delta", "thinking")] {
                        if delta["type"] == kind {
                            let text = block[field].as_str().expect("text").to_owned();
                            block[field] = (text + delta[field].as_str().expect("text")).into();
                        }
                    }
                    json += delta["partial_json"].as_str().unwrap_or_default();
                }
                "content_block_stop" => {
                    let block = blocks.last_mut().expect("a block");
                    if block["type"] == "tool_use" {
                        block["input"] = serde_json::from_str(&std::mem::take(&mut json)).expect("JSON");
                    }
                }
                "message_delta" => {
                    for field in ["stop_reason", "stop_sequence"] {
                        message[field] = event["delta"][field].clone();
                    }
                    message["usage"] = event["usage"].clone();
                }
                other => assert!(["ping", "message_stop"].contains(&other), "{other}"),
            }
        }
        message["content"] = blocks.into();
        assert_eq!(with_counted_ids(&message), with_counted_ids(&expected), "{reply}");
        assert_eq!(events.last().expect("events")["type"], "message_stop");
    }
}

#[test]
fn cancelled_stream_ends_with_an_error_event() {
    let long: &'static str = "and ".repeat(1_000).leak();
    let frames = start(long, json!({"max_tokens": 2_000})).frames();
    frames.canceller().cancel();
    let failed = frames.last().expect("an item").expect_err("cancelled");
    assert_eq!((failed.frame.event, &failed.frame.data["type"]), (Some("error"), &json!("error")));
    assert_eq!(failed.frame.data["error"]["type"], "api_error");
}

#[test]
fn prompt_and_reply_equal_chat_completions() {
    let call = json!({"location": "Zürich"});
    let anthropic = read(json!({
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "How is the weather?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Ask.", "signature": "x"},
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "a", "name": "get_weather", "input": call},
                {"type": "tool_use", "id": "b", "name": "now", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "Rain."}]},
                {"type": "tool_result", "tool_use_id": "b", "content": "Noon."},
                {"type": "text", "text": "And?"},
            ]},
        ],
    }));
    let function = |id: &str, name: &str, arguments: &Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let tool = |tool: &Value| {
        let (name, parameters) = (&tool["name"], &tool["input_schema"]);
        let function = json!({"name": name, "description": tool["description"], "parameters": parameters});
        json!({"type": "function", "function": function})
    };
    let tools: Vec<Value> = body(json!({}))["tools"].as_array().expect("tools").iter().map(tool).collect();
    let openai = ChatRequest::from_json(json!({
        "model": "scripted",
        "max_tokens": 200,
        "tools": tools,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How is the weather?"},
            {"role": "assistant", "content": "One moment.", "reasoning_content": "Ask.", "tool_calls": [
                function("a", "get_weather", &call), function("b", "now", &json!({})),
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "Rain."},
            {"role": "tool", "tool_call_id": "b", "content": "Noon."},
            {"role": "user", "content": "And?"},
        ],
    }));
    let (anthropic, openai) = (anthropic.expect("a request"), openai.expect("a request"));
    let prompt = |request: &ChatRequest| chat("It rains.").render(request).expect("a prompt");
    assert_eq!(prompt(&anthropic).text, prompt(&openai).text);
    assert_eq!(prompt(&anthropic).ids, prompt(&openai).ids);
    assert_eq!(anthropic.preface.messages[2].reasoning_content, openai.preface.messages[2].reasoning_content);

    let message = chat("It rains.").start(anthropic, MessageWriter::for_request).expect("it starts");
    let message = message.wait().expect("a message");
    let (engine, config) = scripted(&["It rains."], "hermes");
    let completion = ChatCompletions::new(engine, config).complete(openai).expect("a completion");
    assert_eq!(message["content"][0]["text"], completion["choices"][0]["message"]["content"]);
    let (usage, expected) = (&message["usage"], &completion["usage"]);
    assert_eq!(usage["input_tokens"], expected["prompt_tokens"]);
    assert_eq!(usage["output_tokens"], expected["completion_tokens"]);
}

#[test]
fn fields_reach_the_turn() {
    let request = read(json!({
        "tool_choice": {"type": "tool", "name": "now", "disable_parallel_tool_use": true},
        "stop_sequences": ["a", "b"], "temperature": 0.5, "top_p": 0.9, "top_k": 4,
        "thinking": {"type": "enabled", "budget_tokens": 64},
        "metadata": {"user_id": "x"}, "service_tier": "auto",
    }));
    let request = request.expect("a request");
    assert_eq!(request.turn.tool_choice, ToolChoice::Named("now".to_owned()));
    assert_eq!((request.turn.calls, request.stop.len()), (Calls::One, 2));
    let sampling = &request.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k), (Some(0.5), Some(0.9), Some(4)));
    assert_eq!((request.turn.thinking.mode, request.turn.thinking.max_tokens), (ThinkingMode::On, Some(64)));
    assert_eq!((request.max_output_tokens, request.stream.is_some()), (Some(("max_tokens", 200)), false));
    for (choice, expected) in
        [("auto", ToolChoice::Auto), ("any", ToolChoice::Required), ("none", ToolChoice::None)]
    {
        let request = read(json!({"tool_choice": {"type": choice}})).expect("a request");
        assert_eq!((request.turn.tool_choice, request.turn.calls), (expected, Calls::Several));
    }
    for (kind, expected) in [("disabled", ThinkingMode::Off), ("adaptive", ThinkingMode::Default)] {
        let request = read(json!({"thinking": {"type": kind}})).expect("a request");
        assert_eq!(request.turn.thinking.mode, expected);
    }
}

#[test]
fn failed_and_empty_tool_results_reach_the_prompt() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "now", "input": {}});
    let failed = |content: Value| json!({"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": true});
    let request = read(json!({"messages": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [call("a")]},
        {"role": "user", "content": [
            failed(json!("no clock")),
            failed(json!([])),
            {"type": "tool_result", "tool_use_id": "b"},
        ]},
    ]}));
    let request = request.expect("a request");
    let results = request.preface.messages[2..].iter().chain([&request.last]);
    let results: Vec<_> = results.map(|it| (it.role == Role::Tool, it.content.text())).collect();
    let expected = ["error: no clock", "error: ", ""].map(|text| (true, text.to_owned()));
    assert_eq!(results, expected);
}

#[test]
fn text_and_tool_results_keep_their_order() {
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "Noon."});
    let text = |text: &str| json!({"type": "text", "text": text});
    let content = json!([text("The time:"), result, text("And"), text("now?")]);
    let request = read(json!({"messages": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "now", "input": {}}]},
        {"role": "user", "content": content},
    ]}));
    let request = request.expect("a request");
    let read: Vec<_> =
        request.preface.messages[2..].iter().chain([&request.last]).map(|it| it.role.clone()).collect();
    assert_eq!(read, [Role::User, Role::Tool, Role::User]);
    assert_eq!(request.preface.messages[2].content.text(), "The time:");
}

#[test]
fn invalid_field_is_named() {
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let image =
        json!([{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "url": "x"}}]);
    for (fields, param) in [
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": null}), "messages"),
        (json!({"messages": [1]}), "messages[0]"),
        (json!({"messages": [{"role": "tool", "content": "a"}]}), "messages[0].role"),
        (user(json!(1)), "messages[0].content"),
        (user(json!([{"text": "a"}])), "messages[0].content[0].type"),
        (user(json!([{"type": "text"}])), "messages[0].content[0].text"),
        (user(image), "messages[0].content[1].source.type"),
        (
            user(json!([{"type": "image", "source": {"type": "base64", "data": "%"}}])),
            "messages[0].content[0].source.data",
        ),
        (user(json!([{"type": "image"}])), "messages[0].content[0].source.type"),
        (
            user(json!([{"type": "input_audio", "input_audio": {"data": "UklG"}}])),
            "messages[0].content[0].type",
        ),
        (user(json!([{"type": "document"}])), "messages[0].content[0].source.type"),
        (user(json!([{"type": "tool_use", "id": "a", "name": "b"}])), "messages[0].content[0].type"),
        (user(json!([{"type": "tool_result"}])), "messages[0].content[0].tool_use_id"),
        (json!({"system": [{"type": "image"}]}), "system[0].type"),
        (
            json!({"tools": [{"type": "bash_20250124", "name": "bash"}], "tool_choice": {"type": "tool", "name": "bash"}}),
            "tool_choice",
        ),
        (json!({"max_tokens": -2}), "max_tokens"),
        (json!({"tools": [{"name": "a", "input_schema": 1}]}), "tools[0].input_schema"),
        (json!({"tools": [{"name": "a"}, {"name": "a"}]}), "tools[1].name"),
        (json!({"tool_choice": {"type": "tool", "name": "unknown"}}), "tool_choice"),
        (json!({"tool_choice": {"type": "required"}}), "tool_choice"),
        (
            json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}}),
            "tool_choice.disable_parallel_tool_use",
        ),
        (json!({"thinking": {"type": "on"}}), "thinking"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": -1}}), "thinking.budget_tokens"),
        (json!({"stop_sequences": [""]}), "stop_sequences"),
        (json!({"stop_sequences": vec!["a"; 17]}), "stop_sequences"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"output_config": {"format": {"type": "xml"}}}), "output_config.format"),
        (json!({"output_format": {"type": "xml"}}), "output_format"),
    ] {
        let error = read(fields.clone()).expect_err("is invalid");
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{fields}: {error}");
    }
}

#[test]
fn token_count_needs_no_max_tokens() {
    let mut body = body(json!({}));
    body.as_object_mut().expect("an object").remove("max_tokens");
    let request = AnthropicRequest::count(body, &Limits::default()).expect("a request");
    let count = chat("x").render(&request).expect("a prompt").ids.len();
    assert_eq!(whole("x", json!({}))["usage"]["input_tokens"], count);
}

#[test]
fn images_are_read_in_messages_and_results() {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}});
    let result = json!({"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": [image]});
    let request = read(json!({"messages": [
        {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}, result]},
    ]}));
    let request = request.expect("a request");
    let image = Part::Image(Media::from_bytes(*b"\x89PN"));
    let user = &request.preface.messages[0];
    assert_eq!(user.content.parts(), [image.clone(), Part::Text("What is it?".to_owned())]);
    assert_eq!(request.last.content.parts(), [Part::Text("error: ".to_owned()), image]);
}

#[test]
fn images_are_counted() {
    let block =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}});
    let limits = Limits { media: 2, ..Limits::default() };
    let read = |count: usize| {
        let messages = json!([{"role": "user", "content": vec![block.clone(); count]}]);
        AnthropicRequest::message(body(json!({"messages": messages})), &limits)
    };
    assert!(read(2).is_ok());
    assert_eq!(read(3).expect_err("too many").param.as_deref(), Some("messages"));
}
