//! `lm rerank`: documents by relevance.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::json_lines::answers;
use crate::program::{lm, shown};

#[test]
fn documents_are_ranked_as_transformers_ranks_them() {
    let golden: Vec<Value> =
        serde_json::from_str(include_str!("../../../testdata/rerank/golden.json")).expect("JSON");
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let dir = tempfile::tempdir().expect("a folder");
    for file in
        ["rerank/model/config.json", "rerank/model/tokenizer.json", "models/qwen3-tiny/model.safetensors"]
    {
        let name = file.rsplit('/').next().expect("a name");
        fs::copy(testdata.join(file), dir.path().join(name)).expect("a copy");
    }
    let model = shown(dir.path());
    for case in &golden {
        let documents = case["documents"].as_array().expect("documents");
        let scores: Vec<f64> =
            case["scores"].as_array().expect("scores").iter().map(|s| s.as_f64().expect("a score")).collect();
        let lines: String =
            documents.iter().map(|document| format!("{}\n", json!({"text": document}))).collect();
        let mut args = vec![case["query"].as_str().expect("a query"), "-m", model, "--kv", "f32"];
        args.extend(case["instruction"].as_str().into_iter().flat_map(|text| ["--instruction", text]));
        let ranked = answers("rerank", &args, &lines);
        assert_eq!(ranked.len(), documents.len());
        for line in &ranked {
            let index = line["index"].as_u64().expect("an index") as usize;
            let far = (line["relevance_score"].as_f64().expect("a score") - scores[index]).abs();
            assert!(far < 1e-4, "{line}: {far:e}");
            assert_eq!(line["document"]["text"], documents[index]);
        }
        args.extend(["--top-n", "1"]);
        assert_eq!(answers("rerank", &args, &lines), ranked[..1]);
    }
    let run = lm(&["rerank", "a", "-m", model], "7\n");
    assert!(run.err.contains("expected a string or an object with `text`, got 7"), "{}", run.err);
    let run = lm(&["rerank", "a", "b", "--temperature", "1"], "");
    assert_ne!(run.code, Some(0), "{}", run.err);
}
