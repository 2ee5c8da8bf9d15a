//! Models that clients download.

use crate::support::Running;
use lm_conversation::ConversationConfig;
use lm_server::{DownloadProgress, ServedDownloads, ServedModel, ServerConfig};
use lm_session::testing::scripted_engine;
use serde_json::{Value, json};

fn model(name: &str) -> ServedModel {
    ServedModel::on_demand(name, || {
        let engine = scripted_engine(["Hello!"]);
        let config = ConversationConfig::from_engine(&engine);
        Ok((engine, config))
    })
}

/// A server with one model, which downloads `owner/new` and nothing else.
fn server() -> Running {
    let downloads = ServedDownloads::new(|name, progress| {
        for done_bytes in [0, 10, 20] {
            progress(DownloadProgress { file: "model.gguf".to_owned(), done_bytes, total_bytes: 20 });
        }
        let found = (name == "owner/new").then(|| model("new").alias(name).file_bytes(20));
        found.ok_or_else(|| format!("there is no `{name}`"))
    });
    let config = ServerConfig { downloads: Some(downloads), ..ServerConfig::default() };
    Running::serve(model("first").file_bytes(7), config)
}

fn lines(body: &str) -> Vec<Value> {
    let lines = body.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn downloaded_model_is_served() {
    let server = server();
    let names = || -> Vec<Value> {
        let list = server.get("/v1/models").json();
        list["data"].as_array().expect("a list").iter().map(|model| model["id"].clone()).collect()
    };
    assert_eq!(server.get("/v1/models").json()["downloads"], true);
    assert_eq!(names(), ["first"]);
    let pulled = lines(&server.post("/api/pull", &json!({"model": "owner/new"})).body);
    assert_eq!(pulled[0], json!({"status": "pulling manifest"}));
    assert_eq!(pulled[1], json!({"status": "pulling model.gguf", "total": 20, "completed": 0}));
    assert_eq!(pulled.last(), Some(&json!({"status": "success"})));
    assert_eq!(names(), ["first", "new", "owner/new"]);
    assert_eq!(server.post("/tokenize", &json!({"model": "owner/new", "content": "a"})).status, 200);
    let again = server.post("/api/pull", &json!({"model": "owner/new", "stream": false}));
    assert_eq!((again.status, again.json()), (200, json!({"status": "success"})));
    assert_eq!(names(), ["first", "new", "owner/new"], "a model that is here is not added again");
    assert!(server.get("/metrics").body.contains(r#"lm_requests_running{model_name="new"}"#));
}

#[test]
fn failed_download_says_why() {
    let server = server();
    let failed = lines(&server.post("/api/pull", &json!({"name": "owner/other"})).body);
    assert_eq!(failed.last(), Some(&json!({"error": "there is no `owner/other`"})));
    let failed = server.post("/api/pull", &json!({"model": "owner/other", "stream": false}));
    assert_eq!(failed.status, 400);
    assert_eq!(failed.json()["error"], "there is no `owner/other`", "in the form of Ollama's errors");
    let none = Running::serve(model("first"), ServerConfig::default());
    assert_eq!(none.post("/api/pull", &json!({"model": "owner/new"})).status, 404);
    assert_eq!(none.get("/v1/models").json()["downloads"], false);
}

#[test]
fn sizes_and_loaded_models_are_listed() {
    let server = server();
    let first = || server.get("/v1/models").json()["data"][0].clone();
    assert_eq!((&first()["bytes"], &first()["loaded"]), (&json!(7), &json!(false)));
    assert_eq!(server.get("/api/tags").json()["models"][0]["size"], 7);
    assert_eq!(server.post("/api/generate", &json!({"model": "first", "stream": false})).status, 200);
    assert_eq!(first()["loaded"], true);
    assert_ne!(first()["bytes"], 7, "the weights in memory");
}
