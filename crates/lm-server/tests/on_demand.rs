//! Models that are loaded when they are first used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Request, Running};
use lm_conversation::ConversationConfig;
use lm_server::{ServedModel, ServerConfig, ServerLimits};
use lm_session::testing::scripted_engine;
use lm_session::{Error, MediaKind};
use serde_json::json;

/// A model that counts its loads; those after `loads` fail for want of memory.
fn model(name: &'static str, loads: usize) -> (ServedModel, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let model = ServedModel::on_demand(name, move || {
        if counted.fetch_add(1, Ordering::SeqCst) >= loads {
            return Err(Error::ModelsInUse { name: name.to_owned(), needed_bytes: 8, left_bytes: 4 });
        }
        let engine = scripted_engine(["Hello!"]);
        let config = ConversationConfig::from_engine(&engine);
        Ok((engine, config))
    });
    (model, count)
}

#[test]
fn first_request_loads_only_its_model() {
    let ((first, first_loads), (second, second_loads)) = (model("first", 1), model("second", 1));
    let server = Running::serve_all(vec![first, second], ServerConfig::default());
    let lengths = || {
        let models = server.get("/v1/models").json();
        [0, 1].map(|at| models["data"][at]["max_model_len"].is_number())
    };
    assert_eq!(server.get("/ready").status, 200);
    assert_eq!(lengths(), [false, false]);
    assert!(!server.get("/metrics").body.contains("lm_requests_running{"));
    let tags = server.get("/api/tags").json();
    assert!(tags["models"][1]["digest"].is_string(), "clients take no null: {tags}");
    for _ in 0..2 {
        let response = server.post("/tokenize", &json!({"model": "second", "content": "a"}));
        assert_eq!(response.status, 200, "{}", response.body);
    }
    assert_eq!((first_loads.load(Ordering::SeqCst), second_loads.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(lengths(), [false, true]);
    assert!(server.get("/v1/models").json()["data"][1]["max_model_len"].is_u64());
    assert!(server.get("/metrics").body.contains(r#"lm_requests_running{model_name="second"}"#));
    assert_eq!(server.post("/api/show", &json!({"model": "first"})).status, 200);
    assert_eq!(first_loads.load(Ordering::SeqCst), 1);
}

#[test]
fn modalities_are_listed_before_loading() {
    let ((model, loads), (other, _)) = (model("sees", 1), model("reads", 1));
    let server = Running::serve_all(vec![model.media(MediaKind::ALL), other], ServerConfig::default());
    let listed = || {
        let models = server.get("/v1/models").json()["data"].clone();
        [0, 1].map(|index| models[index]["input_modalities"].clone())
    };
    let capabilities = || server.get("/api/tags").json()["models"][0]["capabilities"].clone();
    assert_eq!(listed(), [json!(["text", "image", "audio"]), json!(["text"])]);
    assert_eq!(capabilities(), json!(["completion", "tools", "vision"]));
    assert_eq!(loads.load(Ordering::SeqCst), 0);
    assert_eq!(server.post("/tokenize", &json!({"model": "sees", "content": "a"})).status, 200);
    assert_eq!(listed()[0], json!(["text"]), "the loaded model's own: this one has no encoders");
    assert_eq!(capabilities(), json!(["completion", "tools"]));
}

#[test]
fn model_without_memory_is_a_retryable_error() {
    let (model, loads) = model("large", 0);
    let server = Running::serve(model, ServerConfig::default());
    for _ in 0..2 {
        let response = server.post("/v1/embeddings", &json!({"input": "a"}));
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
        assert_eq!(response.json()["error"]["type"], "unavailable_error");
    }
    assert_eq!((loads.load(Ordering::SeqCst), server.get("/health").status), (2, 200));
}

#[test]
fn abandoned_work_keeps_its_slot() {
    let (open, opened) = channel::<()>();
    let opened = Mutex::new(opened);
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = loads.clone();
    let model = ServedModel::on_demand("slow", move || {
        if counted.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(Error::ModelsInUse { name: "slow".to_owned(), needed_bytes: 8, left_bytes: 4 });
        }
        // An error: the test has continued.
        let _ = opened.lock().expect("no panic").recv();
        let engine = scripted_engine(["Hello!"]);
        let config = ConversationConfig::from_engine(&engine);
        Ok((engine, config))
    });
    let limits = ServerLimits { preparing: 1, ..ServerLimits::default() };
    let server = Running::serve(model, ServerConfig { limits, ..ServerConfig::default() });
    // Dropped before the server, which waits for the load.
    let release = open;
    let request = Request::new("POST", "/tokenize").body(&json!({"content": "a"}));
    let leaves = server.open(&request);
    while loads.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(leaves);
    // Time to notice that it has left.
    std::thread::sleep(Duration::from_millis(300));
    let refused = server.send(&request);
    assert_eq!(refused.error(), (429, "rate_limit_error".to_owned(), None));
    drop(release);
    while server.send(&request).status == 429 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((server.send(&request).status, loads.load(Ordering::SeqCst)), (200, 1));
}
