//! Anthropic's messages over HTTP.

use crate::support;
use crate::support::{Request, Response, Running};
use lm_server::{ApiKeys, ServerConfig, ServerLimits};
use serde_json::{Value, json};

fn server() -> Running {
    Running::scripted(["Hello!", "Hello!"], ServerConfig::default())
}

fn message(fields: Value) -> Request {
    let mut body = support::chat(json!({"max_tokens": 100}));
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    Request::new("POST", "/v1/messages").header("anthropic-version", "2023-06-01").body(&body)
}

/// Status and type of an error in the form of Anthropic's API.
fn error(response: &Response) -> (u16, String) {
    let object = response.json();
    assert_eq!(object["type"], "error", "{object}");
    assert!(object["error"]["message"].is_string() && object["error"].get("param").is_none(), "{object}");
    (response.status, object["error"]["type"].as_str().expect("a type").to_owned())
}

#[test]
fn streamed_message_equals_the_object() {
    let server = server();
    let response = server.send(&message(json!({"model": "fake"})));
    let object = response.json();
    assert_eq!((response.status, &object["type"]), (200, &json!("message")), "{object}");
    assert!(response.header("request-id").is_some_and(|id| id.starts_with("req_")));
    assert_eq!(object["content"], json!([{"type": "text", "text": "Hello!"}]));
    assert_eq!((&object["stop_reason"], &object["model"]), (&json!("end_turn"), &json!("fake")));

    let response = server.send(&message(json!({"stream": true})));
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    let names = response.body.lines().filter_map(|line| line.strip_prefix("event: "));
    let names: Vec<_> = names.filter(|name| *name != "content_block_delta").collect();
    let expected = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    let events: Vec<Value> =
        response.events().iter().map(|data| serde_json::from_str(data).expect("JSON")).collect();
    let text: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, "Hello!");
    let [.., delta, _] = &events[..] else { panic!("{events:?}") };
    assert_eq!(delta["usage"]["output_tokens"], object["usage"]["output_tokens"]);
}

/// The model of the test has no reasoning channel; agents ask for thinking whatever the model is.
#[test]
fn thinking_is_ignored_without_a_channel() {
    let server = Running::scripted(["Hello!"; 3], ServerConfig::default());
    for thinking in [
        json!({"type": "enabled", "budget_tokens": 1024}),
        json!({"type": "adaptive", "display": "omitted"}),
        json!({"type": "disabled"}),
    ] {
        let response = server.send(&message(json!({"thinking": thinking}))).json();
        assert_eq!(
            response["content"],
            json!([{"type": "text", "text": "Hello!"}]),
            "{thinking}: {response}"
        );
    }
    let response = server.post("/v1/chat/completions", &support::chat(json!({"max_reasoning_tokens": 9})));
    assert_eq!(response.status, 400, "a limit of OpenAI's form is not ignored");
}

#[test]
fn message_tokens_are_counted() {
    let server = server();
    let counted = server.post("/v1/messages/count_tokens", &support::chat(json!({}))).json();
    let usage = &server.send(&message(json!({}))).json()["usage"];
    assert_eq!(counted, json!({"input_tokens": usage["input_tokens"]}));
}

#[test]
fn all_errors_have_the_api_form() {
    let limits = ServerLimits { body_bytes: 1_000, ..ServerLimits::default() };
    let keys = ApiKeys::new(["secret"]).expect("a key");
    let server = Running::scripted(["Hello!"], ServerConfig { limits, keys, ..ServerConfig::default() });
    let with_key = |request: Request| server.send(&request.header("x-api-key", "secret"));
    let is = |status: u16, kind: &str| (status, kind.to_owned());
    assert_eq!(error(&server.send(&message(json!({})))), is(401, "authentication_error"));
    assert_eq!(with_key(message(json!({}))).status, 200);
    let invalid = is(400, "invalid_request_error");
    assert_eq!(error(&with_key(message(json!({"max_tokens": null})))), invalid);
    assert_eq!(error(&with_key(message(json!({})).text_body("{"))), invalid);
    assert_eq!(error(&with_key(message(json!({"model": "claude"})))), is(404, "not_found_error"));
    let thread = with_key(message(json!({"thread": {"type": "create"}})));
    assert_eq!(error(&thread), invalid);
    let details = &thread.json()["error"]["details"];
    assert_eq!(details, &json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]}));
    let large = message(json!({"system": "x".repeat(1_000)}));
    assert_eq!(error(&with_key(large)), is(413, "request_too_large"));
    let foreign = message(json!({})).header("Origin", "http://evil.com");
    assert_eq!(error(&with_key(foreign)), is(403, "permission_error"));
    let unknown = with_key(Request::new("POST", "/v1/messages/batches"));
    assert_eq!(error(&unknown), is(404, "not_found_error"));
    let wrong = with_key(Request::new("GET", "/v1/messages"));
    assert_eq!((error(&wrong), wrong.header("allow")), (is(405, "invalid_request_error"), Some("POST")));
    assert_eq!(server.send(&Request::new("GET", "/v1/messagesx")).error().0, 401, "another path");
}
