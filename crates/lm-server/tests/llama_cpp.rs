//! Paths of llama.cpp's server over HTTP, and contents that are left out of requests.

use crate::support::{Running, chat};
use lm_server::ServerConfig;
use serde_json::{Value, json};

fn server() -> Running {
    Running::scripted(["Hello!"; 4], ServerConfig { parallel: 3, ..ServerConfig::default() })
}

#[test]
fn properties_show_the_model_and_its_defaults() {
    let server = server();
    let props = server.get("/props").json();
    let model = server.get("/v1/models/fake").json();
    let settings = &props["default_generation_settings"];
    assert_eq!((&settings["n_ctx"], &props["total_slots"]), (&model["max_model_len"], &json!(3)));
    assert_eq!((&props["model_path"], &props["infill"]), (&json!("fake"), &json!(false)));
    assert_eq!(props["modalities"], json!({"vision": false, "audio": false}));
    assert!(settings["params"]["temperature"].is_number() && props["chat_template"].is_string(), "{props}");

    let slots = server.get("/slots").json();
    let ids: Vec<_> = slots.as_array().expect("slots").iter().map(|slot| &slot["id"]).collect();
    assert_eq!(ids, [0, 1, 2]);
    assert!(slots.as_array().expect("slots").iter().all(|slot| slot["is_processing"] == false));
    assert_eq!(server.get("/v1/health").json(), server.get("/health").json());
}

#[test]
fn infill_continues_a_prefix_and_refuses_a_suffix_without_tokens_for_it() {
    let server = server();
    let object = server.post("/infill", &json!({"input_prefix": "Hi", "prompt": " there"})).json();
    assert_eq!((&object["content"], &object["stop"]), (&json!("Hello!"), &json!(true)));
    let response = server.post("/infill", &json!({"input_prefix": "Hi", "stream": true}));
    let pieces = response.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let pieces: Vec<Value> = pieces.map(|piece| serde_json::from_str(piece).expect("JSON")).collect();
    let text: String = pieces.iter().filter_map(|piece| piece["content"].as_str()).collect();
    assert_eq!((text.as_str(), &pieces.last().expect("pieces")["stop"]), ("Hello!", &json!(true)));
    for (path, body) in [
        ("/infill", json!({"input_prefix": "Hi", "input_suffix": "there"})),
        ("/v1/completions", json!({"prompt": "Hi", "suffix": "there"})),
        ("/api/generate", json!({"prompt": "Hi", "suffix": "there"})),
    ] {
        let response = server.post(path, &body);
        assert_eq!(response.status, 400, "{path}");
        assert!(response.body.contains("suffix"), "{}", response.body);
    }
    let raw = server.post("/api/generate", &json!({"prompt": "Hi", "raw": true, "stream": false})).json();
    assert_eq!(raw["response"], "Hello!");
}

#[test]
fn contents_that_are_left_out_are_named_in_a_header() {
    let server = server();
    let input = json!([{"type": "compaction", "encrypted_content": "x"}, {"role": "user", "content": "Hi"}]);
    let response = server.post("/v1/responses", &json!({"input": input}));
    assert_eq!((response.status, response.header("x-input-left-out")), (200, Some("compaction")));
    let thought = json!([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Yes."}]);
    let messages = json!([
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": thought}, {"role": "user", "content": "So?"},
    ]);
    let response = server.post("/v1/messages", &json!({"messages": messages, "max_tokens": 9}));
    assert_eq!((response.status, response.header("x-input-left-out")), (200, Some("redacted_thinking")));
    let response = server.post("/v1/chat/completions", &chat(json!({})));
    assert_eq!((response.status, response.header("x-input-left-out")), (200, None));
}
