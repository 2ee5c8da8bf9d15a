//! `lm embed`: vectors of texts, and `lm batch` with embedding requests.

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
