//! Ollama's API over HTTP.

use std::time::Duration;

use crate::support::{Running, chat};
use lm_server::{ApiKeys, ServedModel, ServerConfig};
use lm_session::EngineSettings;
use serde_json::{Value, json};

fn server() -> Running {
    Running::scripted(["Hello!", "Hello!"], ServerConfig::default())
}

#[test]
fn chat_streams_lines_by_default() {
    let server = server();
    let response = server.post("/api/chat", &chat(json!({"model": "fake:latest"})));
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/x-ndjson")));
    let lines = response.body.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let text: String = lines.iter().filter_map(|line| line["message"]["content"].as_str()).collect();
    let last = lines.last().expect("lines");
    assert_eq!(
        (text.as_str(), &last["done"], &last["done_reason"]),
        ("Hello!", &json!(true), &json!("stop"))
    );

    let object = server.post("/api/chat", &chat(json!({"stream": false}))).json();
    assert_eq!(object["message"], json!({"role": "assistant", "content": "Hello!"}));
    assert_eq!(object["eval_count"], last["eval_count"]);
}

#[test]
fn prompt_is_answered() {
    let object = server().post("/api/generate", &json!({"prompt": "Hello", "stream": false})).json();
    assert_eq!((&object["response"], &object["model"]), (&json!("Hello!"), &json!("fake")));
}

#[test]
fn models_are_listed_and_shown() {
    let server = server();
    let list = server.get("/api/tags").json();
    let names: Vec<_> = list["models"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["fake", "other/name"]);
    let shown = server.post("/api/show", &json!({"model": "fake"})).json();
    let architecture = shown["model_info"]["general.architecture"].as_str().expect("a name");
    let number = |name: &str| shown["model_info"][format!("{architecture}.{name}")].as_u64();
    let model = server.get("/v1/models/fake").json();
    assert_eq!(number("context_length"), model["max_model_len"].as_u64());
    let embedded = server.post("/v1/embeddings", &json!({"input": "Hello"})).json();
    let vector = embedded["data"][0]["embedding"].as_array().map(|vector| vector.len() as u64);
    assert_eq!(number("embedding_length"), vector);
    assert_eq!(server.post("/api/show", &json!({"name": "other/name"})).status, 200);
    assert!(server.get("/api/version").json()["version"].is_string());
}

#[test]
fn details_have_the_format_of_files_and_weights() {
    let server = Running::embedded(EngineSettings::default(), ServerConfig::default());
    let shown = server.post("/api/show", &json!({"model": "pocket"})).json();
    let details = shown["details"].clone();
    assert_eq!(details["format"], "safetensors");
    let weights = details["quantization_level"].as_str().expect("a text");
    assert!(!weights.is_empty() && weights == weights.to_uppercase(), "{weights}");
    for list in ["/api/tags", "/api/ps"] {
        let (models, details) = (server.get(list).json(), Some(&details));
        // The engine is loaded by its first request.
        let listed = models["models"].as_array().expect("a list").first().map(|model| &model["details"]);
        assert!(listed == details || list == "/api/ps" && listed.is_none(), "{list}: {models}");
    }
    let gguf = ServedModel::on_demand("stored", || unreachable!("no request comes")).gguf(true);
    let models = Running::serve(gguf, ServerConfig::default()).get("/api/tags").json();
    let details = &models["models"][0]["details"];
    assert_eq!((&details["format"], &details["quantization_level"]), (&json!("gguf"), &json!("")));
}

#[test]
fn embeddings_are_vectors() {
    let body = json!({"model": "fake", "input": ["Hello", "there"], "truncate": true});
    let object = server().post("/api/embed", &body).json();
    let vectors = object["embeddings"].as_array().expect("vectors");
    assert!(vectors.len() == 2 && vectors.iter().all(|vector| vector[0].is_f64()), "{object}");
    assert_eq!(server().post("/api/embeddings", &json!({"prompt": ""})).json(), json!({"embedding": []}));
}

#[test]
fn keep_alive_sets_the_model_expiry() {
    let server = Running::embedded(EngineSettings::default(), ServerConfig::default());
    let expires_at = || server.get("/api/ps").json()["models"][0]["expires_at"].clone();
    let stays = || expires_at().as_str().expect("a time") > "2100";
    let is_loaded = || {
        let metrics = server.get("/metrics").body;
        assert!(metrics.contains("num_gpu_blocks=\""), "{metrics}");
        !metrics.contains("num_gpu_blocks=\"0\"") && expires_at().is_string()
    };
    let unloaded = || {
        while is_loaded() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let reason = |path: &str, body: Value| {
        let response = server.post(path, &body);
        assert_eq!(response.status, 200, "{path} {body}: {}", response.body);
        response.json()["done_reason"].clone()
    };
    assert!(is_loaded());
    let once = json!({"keep_alive": 0, "stream": false, "options": {"num_predict": 2}});
    assert_eq!(reason("/api/chat", chat(once)), "length");
    unloaded();
    assert_eq!(reason("/api/generate", json!({"model": "pocket"})), "load"); // For the engine's own time: for good.
    assert!(is_loaded() && stays());
    assert_eq!(reason("/api/generate", json!({"keep_alive": "10m"})), "load");
    assert!(!stays(), "{}", expires_at());
    assert_eq!(reason("/api/chat", json!({"messages": [], "keep_alive": 0})), "unload");
    unloaded();
    assert!(expires_at().is_null());
    assert_eq!(server.post("/api/embed", &json!({"input": "a", "keep_alive": -1})).status, 200);
    assert!(is_loaded());
    assert_eq!(server.post("/api/embed", &json!({"input": "a", "keep_alive": 0})).status, 200);
    unloaded();
    let refused = server.post("/api/generate", &json!({"prompt": "a", "keep_alive": "soon"}));
    assert_eq!(
        refused.json()["error"],
        "`keep_alive` is \"soon\", expected seconds, or text such as \"10m\""
    );
}

#[test]
fn idle_model_expiry_is_fixed() {
    let server = Running::embedded(EngineSettings::default(), ServerConfig::default());
    assert_eq!(server.post("/api/generate", &json!({"keep_alive": "10m"})).status, 200);
    let expires_at = || server.get("/api/ps").json()["models"][0]["expires_at"].clone();
    // On a busy machine two answers may differ by a second. A time that counts from the request moves each
    // time.
    let stays = || {
        let before = expires_at();
        std::thread::sleep(Duration::from_millis(1_100));
        before == expires_at()
    };
    assert!((0..10).any(|_| stays()), "{}", expires_at());
}

#[test]
fn all_errors_have_the_api_form() {
    let server = server();
    let error = |path: &str, body: Value| {
        let response = server.post(path, &body);
        assert!(response.json()["error"].is_string(), "{response:?}");
        response.status
    };
    assert_eq!(error("/api/chat", json!({})), 400);
    assert_eq!(error("/api/generate", json!([null])), 400);
    assert_eq!(
        error("/api/generate", json!({"options": {"temperature": "hot"}})),
        400,
        "also without a prompt"
    );
    assert_eq!(error("/api/chat", chat(json!({"model": "llama"}))), 404);
    assert_eq!(error("/api/show", json!({})), 400);
    assert_eq!(error("/api/pull", json!({"model": "llama"})), 404);
    assert_eq!(error("/api/tags", json!({})), 405);
    let keys = ApiKeys::new(["secret"]).expect("a key");
    let guarded = Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() });
    let refused = guarded.get("/api/tags");
    assert!(refused.status == 401 && refused.json()["error"].is_string(), "{refused:?}");
}
