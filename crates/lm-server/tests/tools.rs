//! Tools that the server runs for its clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Request, Running};
use lm_server::{ApiKeys, ServedTools, ServerConfig, ServerLimits};
use lm_tools::{CallContext, Map, ToolSpec, Toolset, demo};
use serde_json::{Value, json};

fn serve(tools: ServedTools) -> Running {
    Running::scripted(["Hello!"], ServerConfig { tools, ..ServerConfig::default() })
}

/// A tool that runs until it is cancelled. Counts its started and its cancelled calls.
fn endless(counts: Arc<[AtomicUsize; 2]>) -> Toolset {
    let run = move |_: Map<String, Value>, context: CallContext| {
        let counts = counts.clone();
        async move {
            counts[0].fetch_add(1, Ordering::SeqCst);
            context.cancelled().await;
            counts[1].fetch_add(1, Ordering::SeqCst);
            Ok(Value::Null)
        }
    };
    let spec = ToolSpec::new("wait", "Waits.", json!({"type": "object"}));
    Toolset::new().with_async_fn(spec, run).expect("a tool")
}

/// Waits until a count is reached.
fn until(count: &AtomicUsize, number: usize) {
    let began = Instant::now();
    while count.load(Ordering::SeqCst) < number {
        assert!(began.elapsed() < Duration::from_secs(30), "{number} is not reached");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn tools_are_listed_and_called() {
    let server = serve(ServedTools::new(demo));
    let list = server.get("/v1/tools").json();
    let first = &list["data"][0];
    assert_eq!((&first["type"], &first["function"]["name"]), (&json!("function"), &json!("get_weather")));
    assert_eq!(first["function"]["parameters"]["required"], json!(["location"]));
    assert!(first["annotations"].is_object(), "{first}");
    for arguments in [json!({"location": "Paris"}), json!(r#"{"location": "Paris"}"#)] {
        let response =
            server.post("/v1/tools/call", &json!({"name": "get_weather", "arguments": arguments})).json();
        assert_eq!((&response["name"], &response["is_error"]), (&json!("get_weather"), &json!(false)));
        let content: Value = serde_json::from_str(response["content"].as_str().expect("text")).expect("JSON");
        assert_eq!(content["location"], "Paris");
    }
    let response = server.post("/v1/tools/call", &json!({"name": "current_time", "arguments": ""}));
    assert_eq!(response.json()["is_error"], json!(false), "{}", response.body);
    let response = server.post("/v1/tools/call", &json!({"name": "get_weather", "arguments": {}}));
    assert_eq!((response.status, &response.json()["is_error"]), (200, &json!(true)));
    assert!(response.json()["content"].as_str().expect("text").contains("location"), "{}", response.body);
}

/// A tool whose result is a list.
fn lists(result: Value) -> ServedTools {
    ServedTools::new(move || {
        let (spec, result) = (ToolSpec::new("look", "Looks.", json!({"type": "object"})), result.clone());
        Toolset::new().with_fn(spec, move |_: Map<String, Value>| Ok(result.clone())).expect("a tool")
    })
}

#[test]
fn media_of_results_are_parts_beside_the_text() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let called = |result: &Value| {
        let called = serve(lists(result.clone())).post("/v1/tools/call", &json!({"name": "look"})).json();
        assert_eq!(called["is_error"], false, "{called}");
        called
    };
    let image = json!({"type": "image", "blob": "AAEC", "mime_type": "image/png"});
    let seen = called(&json!([text("This:\n"), image]));
    assert_eq!(seen["content"], "This:\n[image: image/png, 3 bytes, not shown]");
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}});
    assert_eq!(seen["parts"], json!([text("This:\n"), url]));
    let heard = called(&json!([{"type": "audio", "blob": "AAEC", "mime_type": "audio/mpeg"}]));
    let input = json!({"type": "input_audio", "input_audio": {"data": "AAEC", "format": "mp3"}});
    assert_eq!(heard["parts"], json!([input]));
    let unheard = called(&json!([{"type": "audio", "blob": "AAEC", "mime_type": "audio/midi"}, image]));
    assert_eq!(unheard["parts"], json!([text("[audio: audio/midi, 3 bytes, not shown]"), url]));
    for without in [json!([1, 2]), json!([text("a")]), json!("a")] {
        assert_eq!(called(&without).get("parts"), None);
    }
}

#[test]
fn unknown_tools_and_invalid_calls_are_rejected() {
    let server = serve(ServedTools::new(demo));
    for (body, status, param) in [
        (json!({"name": "rm", "arguments": {}}), 404, "name"),
        (json!({"arguments": {}}), 400, "name"),
        (json!({"name": "get_weather", "arguments": 1}), 400, "arguments"),
        (json!({"name": "get_weather", "arguments": "{"}), 400, "arguments"),
    ] {
        let response = server.post("/v1/tools/call", &body);
        assert_eq!((response.status, &response.json()["error"]["param"]), (status, &json!(param)), "{body}");
    }
    let none = serve(ServedTools::default());
    assert_eq!(none.get("/v1/tools").json()["data"], json!([]));
    assert_eq!(none.post("/v1/tools/call", &json!({"name": "get_weather"})).status, 404);
}

#[test]
fn tools_need_the_key_and_same_origin() {
    let keys = ApiKeys::new(["secret"]).expect("a key");
    let tools = ServedTools::new(demo);
    let server = Running::scripted(["Hello!"], ServerConfig { tools, keys, ..ServerConfig::default() });
    let call = json!({"name": "current_time"});
    assert_eq!(server.get("/v1/tools").status, 401);
    assert_eq!(server.post("/v1/tools/call", &call).status, 401);
    let request =
        || Request::new("POST", "/v1/tools/call").body(&call).header("Authorization", "Bearer secret");
    assert_eq!(server.send(&request()).status, 200);
    assert_eq!(server.send(&request().header("Origin", "https://other.example")).status, 403);
}

#[test]
fn disconnect_and_timeout_end_calls() {
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let tools = endless(counts.clone());
    let limits = ServerLimits { request_time: Duration::from_secs(2), ..ServerLimits::default() };
    let tools = ServedTools::new(move || tools.clone());
    let server = Running::scripted(["Hello!"], ServerConfig { tools, limits, ..ServerConfig::default() });
    let call = Request::new("POST", "/v1/tools/call").body(&json!({"name": "wait"}));
    let client = server.open(&call);
    until(&counts[0], 1);
    drop(client);
    until(&counts[1], 1);
    let response = server.send(&call);
    assert_eq!((response.status, &response.json()["is_error"]), (200, &json!(true)), "{}", response.body);
}

#[test]
fn call_occupies_a_preparation_slot() {
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let tools = endless(counts.clone());
    let tools = ServedTools::new(move || tools.clone());
    let limits = ServerLimits { preparing: 1, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { tools, limits, ..ServerConfig::default() });
    let call = Request::new("POST", "/v1/tools/call").body(&json!({"name": "wait"}));
    let running = server.open(&call);
    until(&counts[0], 1);
    for refused in [server.post("/tokenize", &json!({"content": "a"})), server.send(&call)] {
        assert_eq!(refused.error(), (429, "rate_limit_error".to_owned(), None));
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    drop(running);
    until(&counts[1], 1);
}
