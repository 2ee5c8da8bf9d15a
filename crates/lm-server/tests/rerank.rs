//! Reranking: the paths that Jina, Cohere and llama.cpp share, compared with transformers.

use std::fs;
use std::path::Path;

use lm_model::KvDtype;
use lm_server::ServerConfig;
use lm_session::{Engine, EngineSettings, LoadOptions, ModelFolder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Running;

/// Maximum absolute difference of a score.
const TOLERANCE: f64 = 1e-4;

fn golden() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../testdata/rerank/golden.json")).expect("JSON")
}

fn server() -> (Running, TempDir) {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let dir = tempfile::tempdir().expect("a folder");
    for file in
        ["rerank/model/config.json", "rerank/model/tokenizer.json", "models/qwen3-tiny/model.safetensors"]
    {
        let name = file.rsplit('/').next().expect("a name");
        fs::copy(testdata.join(file), dir.path().join(name)).expect("a copy");
    }
    let folder = ModelFolder::open(dir.path()).expect("a model");
    let options = LoadOptions { kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    let engine = Engine::load(&folder, &options, EngineSettings::default(), &mut |_| {}).expect("it loads");
    (Running::start(engine, ServerConfig::default()), dir)
}

/// Scores of a response, in the order of the documents.
fn scores(response: &Value) -> Vec<f64> {
    let results = response["results"].as_array().expect("results");
    let scores: Vec<f64> = results.iter().map(|r| r["relevance_score"].as_f64().expect("a score")).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "the most relevant first: {scores:?}");
    let mut by_index = vec![f64::NAN; results.len()];
    for (result, score) in results.iter().zip(scores) {
        by_index[result["index"].as_u64().expect("an index") as usize] = score;
    }
    by_index
}

#[test]
fn scores_equal_transformers() {
    let (server, _folder) = server();
    for case in golden() {
        let mut body = json!({"query": case["query"], "documents": case["documents"]});
        body["instruction"] = case["instruction"].clone();
        for path in ["/v1/rerank", "/rerank"] {
            let response = server.post(path, &body);
            assert_eq!(response.status, 200, "{}", response.body);
            let response = response.json();
            let expected = case["scores"].as_array().expect("scores");
            let pairs = scores(&response).into_iter().zip(expected);
            let far = pairs.map(|(a, b)| (a - b.as_f64().expect("a number")).abs()).fold(0.0, f64::max);
            println!("{}: {far:.1e}", case["query"]);
            assert!(far <= TOLERANCE, "{far:e}");
            assert_eq!(response["usage"]["total_tokens"], case["tokens"]);
            assert!(response["results"][0].get("document").is_none());
        }
    }
    let body = json!({"query": "a", "documents": ["b"], "model": "another"});
    assert_eq!(server.post("/v1/rerank", &body).status, 404);
}

#[test]
fn results_are_limited_and_have_their_documents() {
    let (server, _folder) = server();
    let body = json!({"query": "rain", "documents": ["one", {"text": "the rain"}, "ten"], "top_n": 2, "return_documents": true});
    let response = server.post("/v1/rerank", &body).json();
    let results = response["results"].as_array().expect("results");
    assert_eq!((response["object"].as_str(), results.len()), (Some("list"), 2));
    let texts = ["one", "the rain", "ten"];
    for result in results {
        assert_eq!(result["document"]["text"], texts[result["index"].as_u64().expect("an index") as usize]);
    }
}

#[test]
fn invalid_requests_name_their_field() {
    let (server, _folder) = server();
    let long = "rain ".repeat(2_000);
    for (body, param) in [
        (json!({"documents": ["a"]}), "query"),
        (json!({"query": "", "documents": ["a"]}), "query"),
        (json!({"query": "a"}), "documents"),
        (json!({"query": "a", "documents": []}), "documents"),
        (json!({"query": "a", "documents": "b"}), "documents"),
        (json!({"query": "a", "documents": ["b", 7]}), "documents[1]"),
        (json!({"query": "a", "documents": [{"title": "b"}]}), "documents[0]"),
        (json!({"query": "a", "documents": ["b", long]}), "documents[1]"),
        (json!({"query": "a", "documents": ["b"], "top_n": 0}), "top_n"),
        (json!({"query": "a", "documents": ["b"], "max_tokens_per_doc": 7}), "max_tokens_per_doc"),
    ] {
        let response = server.post("/v1/rerank", &body);
        let error = &response.json()["error"];
        assert_eq!((response.status, error["param"].as_str()), (400, Some(param)), "{}", response.body);
    }
}

#[test]
fn model_without_the_answers_is_no_reranker() {
    let server = Running::scripted(["Hello!"], ServerConfig::default());
    let response = server.post("/v1/rerank", &json!({"query": "a", "documents": ["b"]}));
    assert_eq!(response.status, 400);
    assert!(response.body.contains("it has no token `yes`"), "{}", response.body);
}
