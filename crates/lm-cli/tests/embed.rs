//! `lm embed`: vectors of texts, and `lm batch` with embedding requests.

use std::fs;
use std::path::Path;

use crate::json_lines;
use crate::json_lines::{answers, failing};
use crate::program::{lm, pocket_folder, shown};
use serde_json::{Value, json};

fn vector(answer: &Value) -> Vec<f64> {
    let vector = answer["embedding"].as_array().unwrap_or_else(|| panic!("no vector: {answer}"));
    vector.iter().map(|value| value.as_f64().expect("a number")).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn argument_and_line_texts_have_unit_vectors() {
    let texts = ["The weather in Paris", "The weather in Rome"];
    let ids = answers("tokenize", &[], &json!(texts[0]).to_string());
    let lines = format!("{}\n{}\n{}\n", json!(texts[0]), json!({"text": texts[1]}), ids[0]);
    let by_line = answers("embed", &[], &lines);
    let by_argument = answers("embed", &[texts[0], texts[1], "-"], &ids[0]["ids"].to_string());
    assert_eq!(by_line, by_argument);
    assert_eq!(by_line[0], by_line[2], "the ids of a text are the text");
    let tokens = ids[0]["ids"].as_array().map(Vec::len);
    assert_eq!(by_line[0]["tokens"].as_u64(), tokens.map(|tokens| tokens as u64));
    let (first, second) = (vector(&by_line[0]), vector(&by_line[1]));
    for vector in [&first, &second] {
        assert!((dot(vector, vector) - 1.0).abs() < 1e-6);
    }
    assert!(dot(&first, &second) < 0.9999, "unlike texts");
    let last = answers("embed", &["--pooling", "last"], &lines);
    assert_eq!(vector(&last[0]).len(), first.len());
    assert!(dot(&vector(&last[0]), &first) < 0.9999, "unlike poolings");
}

#[test]
fn non_text_line_is_answered_with_an_error() {
    let lines =
        b"7\n[1, -1]\n{\"text\": \"a\", \"ids\": [1]}\n{\"texts\": \"a\"}\n[4000000000]\n[]\n\"\"\n\n\"a\"\n";
    let answers = failing("embed", &[], lines, "8 of 9 lines failed");
    let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
    let (bad, empty) = (Some("bad_line"), Some("embedding"));
    assert_eq!(kinds, [bad, bad, bad, bad, Some("unknown_id"), empty, empty, bad, None]);
    assert!(!vector(&answers[8]).is_empty());
}

#[test]
fn model_in_place_of_text_is_a_usage_error() {
    let folder = pocket_folder();
    for text in [shown(folder.path()), "Qwen/Qwen3-0.6B"] {
        let run = lm(&["embed", text], "");
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains("the model goes behind --model (-m)"), "{}", run.err);
    }
    let run = lm(&["embed", "Hello", "-m", shown(folder.path())], "");
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{}", run.err);
    assert_eq!(run.out, lm(&["embed", "Hello"], "").out, "the folder is the embedded model");
}

#[test]
fn batch_mixes_embeddings_and_completions() {
    let chat = json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1});
    let body = json!({"input": ["Hello", "Good evening"], "encoding_format": "float"});
    let lines = [
        json!({"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": body}),
        json!({"custom_id": "b", "method": "POST", "url": "/v1/chat/completions", "body": chat}),
        json!({"custom_id": "c", "url": "/v1/embeddings", "body": {"input": "Hello", "dimensions": 1_000_000}}),
        json!({"custom_id": "d", "url": "/v1/images/generations", "body": body}),
        body.clone(),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = failing("batch", &[], lines.as_bytes(), "2 of 5 requests failed");
    let embedded = &answers[0]["response"]["body"];
    assert_eq!(embedded["data"], answers[4]["data"]);
    let single = json_lines::answers("embed", &["Hello", "Good evening"], "");
    for (index, single) in single.iter().enumerate() {
        assert_eq!(embedded["data"][index]["embedding"], single["embedding"]);
        assert_eq!(embedded["data"][index]["index"], index);
    }
    assert_eq!(answers[1]["response"]["body"]["object"], "chat.completion");
    assert_eq!(answers[2]["response"]["status_code"], 400);
    assert_eq!(answers[2]["response"]["body"]["error"]["param"], "dimensions");
    assert_eq!((&answers[3]["response"], &answers[3]["error"]["param"]), (&Value::Null, &json!("url")));
}

/// Folder with the files of sentence-transformers, like Qwen3-Embedding's.
fn embedding_folder() -> tempfile::TempDir {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/embeddings/sentence-transformers");
    let folder = tempfile::tempdir().expect("a folder");
    for part in ["model", "last", "last/1_Pooling", "last/2_Normalize"] {
        let target = folder.path().join(part.split_once('/').map_or("", |(_, module)| module));
        fs::create_dir_all(&target).expect("a folder");
        for entry in fs::read_dir(data.join(part)).expect("a folder").map(|entry| entry.expect("an entry")) {
            if entry.path().is_file() {
                fs::copy(entry.path(), target.join(entry.file_name())).expect("a copy");
            }
        }
    }
    folder
}

fn far(a: &[f64], b: &Value) -> f64 {
    let b = b.as_array().expect("a vector");
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b.as_f64().expect("a number")).abs()).fold(0.0, f64::max)
}

#[test]
fn folder_of_sentence_transformers_decides() {
    let golden = include_str!("../../../testdata/embeddings/sentence-transformers/golden.json");
    let golden: Value = serde_json::from_str(golden).expect("JSON");
    let case = |key: &str, value: &Value| {
        let cases = golden["last"].as_array().expect("cases");
        cases.iter().find(|case| case[key] == *value && case["text"] != "rain").expect("a case").clone()
    };
    let folder = embedding_folder();
    let model = shown(folder.path());
    let embed = |args: &[&str], case: &Value| {
        let line = case["text"].to_string();
        let answer = answers("embed", &[&["-m", model, "--kv", "f32"], args].concat(), &line).remove(0);
        assert_eq!(answer["tokens"], case["tokens"]);
        far(&vector(&answer), &case["vector"])
    };
    assert!(embed(&[], &case("prompt_name", &Value::Null)) < 1e-4);
    assert!(embed(&["--prompt", "query"], &case("prompt_name", &json!("query"))) < 1e-4);
    assert!(embed(&["--prompt", "Query: "], &case("prompt", &json!("Query: "))) < 1e-4);
    let query = case("prompt_name", &json!("query"));
    let body = json!({"input": query["text"], "prompt_name": "query", "dimensions": 16});
    let answer = answers("batch", &[model, "--kv", "f32"], &body.to_string()).remove(0);
    assert!(far(&vector(&answer["data"][0]), &query["short"]) < 1e-4);
    let run = lm(&["embed", "-m", model, "--prompt", "STS", "a"], "");
    assert!(run.err.contains("expected one of document, query"), "{}", run.err);
}
