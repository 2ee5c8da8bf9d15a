//! Streams of responses in the background, which clients leave and resume.

use std::time::Duration;

use crate::support::{self, Request, Running, slow_engine};
use lm_server::ServerConfig;
use lm_session::EngineSettings;
use serde_json::{Value, json};

fn body() -> Value {
    json!({"input": "Hi.", "background": true, "stream": true})
}

/// Data of the events of a stream.
fn data(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["sequence_number"].as_u64().expect("a number")).collect()
}

#[test]
fn ended_stream_is_sent_again_from_any_event() {
    let server = Running::scripted(["Hello there!"], ServerConfig::default());
    let first = data(&server.post("/v1/responses", &body()).body);
    let last = first.last().expect("events");
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.completed"), &json!("completed"))
    );
    let path = format!("/v1/responses/{}", last["response"]["id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).json(), last["response"]);
    let again = |query: &str| {
        let response = server.get(&format!("{path}?{query}"));
        assert_eq!(response.status, 200, "{}", response.body);
        assert!(response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")));
        data(&response.body)
    };
    assert_eq!(again("stream=true"), first);
    assert_eq!(again("stream=true&starting_after=2"), first[3..]);
    assert_eq!(again(&format!("stream=true&starting_after={}", first.len() - 1)), [] as [Value; 0]);
    for after in ["-1", "x", "", "99999999999999999999999"] {
        let refused = server.get(&format!("{path}?stream=true&starting_after={after}"));
        let error = refused.json();
        assert_eq!((refused.status, &error["error"]["param"]), (400, &json!("starting_after")), "{after}");
    }
    assert_eq!(server.send(&Request::new("DELETE", &path)).status, 200);
    assert_eq!(server.get(&format!("{path}?stream=true")).status, 404);
}

#[test]
fn client_that_leaves_resumes_a_running_stream() {
    let (engine, passes) = slow_engine(Duration::from_millis(20), EngineSettings::default());
    let server = Running::start(engine, ServerConfig::default());
    let mut request = body();
    request["max_output_tokens"] = 30.into();
    let mut client = server.open(&Request::new("POST", "/v1/responses").body(&request));
    assert_eq!(client.head().0, 200);
    let created = client.event("data: ");
    let created: Value = serde_json::from_str(created.trim_start_matches("data: ")).expect("JSON");
    client.event("data: ");
    drop(client);
    let path = format!("/v1/responses/{}", created["response"]["id"].as_str().expect("an id"));
    let before = passes.count();
    support::wait_until(|| passes.count() > before + 2, "it runs without a reader");
    let rest = data(&server.get(&format!("{path}?stream=true&starting_after=1")).body);
    assert_eq!(numbers(&rest), (2..rest.len() as u64 + 2).collect::<Vec<_>>());
    let response = &rest.last().expect("events")["response"];
    assert_eq!(response["usage"]["output_tokens"], 30);
    assert_eq!(&server.get(&path).json(), response);
    let whole = data(&server.get(&format!("{path}?stream=true")).body);
    assert_eq!(whole[2..], rest);
}

#[test]
fn cancelled_stream_ends_with_its_state() {
    let (engine, passes) = slow_engine(Duration::from_millis(20), EngineSettings::default());
    let server = Running::start(engine, ServerConfig::default());
    let mut client = server.open(&Request::new("POST", "/v1/responses").body(&body()));
    assert_eq!(client.head().0, 200);
    let created = client.event("data: ");
    let created: Value = serde_json::from_str(created.trim_start_matches("data: ")).expect("JSON");
    let path = format!("/v1/responses/{}", created["response"]["id"].as_str().expect("an id"));
    let cancelled = server.post(&format!("{path}/cancel"), &json!({})).json();
    assert_eq!(cancelled["status"], "cancelled");
    let rest = client.rest();
    assert!(!rest.contains("event: error") && rest.contains("event: response.incomplete"), "{rest}");
    let again = data(&server.get(&format!("{path}?stream=true")).body);
    assert_eq!(numbers(&again), (0..again.len() as u64).collect::<Vec<_>>());
    let last = again.last().expect("events");
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.incomplete"), &json!("cancelled"))
    );
    passes.wait_for_silence();
    assert_eq!(server.get(&path).json()["status"], "cancelled");
}

#[test]
fn events_of_other_responses_are_not_kept() {
    let server = Running::scripted(["Hello!"; 2], ServerConfig::default());
    for body in [json!({"input": "Hi."}), json!({"input": "Hi.", "background": true})] {
        let response = server.post("/v1/responses", &body).json();
        let path = format!("/v1/responses/{}", response["id"].as_str().expect("an id"));
        let refused = server.get(&format!("{path}?stream=true"));
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("stream")));
    }
}
