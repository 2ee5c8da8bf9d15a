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
fn output_of_encoders_is_named() {
    for (folder, shown, kind) in [
        ("encoders/bert-mean", "embeddings, mean pooling", "embedding"),
        ("encoders/bert-cls", "embeddings, first token pooling", "embedding"),
        ("encoders/bert-cross", "a score of a pair of texts, for `lm rerank`", "labels"),
        ("encoders/qwen3-cross", "a score of a pair of texts", "labels"),
        ("encoders/bert-cross-labels", " labels\n", "labels"),
    ] {
        let out = inspect(Some(folder), &[]);
        assert_contains(&out, &[shown]);
        assert!(!out.contains("template") && !out.contains("a reply ends with"), "{out}");
        assert_eq!(as_json(Some(folder))["output"], kind);
    }
    assert_eq!(as_json(None)["output"], "tokens");
}

#[test]
fn inactive_experts_are_counted_apart() {
    let summary = as_json(Some("models/qwen3-moe-tiny"));
    let count = |key: &str| summary[key].as_u64().expect("a count");
    // Inactive in two layers: six experts of eight, with three matrices of 32 by 32.
    assert_eq!(count("parameters") - count("parameters_of_token"), 2 * 6 * 3 * 32 * 32);
    assert_contains(&inspect(Some("models/qwen3-moe-tiny"), &[]), &["of them for a token, in"]);
}

/// `lm inspect --cpu --json` with a cache folder and a value of `LM_PREFETCH`.
fn prefetches(caches: &std::path::Path, forced: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lm"));
    command.args(["inspect", "--cpu", "--json"]).env_remove("LM_PREFETCH").env_remove("LM_CPU");
    for variable in ["XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"] {
        command.env(variable, caches);
    }
    command.envs(forced.map(|plan| ("LM_PREFETCH", plan)));
    let output = command.stdin(Stdio::null()).output().expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("output is text"))
}

#[test]
fn prefetch_plan_is_forced_or_measured_or_the_default() {
    let caches = tempfile::tempdir().expect("a folder");
    let read = |forced| -> [String; 2] {
        let (_, text) = prefetches(caches.path(), forced);
        let cpu: Value = serde_json::from_str(&text).expect("one line of JSON");
        assert!(cpu["supported"].as_array().is_some_and(|all| all.contains(&cpu["kernels"])), "{cpu}");
        ["prefetch", "prefetch_origin"].map(|key| cpu[key].as_str().unwrap_or_default().to_owned())
    };
    let [default, origin] = read(None);
    assert_eq!(origin, "default");
    for plan in ["near", "far"] {
        assert_eq!(read(Some(plan)), [plan, "forced"]);
        assert_eq!(read(None), [&default, "default"], "a forced plan is not kept");
    }
    let (code, error) = prefetches(caches.path(), Some("middle"));
    assert_ne!(code, Some(0));
    assert!(error.contains("unknown prefetch plan `middle`, expected one of: near, far"), "{error}");

    let Some(processor) = lm_kernels::host::processor_name() else {
        return println!("skipped: this processor has no name, so nothing is kept for it");
    };
    let below = if cfg!(target_os = "macos") { "Library/Caches/lm" } else { "lm" };
    let folder = caches.path().join(below);
    std::fs::create_dir_all(&folder).expect("a folder");
    let other = if default == "near" { "far" } else { "near" };
    let keep = |processor: &str, plan: &str| {
        let measured = serde_json::json!({ "processor": processor, "plan": plan }).to_string();
        std::fs::write(folder.join("prefetch.json"), measured).expect("can be written");
    };
    keep(&processor, other);
    assert_eq!(read(None), [other, "measured"]);
    assert_eq!(read(Some(&default)), [&default, "forced"]);
    keep("another processor", other);
    assert_eq!(read(None), [&default, "default"]);
    keep(&processor, "middle");
    assert_eq!(read(None), [&default, "default"]);
}
