//! Output of `lm inspect`.

use std::process::{Command, Stdio};

use serde_json::Value;

/// Standard output of `lm inspect` for a path below `testdata`, or for the embedded model.
fn inspect(path: Option<&str>, more: &[&str]) -> String {
    let path = path.map(|path| format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lm"));
    command.arg("inspect").args(path).args(more).env_remove("LM_LOG").stdin(Stdio::null());
    let output = command.output().expect("the program runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{err}");
    String::from_utf8(output.stdout).expect("output is text")
}

fn as_json(path: Option<&str>) -> Value {
    serde_json::from_str(&inspect(path, &["--json"])).expect("one line of JSON")
}

#[track_caller]
fn assert_contains(out: &str, expected: &[&str]) {
    for expected in expected {
        assert!(out.contains(expected), "no {expected} in {out}");
    }
}

#[test]
fn embedded_model_is_inspected() {
    let out = inspect(None, &[]);
    assert_contains(
        &out,
        &[
            "qwen3",
            "tools, tool_calls",
            "model.layers.*.self_attn.q_proj.weight",
            "<|im_end|>",
            "licence       MIT OR Apache-2.0",
        ],
    );
    let summary = as_json(None);
    assert_eq!(summary["template"]["capabilities"]["tools"], true);
    let bytes: u64 =
        summary["tensors"].as_array().into_iter().flatten().filter_map(|t| t["bytes"].as_u64()).sum();
    assert_eq!(summary["weight_bytes"], bytes);
    let files: usize = lm_pocket::FILES.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(summary["bytes"], files);
    assert_eq!(bytes, 2 * summary["parameters"].as_u64().expect("a count"), "bf16");
    assert_eq!(summary["parameters"], summary["parameters_of_token"]);
}

#[test]
fn gguf_file_shows_tensor_types() {
    let out = inspect(Some("gguf/llama-tiny-q8_0.gguf"), &[]);
    assert_contains(
        &out,
        &["llama-tiny-q8_0\n", "Q8_0 161.0 kB", "in llama-tiny-q8_0.gguf", "as stored, q8", "128 tokens"],
    );
    assert!(!out.contains("    q4, "), "it is quantised as it is: {out}");
    let needs = as_json(Some("gguf/gemma3-tiny-bf16.gguf"))["memory"]["needs"].take();
    let needs = needs.as_array().expect("a list");
    let weights = |format: &str| {
        let row = needs.iter().find(|row| row["quantization"] == format).expect("a row of the format");
        row["weight_bytes"].as_u64().expect("a size")
    };
    assert!(weights("q4") < weights("q8"), "floats can be had smaller");
}

#[test]
fn inactive_experts_are_counted_apart() {
    let summary = as_json(Some("models/qwen3-moe-tiny"));
    let count = |key: &str| summary[key].as_u64().expect("a count");
    // Inactive in two layers: six experts of eight, with three matrices of 32 by 32.
    assert_eq!(count("parameters") - count("parameters_of_token"), 2 * 6 * 3 * 32 * 32);
    assert_contains(&inspect(Some("models/qwen3-moe-tiny"), &[]), &["of them for a token, in"]);
}
