//! `lm parse` with the unchanged reference vectors, and with invalid lines.

use crate::shared;
use serde_json::{Value, json};

use crate::json_lines::{answers, failing, output, parsed};

fn joined(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn call_has_its_events() {
    let output = "Well.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": 12345678901234567890123}}\n</tool_call>";
    let line = json!({"format": "hermes", "output": output});
    let call = json!({"name": "now", "arguments": {"zone": 12345678901234567890123_u128 as f64}});
    let answer = answers("parse", &["--events"], &joined(&[line])).remove(0);
    assert_eq!((&answer["content"], &answer["tool_calls"][0]["name"]), (&json!("Well."), &call["name"]));
    let kinds: Vec<&str> = answer["events"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(kinds, ["text", "tool_call_started", "tool_call_arguments", "tool_call"]);
    assert_eq!(answer["events"][2]["fragment"], "{\"zone\": 12345678901234567890123}");
}

#[test]
fn invalid_lines_are_errors() {
    let lines = [
        json!({"output": "?"}),
        json!({"format": "no such format", "output": "?"}),
        json!({"format": "hermes"}),
        json!({"format": "hermes", "output": "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1", "options": {"partial": true}}),
    ];
    let answers = failing("parse", &[], joined(&lines).as_bytes(), "3 of 4 lines failed");
    let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("bad_line"), Some("bad_format"), Some("bad_line"), None]);
    assert_eq!(answers[3]["tool_calls"], json!([{"name": "f", "arguments_text": "{\"a\": 1"}]));
    assert_eq!(answers[3]["malformed"][0]["fault"], "unfinished");
}

#[test]
fn unknown_key_error_suggests_a_similar_one() {
    let lines = [
        json!({"format": "hermes", "output": "", "prompt_sufix": "<think>"}),
        json!({"format": "hermes", "output": "", "options": {"reasonning": "none"}}),
        json!({"format": "hermes", "output": "", "name": "n", "options": {"parallel_tool_calls": false}}),
    ];
    let answers = failing("parse", &[], joined(&lines).as_bytes(), "2 of 3 lines failed");
    for (answer, near) in answers.iter().zip(["prompt_suffix", "reasoning"]) {
        assert_eq!(answer["error"]["kind"], "bad_line");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.ends_with(&format!("(did you mean `{near}`?)")), "{message}");
    }
}

/// Lines of all vectors: as in the files, with the format and the kind of their file.
fn vectors() -> Option<Vec<Value>> {
    let folder = shared::path("goldens/parser")?;
    let mut lines = Vec::new();
    for kind in ["tools", "reasoning"] {
        for entry in std::fs::read_dir(folder.join(kind)).expect("a folder") {
            let file = shared::json(entry.expect("an entry").path());
            for vector in file["vectors"].as_array().expect("a list") {
                let mut line = vector.clone();
                (line["format"], line["kind"]) = (file["format"].clone(), file["kind"].clone());
                lines.push(line);
            }
        }
    }
    Some(lines)
}

#[test]
fn reference_vectors_are_accepted_as_input() {
    let Some(lines) = vectors() else { return };
    // Some vectors are of formats that are not supported.
    let answers = parsed(&output("parse", &[], joined(&lines).as_bytes()));
    assert_eq!(answers.len(), lines.len());
    let differs = |(line, answer): &(&Value, &Value)| {
        if answer["error"]["kind"] == "bad_format" {
            return false;
        }
        let expected = &line["expected"];
        let text = |key: &str| expected.get(key).map(|text| text.as_str().unwrap_or_default());
        let calls = expected["tool_calls"].as_array().map(Vec::len);
        text("content").is_some_and(|text| answer["content"] != text)
            || text("reasoning").is_some_and(|text| answer["reasoning"] != text)
            || calls.is_some_and(|calls| answer["tool_calls"].as_array().map(Vec::len) != Some(calls))
    };
    let name = |line: &Value| {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        (text("format"), text("name"))
    };
    let wrong: Vec<_> = lines.iter().zip(&answers).filter(differs).collect();
    for (line, answer) in &wrong {
        println!("{:?}: {answer}", name(line));
    }
    println!("{} of {} differ", wrong.len(), lines.len());
    let mut wrong: Vec<_> = wrong.into_iter().map(|(line, _)| name(line)).collect();
    let mut known: Vec<_> = [DEPARTURES, UNSAID]
        .concat()
        .into_iter()
        .map(|(format, name)| (format.to_owned(), name.to_owned()))
        .collect();
    wrong.sort();
    known.sort();
    assert_eq!(wrong, known);
}

/// Vectors that the parser deviates from even with complete inputs; the reasons are in the parsers' own test
/// of the vectors.
const DEPARTURES: &[(&str, &str)] = &[
    ("deepseek_v31", "deepseek-ai-DeepSeek-V3.1/145"),
    ("deepseek_v31", "deepseek_v31_parse_complete_extracts_raw_json_arguments"),
    ("mistral", "test_legacy_extract_tool_calls_guided_bare_array_required"),
    ("gemma4", "TestBareAndMalformedOpeners::test_bare_malformed_then_well_formed"),
    ("gemma4", "gemma4/1"),
    ("glm4_xml", "glm45_streaming_ignores_trailing_text_after_tool_calls"),
    ("hy_v3", "hy_v3_parse_complete_preserves_prefix_and_ignores_trailing_text"),
    ("lfm2_pythonic", "test_echoed_tool_call_body_not_leaked_to_content"),
    ("minimax_m2", "minimax_m2_parse_complete_preserves_prefix_and_ignores_trailing_text"),
    ("minimax_m2", "minimax_m2_streaming_ignores_text_after_tool_block"),
    ("minimax_m3", "minimax_m3_parse_complete_preserves_prefix_and_ignores_trailing_text"),
    ("mistral_args", "test_extract_tool_calls[trailing_text_after_args_json]"),
    ("mistral_args", "test_extract_tool_calls[trailing_text_after_json]"),
    ("qwen3_coder_xml", "TestNemotronSwap::test_swap_with_whitespace_only_content"),
    ("qwen3_coder_xml", "test_extract_tool_calls_non_streaming_mixed_content_and_multiple_tool_calls"),
];

/// Vectors whose source gives its parser inputs that the vector lacks: the declared tools, that no call is
/// wanted, that malformed calls are not text, or that the prompt has opened the reasoning.
const UNSAID: &[(&str, &str)] = &[
    ("dots", "test_non_stream_unknown_tool_is_left_as_content"),
    ("ernie45", "test_reasoning[without_think]"),
    ("gpt_oss", "openai-gpt-oss-120b/428"),
    ("kimi_k2", "test_extract_reasoning_tool_section_ends_reasoning"),
    ("minicpm5_xml", "test_duplicate_param_names_invalid"),
    ("minicpm5_xml", "test_extra_arguments_do_not_satisfy_required"),
    ("minicpm5_xml", "test_wrapped_arguments_still_validate_schema"),
    ("minimax_m2", "TestNonStreaming::test_invalid_tool_name_is_rejected"),
    ("mistral_json", "test_legacy_extract_tool_calls_none_with_tools"),
    ("qwen3_coder_xml", "TestNemotronSwap::test_no_swap_when_enable_thinking_true"),
];
