//! `/v1/responses/compact`: a conversation as its user's messages and a summary.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lm_server::ServerConfig;
use serde_json::{Value, json};

use crate::support::Running;

const SUMMARY: &str = "Ann likes tea; the kettle is on.";

fn items() -> Value {
    json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "I am Ann."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "A name."}]},
        {"type": "function_call", "call_id": "c1", "name": "boil", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "on"},
        {"role": "assistant", "content": "The kettle is on, Ann."},
        {"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
        {"role": "assistant", "content": "You are welcome."},
    ])
}

fn compact(server: &Running, body: &Value) -> Value {
    let response = server.post("/v1/responses/compact", body);
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()
}

#[test]
fn output_is_the_users_messages_and_a_summary() {
    let server = Running::scripted([SUMMARY, "Yes."], ServerConfig::default());
    let compacted = compact(&server, &json!({"model": null, "input": items(), "instructions": "Be kind."}));
    assert_eq!(compacted["object"], "response.compaction");
    assert!(compacted["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let [first, second, summary] = &compacted["output"].as_array().expect("items")[..] else {
        panic!("{compacted}")
    };
    for (item, text) in [(first, "I am Ann."), (second, "Thanks.")] {
        assert_eq!((&item["type"], &item["role"]), (&json!("message"), &json!("user")));
        assert_eq!(item["content"], json!([{"type": "input_text", "text": text}]));
        assert!(item["id"].is_string());
    }
    assert_eq!(summary["type"], "compaction");
    // The item continues the conversation: the model reads the summary.
    let mut input = compacted["output"].as_array().expect("items").clone();
    input.push(json!({"role": "user", "content": "Is it on?"}));
    let response = server.post("/v1/responses", &json!({"input": input}));
    assert_eq!(response.header("x-input-left-out"), None);
    assert_eq!(response.json()["output"][0]["content"][0]["text"], "Yes.");
    let spelled = json!([
        {"role": "user", "content": "I am Ann."}, {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": format!("Summary of the conversation up to here:\n\n{SUMMARY}")},
        {"role": "user", "content": "Is it on?"},
    ]);
    let tokens = |input: &Value| server.post("/v1/responses/input_tokens", &json!({"input": input})).json();
    assert_eq!(tokens(&input.into()), tokens(&spelled));
}

#[test]
fn compactions_are_compacted_again() {
    let server = Running::scripted(["First.", "Second."], ServerConfig::default());
    let first = compact(&server, &json!({"input": items()}));
    let mut input = first["output"].as_array().expect("items").clone();
    input.push(json!({"role": "user", "content": "More."}));
    let second = compact(&server, &json!({"input": input}));
    let output = second["output"].as_array().expect("items");
    let kinds: Vec<&str> = output.iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["message", "message", "message", "compaction"]);
    let content = output[3]["encrypted_content"].as_str().expect("a text");
    let summary = STANDARD.decode(content.split_once(':').expect("a prefix").1).expect("base64");
    assert_eq!(summary, b"Second.");
}

#[test]
fn foreign_and_damaged_items_are_left_out() {
    let server = Running::scripted(["Hello!"; 3], ServerConfig::default());
    for content in ["gAAAAABpM0Yj", "lm-summary-1:%%", "lm-summary-1:/w=="] {
        let input =
            json!([{"type": "compaction", "encrypted_content": content}, {"role": "user", "content": "Hi."}]);
        let response = server.post("/v1/responses", &json!({"input": input}));
        assert_eq!((response.status, response.header("x-input-left-out")), (200, Some("compaction")));
    }
}

#[test]
fn errors_name_fields() {
    let server = Running::scripted([], ServerConfig::default());
    for (body, status, param) in [
        (json!({}), 400, "input"),
        (json!({"input": 1}), 400, "input"),
        (json!({"input": [{"type": "poem"}]}), 400, "input[0].type"),
        (json!({"previous_response_id": "resp_none"}), 404, "previous_response_id"),
    ] {
        let response = server.post("/v1/responses/compact", &body);
        assert_eq!((response.status, &response.json()["error"]["param"]), (status, &json!(param)), "{body}");
    }
}
