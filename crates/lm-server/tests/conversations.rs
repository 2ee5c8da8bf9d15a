//! Conversations, lists of items, and responses in the background.

use std::time::Duration;

use crate::support::{self, Request, Running, slow_engine};
use lm_server::ServerConfig;
use lm_session::EngineSettings;
use serde_json::{Value, json};

fn server<const N: usize>(replies: [&'static str; N]) -> Running {
    Running::scripted(replies, ServerConfig::default())
}

fn post(server: &Running, path: &str, body: &Value) -> Value {
    let response = server.post(path, body);
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    response.json()
}

fn get(server: &Running, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    response.json()
}

fn id(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

/// Texts of the items of a list.
fn texts(list: &Value) -> Vec<&str> {
    let items = list["data"].as_array().expect("a list");
    items
        .iter()
        .map(|item| {
            assert_eq!((&item["type"], &item["status"]), (&json!("message"), &json!("completed")), "{item}");
            item["content"][0]["text"].as_str().expect("a text")
        })
        .collect()
}

#[test]
fn responses_continue_and_extend_a_conversation() {
    let server = server(["Hello, Ann.", "You are Ann."]);
    let first = json!({"role": "user", "content": "I am Ann."});
    let new = json!({"items": [first], "metadata": {"topic": "names"}});
    let conversation = post(&server, "/v1/conversations", &new);
    assert_eq!(
        (&conversation["object"], &conversation["metadata"]),
        (&json!("conversation"), &json!({"topic": "names"}))
    );
    let path = format!("/v1/conversations/{}", id(&conversation));
    let one = post(&server, "/v1/responses", &json!({"input": "Hi.", "conversation": conversation["id"]}));
    assert_eq!(one["conversation"], json!({"id": conversation["id"]}));
    // Not stored as a response, it is part of the conversation.
    let again = json!({"input": "Who am I?", "conversation": {"id": conversation["id"]}, "store": false});
    let two = post(&server, "/v1/responses", &again);
    let tokens = |response: &Value| response["usage"]["input_tokens"].as_u64().expect("a number");
    assert!(tokens(&two) > tokens(&one) + 10, "{one} {two}");
    assert_eq!(server.get(&format!("/v1/responses/{}", id(&two))).status, 404);

    let all = get(&server, &format!("{path}/items?order=asc"));
    assert_eq!(texts(&all), ["I am Ann.", "Hi.", "Hello, Ann.", "Who am I?", "You are Ann."]);
    let newest = get(&server, &format!("{path}/items?limit=2"));
    assert_eq!((texts(&newest), &newest["has_more"]), (vec!["You are Ann.", "Who am I?"], &json!(true)));
    let after = newest["last_id"].as_str().expect("an id");
    let older = get(&server, &format!("{path}/items?after={after}"));
    assert_eq!((texts(&older).len(), &older["has_more"]), (3, &json!(false)));
    let item = format!("{path}/items/{after}");
    assert_eq!(get(&server, &item)["content"], json!([{"type": "input_text", "text": "Who am I?"}]));
    // Without an input, the last item is answered.
    let counted = json!({"conversation": conversation["id"]});
    assert_eq!(server.post("/v1/responses/input_tokens", &counted).status, 200);

    assert_eq!(server.send(&Request::new("DELETE", &item)).status, 200);
    assert_eq!(server.get(&item).status, 404);
    let added = post(&server, &format!("{path}/items"), &json!({"items": [first, first]}));
    assert_eq!((texts(&added).len(), added["has_more"].clone()), (2, json!(false)));
    let changed = post(&server, &path, &json!({"metadata": {"topic": "other"}}));
    assert_eq!(changed["metadata"], json!({"topic": "other"}));
    assert_eq!(get(&server, &path), changed);
    assert_eq!(get(&server, &format!("{path}/items"))["data"].as_array().map(Vec::len), Some(6));

    let deleted = server.send(&Request::new("DELETE", &path)).json();
    assert_eq!((&deleted["object"], &deleted["deleted"]), (&json!("conversation.deleted"), &json!(true)));
    assert_eq!(server.get(&path).status, 404);
}

#[test]
fn faults_of_conversations_are_named() {
    let server = server(["Hello!"]);
    let conversation = post(&server, "/v1/conversations", &json!({}));
    let path = format!("/v1/conversations/{}", id(&conversation));
    let response = post(&server, "/v1/responses", &json!({"input": "Hi."}));
    let long: Vec<Value> = vec![json!({"role": "user", "content": "x"}); 100_000];
    for (path, body, status, param) in [
        ("/v1/conversations", json!({"items": [{"type": "hologram"}]}), 400, "items[0].type"),
        ("/v1/conversations", json!({"items": "x", "metadata": 3}), 400, "items"),
        ("/v1/conversations", json!({"items": long}), 400, "items"),
        ("/v1/conversations", json!({"metadata": {"a": ["x"]}}), 400, "metadata"),
        ("/v1/conversations", json!({"metadata": {"a": "x".repeat(600)}}), 400, "metadata"),
        (
            "/v1/responses",
            json!({"input": "x", "previous_response_id": conversation["id"]}),
            404,
            "previous_response_id",
        ),
        (&format!("{path}/items"), json!({}), 400, "items"),
        ("/v1/conversations/conv_none", json!({"metadata": {}}), 404, "conversation"),
        ("/v1/responses", json!({"input": "x", "conversation": "conv_none"}), 404, "conversation"),
        ("/v1/responses", json!({"input": "x", "conversation": response["id"]}), 404, "conversation"),
        ("/v1/responses", json!({"input": "x", "conversation": 5}), 400, "conversation"),
        (
            "/v1/responses",
            json!({"input": "x", "conversation": conversation["id"], "previous_response_id": response["id"]}),
            400,
            "conversation",
        ),
    ] {
        let answer = server.post(path, &body);
        assert_eq!(answer.status, status, "{path} {}", answer.body);
        assert_eq!(answer.json()["error"]["param"], param, "{path} {}", answer.body);
    }
    // Two of them do not fit one conversation, which stays as it is.
    let large = json!({"items": [{"role": "user", "content": "x".repeat(9 << 20)}]});
    let large_conversation = post(&server, "/v1/conversations", &large);
    let items = format!("/v1/conversations/{}/items", id(&large_conversation));
    let refused = server.post(&items, &large);
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("items")));
    assert_eq!(get(&server, &items)["data"].as_array().map(Vec::len), Some(1));
    for query in ["limit=0", "limit=101", "limit=x", "order=up", "after=item_none"] {
        let answer = server.get(&format!("{path}/items?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        assert!(query.starts_with(answer.json()["error"]["param"].as_str().expect("a name")), "{query}");
    }
    assert_eq!(server.get(&format!("/v1/conversations/{}", id(&response))).status, 404);
    assert_eq!(server.get(&format!("/v1/responses/{}", id(&conversation))).status, 404);
}

#[test]
fn items_before_a_response_are_listed() {
    let server = server(["Hello!", "Bye!"]);
    let one = post(&server, "/v1/responses", &json!({"input": "Hi."}));
    let two = json!({"input": [{"role": "user", "content": "Bye."}], "previous_response_id": one["id"]});
    let two = post(&server, "/v1/responses", &two);
    let list =
        |response: &Value| get(&server, &format!("/v1/responses/{}/input_items?order=asc", id(response)));
    assert_eq!(texts(&list(&one)), ["Hi."]);
    assert_eq!(texts(&list(&two)), ["Hi.", "Hello!", "Bye."]);
    let ids: Vec<Value> =
        list(&two)["data"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids[..1], [list(&one)["data"][0]["id"].clone()]);
    assert!(ids.iter().all(Value::is_string));
    // An item can be sent back by its id.
    let referred = json!({"input": [{"type": "item_reference", "id": ids[2]}]});
    let counted = post(&server, "/v1/responses/input_tokens", &referred);
    let spelled = post(&server, "/v1/responses/input_tokens", &json!({"input": "Bye."}));
    assert_eq!(counted, spelled);
    assert_eq!(spelled["object"], "response.input_tokens");
    assert!(spelled["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    assert_eq!(server.get("/v1/responses/resp_none/input_items").status, 404);
}

#[test]
fn background_response_is_polled_to_its_end() {
    let server = server(["Hello!"]);
    let begun = post(&server, "/v1/responses", &json!({"input": "Hi.", "background": true}));
    assert_eq!((&begun["status"], &begun["background"]), (&json!("in_progress"), &json!(true)));
    let path = format!("/v1/responses/{}", id(&begun));
    assert_eq!(texts(&get(&server, &format!("{path}/input_items"))), ["Hi."]);
    support::wait_until(|| get(&server, &path)["status"] != "in_progress", "the response ends");
    let ended = get(&server, &path);
    assert_eq!((&ended["status"], &ended["id"]), (&json!("completed"), &begun["id"]));
    assert_eq!(ended["output"][0]["content"][0]["text"], "Hello!");
    // It has ended, and stays so.
    let cancelled = post(&server, &format!("{path}/cancel"), &json!({}));
    assert_eq!(cancelled, ended);
    let refused = server.post("/v1/responses", &json!({"input": "Hi.", "background": true, "store": false}));
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("background")));
    let foreground = post(&server, "/v1/responses", &json!({"input": "Hi.", "max_output_tokens": 1}));
    let refused = server.post(&format!("/v1/responses/{}/cancel", id(&foreground)), &json!({}));
    assert_eq!(refused.status, 400, "{}", refused.body);
}

#[test]
fn background_response_is_cancelled() {
    let (engine, passes) = slow_engine(Duration::from_millis(20), EngineSettings::default());
    let server = Running::start(engine, ServerConfig::default());
    let begin = || post(&server, "/v1/responses", &json!({"input": "Hi.", "background": true}));
    for delete in [false, true] {
        let begun = begin();
        let path = format!("/v1/responses/{}", id(&begun));
        let before = passes.count();
        support::wait_until(|| passes.count() > before + 2, "it runs without a connection");
        let next = json!({"input": "And?", "previous_response_id": begun["id"]});
        let refused = server.post("/v1/responses", &next);
        assert_eq!(
            (refused.status, &refused.json()["error"]["param"]),
            (400, &json!("previous_response_id"))
        );
        if delete {
            assert_eq!(server.send(&Request::new("DELETE", &path)).status, 200);
            assert_eq!(server.get(&path).status, 404);
        } else {
            let cancelled = post(&server, &format!("{path}/cancel"), &json!({}));
            assert_eq!(cancelled["status"], "cancelled");
        }
        if !delete {
            let next = json!({"input": "And?", "previous_response_id": begun["id"]});
            assert_eq!(server.post("/v1/responses/input_tokens", &next).status, 200, "its input stays");
        }
        passes.wait_for_silence();
        let state = server.get(&path);
        match delete {
            true => assert_eq!(state.status, 404),
            false => assert_eq!(state.json()["status"], "cancelled"),
        }
    }
}
