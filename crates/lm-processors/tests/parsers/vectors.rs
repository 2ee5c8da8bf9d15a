//! The reference vectors of the dialects that are known here, whole, character by character and in their own pieces.

use crate::common::{Sum, family, parse, shared, sum, with_a_tool};
use lm_processors::OnMalformed;
use serde_json::Value;

/// Vector files, and the family that reads each.
const FILES: &[(&str, &str)] = &[
    ("tools/hermes.json", "hermes"),
    ("tools/functiongemma.json", "functiongemma"),
    ("tools/llama4_pythonic.json", "llama4_pythonic"),
    ("tools/pythonic.json", "pythonic"),
    ("tools/step3.json", "step3"),
    ("reasoning/qwen3.json", "qwen"),
    ("reasoning/think_tags.json", "hermes"),
    ("reasoning/deepseekr1.json", "hermes"),
    ("reasoning/glm4_moe.json", "hermes"),
    ("reasoning/nemotron_v3.json", "hermes"),
];

/// A prompt that opened the reasoning is not written down in most vectors: a reply that closes what it never opened,
/// and one whose text is all reasoning, tell it.
fn in_reasoning(vector: &Value) -> bool {
    let text = |key: &str| vector[key].as_str().unwrap_or_default();
    let (suffix, output) = (text("prompt_suffix"), text("output"));
    let closes_first =
        output.find("</think>").is_some_and(|close| output.find("<think>").is_none_or(|open| close < open));
    let all_reasoning = vector["expected"]["reasoning"] == output;
    suffix.trim_end().ends_with("<think>") || closes_first || all_reasoning
}

fn check(file: &str, vector: &Value, got: &Sum, how: &str) {
    let at = format!("{file}: {} ({how})", vector["name"]);
    let expected = &vector["expected"];
    if let Some(content) = expected.get("content") {
        assert_eq!(got.text, content.as_str().unwrap_or(""), "{at}: content");
    }
    if let Some(reasoning) = expected.get("reasoning") {
        assert_eq!(got.reasoning, reasoning.as_str().unwrap_or(""), "{at}: reasoning");
    }
    let Some(calls) = expected.get("tool_calls").and_then(Value::as_array) else { return };
    for (index, call) in calls.iter().enumerate() {
        match call.get("arguments_text") {
            // Arguments that are no JSON: what was streamed is compared, the call itself is malformed here.
            Some(text) => assert_eq!(got.arguments_text[index], *text, "{at}: argument text"),
            None => {
                assert_eq!(got.calls[index]["name"], call["name"], "{at}: name");
                check_arguments(&got.calls[index]["arguments"], call, &at);
            }
        }
    }
    let complete = calls.iter().filter(|call| call.get("arguments_text").is_none()).count();
    assert_eq!(got.calls.len(), complete, "{at}: number of calls");
}

/// Some vectors name only a part of the arguments, or none.
fn check_arguments(got: &Value, call: &Value, at: &str) {
    if let Some(arguments) = call.get("arguments") {
        assert_eq!(got, arguments, "{at}: arguments");
    }
    for (key, value) in call.get("arguments_include").and_then(Value::as_object).into_iter().flatten() {
        assert_eq!(got[key], *value, "{at}: argument {key}");
    }
}

#[test]
fn reference_vectors() {
    let Some(folder) = shared("goldens/parser") else { return };
    let mut vectors = 0;
    for (file, name) in FILES {
        let data: Value = serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap();
        for vector in data["vectors"].as_array().unwrap() {
            let name = if vector["name"].as_str().unwrap().starts_with("qwen3") { "qwen" } else { name };
            let options = with_a_tool(OnMalformed::Error, in_reasoning(vector));
            let output = vector["output"].as_str().unwrap();
            check(file, vector, &sum(parse(family(name), &options, [output])), "whole");
            let characters = output.split_inclusive(|_| true);
            check(file, vector, &sum(parse(family(name), &options, characters)), "by character");
            if let Some(chunks) = vector.get("chunks").and_then(Value::as_array) {
                let chunks = chunks.iter().map(|chunk| chunk.as_str().unwrap());
                check(file, vector, &sum(parse(family(name), &options, chunks)), "in its own pieces");
            }
            vectors += 1;
        }
    }
    assert!(vectors > 40, "only {vectors} vectors");
}

/// Which family each published template belongs to; those that are not named are generic for now.
const TEMPLATES: &[(&str, &[&str])] = &[
    ("functiongemma", &["google-function-gemma", "vllm-functiongemma"]),
    (
        "hermes",
        &[
            "HuggingFaceTB-SmolLM3-3B-2",
            "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
            "mistralrs-smollm3",
            "vllm-hermes",
        ],
    ),
    ("llama4_pythonic", &["vllm-llama4_pythonic"]),
    ("pythonic", &["vllm-gemma3_pythonic", "vllm-llama3.2_pythonic"]),
    (
        "qwen",
        &[
            "Qwen-QwQ-32B",
            "Qwen-Qwen2.5-7B-Instruct",
            "Qwen-Qwen3-0.6B",
            "trl-qwen2_5_training",
            "trl-qwen3_instruct_2507",
            "trl-qwen3_training",
            "trl-qwen3_vl",
        ],
    ),
    ("seed_oss_xml", &["ByteDance-Seed-OSS"]),
    ("tool_code", &["google-gemma-3n-e2b-it-tools"]),
];

#[test]
fn families_are_found_by_their_templates() {
    let Some(folder) = shared("goldens/templates") else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jinja") {
            continue;
        }
        let id = path.file_stem().unwrap().to_str().unwrap();
        // Variants of a template have its name and more.
        let is_of = |(_, ids): &&(&str, &[&str])| ids.iter().any(|known| id.starts_with(known));
        let expected = TEMPLATES.iter().find(is_of).map_or("generic", |(family, _)| family);
        let source = std::fs::read_to_string(&path).unwrap();
        assert_eq!(lm_processors::detect(&source, "").name(), expected, "{id}");
    }
}
