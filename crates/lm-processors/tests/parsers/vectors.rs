//! Reference vectors of every format, whole and in any pieces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::parsers::common::{Broken, Sum, parse, sum};
use crate::shared;
use lm_processors::{
    CallBody, ModelDataProcessor, OnMalformed, ParserOptions, ReadCalls, ReasoningText, ToolSpec, by_name,
};
use serde_json::{Value, json};

/// Reason of the departures below whose source drops text after the calls.
const TRAILING: &str = "text after the calls is text; the source drops it";

/// Reason of the departures below whose source passes arguments on unread.
const COMMA: &str = "a comma before the last bracket is removed; the source passes the arguments on as text";

/// Vectors whose results differ here, with the reason.
const DEPARTURES: &[(&str, &str, &str)] = &[
    ("reka", "Reka-Edge/300", "the source writes a blank after the colon that the model did not write"),
    ("deepseek_v31", "deepseek-ai-DeepSeek-V3.1/145", "the line break after `</think>` is not reasoning"),
    ("gemma4", "gemma4/1", "the source trims the answer"),
    (
        "gemma4",
        "TestBareAndMalformedOpeners::test_bare_malformed_then_well_formed",
        "a text that is not a call is not read as a call of that name",
    ),
    (
        "lfm2_pythonic",
        "test_echoed_tool_call_body_not_leaked_to_content",
        "the source drops a call that is written again without its marker",
    ),
    (
        "qwen3_coder_xml",
        "test_extract_tool_calls_non_streaming_mixed_content_and_multiple_tool_calls",
        "text between two calls is text; the source loses it in whole replies and keeps it in streams",
    ),
    (
        "qwen3_coder_xml",
        "TestNemotronSwap::test_swap_with_whitespace_only_content",
        "the source takes reasoning for the answer where no answer follows",
    ),
    ("deepseek_v31", "deepseek_v31_parse_complete_extracts_raw_json_arguments", TRAILING),
    ("glm4_xml", "glm45_streaming_ignores_trailing_text_after_tool_calls", TRAILING),
    ("hy_v3", "hy_v3_parse_complete_preserves_prefix_and_ignores_trailing_text", TRAILING),
    ("minimax_m2", "minimax_m2_parse_complete_preserves_prefix_and_ignores_trailing_text", TRAILING),
    ("minimax_m2", "minimax_m2_streaming_ignores_text_after_tool_block", TRAILING),
    ("minimax_m3", "minimax_m3_parse_complete_preserves_prefix_and_ignores_trailing_text", TRAILING),
    ("mistral_args", "test_extract_tool_calls[trailing_text_after_json]", TRAILING),
    ("mistral_args", "test_extract_tool_calls[trailing_text_after_args_json]", TRAILING),
    (
        "mistral",
        "test_legacy_extract_tool_calls_guided_bare_array_required",
        "a call without a marker has the name of a declared tool",
    ),
    ("hermes", "hermes_does_not_validate_or_normalize_arguments", COMMA),
    ("internlm2", "internlm2_does_not_validate_or_normalize_arguments", COMMA),
    ("kimi_k2", "kimi_k2_does_not_validate_or_normalize_arguments", COMMA),
    ("mistral_json", "mistral_does_not_validate_or_normalize_arguments", COMMA),
    ("phi4_mini_json", "phi4mini_does_not_validate_or_normalize_arguments", COMMA),
];

/// Reasoning formats whose source passes to its parser that the prompt opened the reasoning.
const OPENED: &[(&str, &str)] =
    &[("ernie45", "<think>"), ("kimi_k2", "<think>"), ("qwen3_coder_xml", "<think>")];

/// Settings that the sources pass to their parsers and the vectors omit: no calls, or malformed calls are not
/// text.
const SOURCE_SETTINGS: &[(&str, &str, SourceSetting)] = &[
    ("mistral_json", "test_legacy_extract_tool_calls_none_with_tools", SourceSetting::NoCalls),
    ("gpt_oss", "openai-gpt-oss-120b/428", SourceSetting::MalformedIsNoText),
];

#[derive(Clone, Copy, PartialEq)]
enum SourceSetting {
    NoCalls,
    MalformedIsNoText,
}

/// Tools that the sources declare and the vectors omit.
fn declared(format: &str) -> Value {
    let tool = |name: &str, parameters: Value| json!({"name": name, "parameters": parameters});
    let string = json!({"type": "string"});
    match format {
        "dots" | "minimax_m2" => json!([
            tool("get_weather", json!({"properties": {"city": string}})),
            tool("set_location", json!({"properties": {"location": {"type": "object"}}})),
        ]),
        "minicpm5_xml" => json!([
            tool(
                "get_weather",
                json!({"properties": {"city": string, "date": string}, "required": ["city"]})
            ),
            tool("noop", json!({"properties": {"note": string}})),
            tool(
                "sum_values",
                json!({"properties": {"nums": {"type": "array"}, "exact": {"type": "boolean"}}})
            ),
            tool("write_file", json!({"properties": {"content": string}})),
        ]),
        _ => json!([]),
    }
}

fn options(kind: &str, format: &str, vector: &Value) -> ParserOptions {
    let suffix = vector["prompt_suffix"].as_str().unwrap_or_default();
    let source = &vector["options"];
    let thinking = source.get("enable_thinking").or(source.get("thinking"));
    let opened =
        OPENED.iter().find(|(name, _)| kind == "reasoning" && *name == format).map(|(_, tail)| *tail);
    let prompt_tail = match suffix {
        "" if thinking == Some(&Value::Bool(false)) => Some("".into()),
        "" => opened.map(Arc::from),
        suffix => Some(suffix.into()),
    };
    let name = vector["name"].as_str().unwrap_or_default();
    let setting = SOURCE_SETTINGS.iter().find(|row| (row.0, row.1) == (format, name)).map(|row| row.2);
    let from_source = declared(format);
    let tools = vector["tools"].as_array().or(from_source.as_array()).map(Vec::as_slice).unwrap_or_default();
    let calls = match source.get("tool_choice").and_then(Value::as_str) {
        Some("none") => ReadCalls::Never,
        _ if setting == Some(SourceSetting::NoCalls) => ReadCalls::Never,
        _ if kind == "reasoning" => ReadCalls::Never,
        _ => ReadCalls::Always,
    };
    ParserOptions {
        tools: tools.iter().map(|tool| ToolSpec::from_json(tool.clone()).expect("a declaration")).collect(),
        calls,
        prompt_tail,
        reasoning: if source["reasoning"] == "none" { ReasoningText::Inline } else { ReasoningText::Split },
        on_malformed: if setting == Some(SourceSetting::MalformedIsNoText) {
            OnMalformed::Error
        } else {
            OnMalformed::Text
        },
        on_unfinished: OnMalformed::Text,
        ..ParserOptions::default()
    }
}

/// Difference from the vector, if any.
fn differs(vector: &Value, got: &Sum) -> Option<String> {
    let expected = &vector["expected"];
    let text = |key: &str| expected.get(key).map(|text| text.as_str().unwrap_or_default());
    if let Some(content) = text("content").filter(|content| *content != got.text) {
        return Some(format!("content {content:?}, got {:?}", got.text));
    }
    if let Some(reasoning) = text("reasoning").filter(|reasoning| *reasoning != got.reasoning) {
        return Some(format!("reasoning {reasoning:?}, got {:?}", got.reasoning));
    }
    let calls = expected.get("tool_calls")?.as_array()?;
    if calls.len() != got.calls.len() {
        return Some(format!("{} calls, got {:?}", calls.len(), got.calls));
    }
    let wrong = calls.iter().zip(&got.calls).find(|(call, got)| !fits(call, got));
    wrong.map(|(call, got)| format!("call {call}, got {got}"))
}

fn fits(expected: &Value, got: &Value) -> bool {
    expected.as_object().expect("an object").iter().all(|(key, value)| match key.as_str() {
        "arguments_include" => value
            .as_object()
            .expect("an object")
            .iter()
            .all(|(key, value)| same(value, &got["arguments"][key])),
        _ => same(value, &got[key]),
    })
}

/// Numbers are compared by value: some write `5.0` as `5`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn read(processor: &dyn ModelDataProcessor, options: &ParserOptions, vector: &Value) -> Result<(), String> {
    let output = vector["output"].as_str().expect("text");
    let whole = parse(processor, options, [output]);
    let by_character = parse(processor, options, output.split_inclusive(|_| true));
    if whole != by_character {
        return Err(format!("whole {whole:?}\n by character {by_character:?}"));
    }
    // The longest vectors are cut at a thousand positions.
    let step = 1 + output.len() / 1000;
    for (at, _) in output.char_indices().step_by(step) {
        let halves = parse(processor, options, [&output[..at], &output[at..]]);
        if whole != halves {
            return Err(format!("whole {whole:?}\n cut at {at} {halves:?}"));
        }
    }
    if let Some(chunks) = vector.get("chunks").and_then(Value::as_array) {
        let chunks = parse(processor, options, chunks.iter().map(|chunk| chunk.as_str().expect("text")));
        if whole != chunks {
            return Err(format!("whole {whole:?}\n in its own pieces {chunks:?}"));
        }
    }
    let listed = vector["options"]["partial"] == true || writes_json(processor);
    let broken = match options.on_malformed {
        OnMalformed::Error => Broken::Error,
        OnMalformed::Text if vector["options"]["malformed"] == "text" => Broken::Text,
        OnMalformed::Text if listed => Broken::Listed,
        OnMalformed::Text => Broken::Text,
    };
    let sum = sum(whole, broken);
    differs(vector, &sum).map_or(Ok(()), Err)
}

/// Returns true if the text of arguments is the model's own: the sources then pass it on even if the call is
/// invalid.
fn writes_json(processor: &dyn ModelDataProcessor) -> bool {
    let calls = processor.dialect().map_or(&[][..], |dialect| dialect.calls);
    matches!(calls.first().map(|syntax| syntax.body), Some(CallBody::Json(_) | CallBody::Named(_)))
}

/// Reads all vectors of a file and records those that differ. Returns their number, or `None` for an unknown
/// format.
fn read_file(path: &Path, wrong: &mut Vec<String>) -> Option<usize> {
    let data: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
    let (kind, format) = (data["kind"].as_str().expect("text"), data["format"].as_str().expect("text"));
    let processor = by_name(format)?;
    let vectors = data["vectors"].as_array().expect("a list");
    for vector in vectors {
        let vector = &with_tools(vector, &data);
        let name = vector["name"].as_str().expect("text");
        let is_listed = DEPARTURES.iter().any(|(file, vector, _)| *file == format && *vector == name);
        let known = is_listed || vector.get("differs").is_some();
        match read(processor, &options(kind, format, vector), vector) {
            Err(difference) if !known => {
                wrong.push(format!("{kind}/{format}: {name}\n  {}\n  {difference}", vector["output"]));
            }
            Ok(()) if known => wrong.push(format!("{kind}/{format}: {name} is not a departure")),
            _ => {}
        }
    }
    Some(vectors.len())
}

/// A vector without tools of its own uses those of its file.
fn with_tools(vector: &Value, file: &Value) -> Value {
    let mut vector = vector.clone();
    if let (None, Some(tools)) = (vector.get("tools"), file.get("tools")) {
        vector["tools"] = tools.clone();
    }
    vector
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"))
}

/// Files of own vectors.
pub fn own_files() -> impl Iterator<Item = PathBuf> {
    files(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/processors")))
}

#[test]
fn reference_vectors() {
    let Some(folder) = shared::path("goldens/parser") else { return };
    let (mut vectors, mut wrong, mut unknown) = (0, Vec::new(), Vec::new());
    for kind in ["tools", "reasoning"] {
        for path in files(&folder.join(kind)) {
            match read_file(&path, &mut wrong) {
                Some(count) => vectors += count,
                None => unknown.push(path),
            }
        }
    }
    println!("{vectors} vectors, {} departures; formats not known: {unknown:?}", DEPARTURES.len());
    assert!(wrong.is_empty(), "{} of {vectors} vectors:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn own_vectors() {
    let (mut vectors, mut wrong) = (0, Vec::new());
    for path in own_files() {
        let read = read_file(&path, &mut wrong).unwrap_or_default();
        assert!(read > 0, "{path:?}: no vectors of a known format");
        vectors += read;
    }
    println!("{vectors} own vectors");
    assert!(wrong.is_empty(), "{} of {vectors} vectors:\n{}", wrong.len(), wrong.join("\n"));
}

/// Vectors whose authors knew neither the parser nor its vectors. `differs` is the reason for which one is
/// read differently.
#[test]
fn independent_vectors() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/processors/independent"));
    let (mut vectors, mut wrong, mut different) = (0, Vec::new(), 0);
    for path in files(folder) {
        let read = read_file(&path, &mut wrong).unwrap_or_default();
        assert!(read > 0, "{path:?}: no vectors of a known format");
        vectors += read;
        different += std::fs::read_to_string(path).expect("a file").matches("\n      \"differs\": ").count();
    }
    println!("{} of {vectors} independent vectors as expected", vectors - different);
    assert!(wrong.is_empty(), "{} of {vectors} vectors:\n{}", wrong.len(), wrong.join("\n"));
}

/// Family of each published template; unlisted ones are generic.
const TEMPLATES: &[(&str, &[&str])] = &[
    (
        "deepseek_v3",
        &[
            "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
            "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
            "llama-cpp-deepseek-r1",
            "trl-deepseekv3_training",
            "vllm-deepseekr1",
            "vllm-deepseekv3",
        ],
    ),
    ("deepseek_v31", &["deepseek-ai-DeepSeek-V3.1", "vllm-deepseekv31"]),
    ("functionary_v31", &["meetkai-functionary-medium-v3.1"]),
    ("functionary_v32", &["meetkai-functionary-medium-v3.2"]),
    ("functiongemma", &["google-function-gemma-hf", "vllm-functiongemma"]),
    ("functiongemma_preformatted", &["google-function-gemma", "google-function-gemma-mobile-actions"]),
    (
        "gemma4",
        &[
            "google-gemma-4-31B-it",
            "google-gemma-4-31B-it-interleaved",
            "google-gemma-4-multi-prefill",
            "trl-diffusion_gemma",
            "trl-gemma4_v5",
            "vllm-gemma4",
        ],
    ),
    ("gpt_oss", &["openai-gpt-oss-120b"]),
    ("lfm2_pythonic", &["LFM2-8B-A1B", "LFM2.5-8B-A1B", "LFM2.5-Instruct", "trl-lfm2_v2"]),
    (
        "qwen3_coder_xml",
        &[
            "Qwen-Qwen3-Coder-30B-A3B-Instruct",
            "Qwen-Qwen3.5-0.8B",
            "Qwen3-Coder",
            "Qwen3.5-4B",
            "trl-qwen3_6",
            "trl-qwen3_8",
            "vllm-qwen3coder",
        ],
    ),
    (
        "hermes",
        &[
            "HuggingFaceTB-SmolLM3-3B-2",
            "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
            "mistralrs-smollm3",
            "vllm-hermes",
        ],
    ),
    (
        "llama3_json",
        &[
            "axolotl-llama3_2_vision",
            "axolotl-llama4",
            "meta-llama-Llama-3.1-8B-Instruct",
            "meta-llama-Llama-3.2-3B-Instruct",
            "vllm-llama3.1_json",
            "vllm-llama3.2_json",
            "vllm-llama4_json",
        ],
    ),
    ("llama4_pythonic", &["vllm-llama4_pythonic"]),
    (
        "mistral_args",
        &[
            "Mistral-Small-3.2-24B-Instruct-2506",
            "mistralai-Ministral-3-14B-Reasoning-2512",
            "unsloth-mistral-Devstral-Small-2507",
        ],
    ),
    (
        "mistral_json",
        &[
            "Mistral-Large-Instruct-2407",
            "axolotl-mistral_v2v3",
            "mistralai-Mistral-Nemo-Instruct-2407",
            "mistralrs-mistral_nemo_tool_call",
            "mistralrs-mistral_small_tool_call",
            "vllm-mistral",
            "vllm-mistral3",
            "vllm-mistral_parallel",
        ],
    ),
    ("phi4_mini", &["microsoft-Phi-4-mini-instruct", "vllm-phi4_mini"]),
    ("pythonic", &["vllm-gemma3_pythonic", "vllm-llama3.2_pythonic"]),
    (
        "qwen",
        &[
            "Qwen-QwQ-32B",
            "Qwen-Qwen2.5-7B-Instruct",
            "Qwen-Qwen3-0.6B",
            "Qwen-Qwen3-0.6B-2",
            "trl-qwen2_5_training",
            "trl-qwen3_instruct_2507",
            "trl-qwen3_training",
            "trl-qwen3_vl",
        ],
    ),
    ("seed_oss_xml", &["ByteDance-Seed-OSS"]),
    ("think_tags", &["HuggingFaceTB-SmolLM3-3B", "axolotl-phi_4"]),
    ("tool_code", &["google-gemma-3n-e2b-it-tools", "google-gemma-3n-e2b-it-tools-multi-prefill"]),
];

#[test]
fn families_are_detected_by_template() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jinja") {
            continue;
        }
        let id = path.file_stem().unwrap().to_str().unwrap();
        let is_of = |(_, ids): &&(&str, &[&str])| ids.contains(&id);
        let expected = TEMPLATES.iter().find(is_of).map_or("generic", |(family, _)| family);
        let source = std::fs::read_to_string(&path).unwrap();
        assert_eq!(lm_processors::detect(&source, "").name(), expected, "{id}");
    }
}
