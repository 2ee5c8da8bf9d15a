//! Calls of real formats: a family's grammar accepts its well-formed ones, and rejects broken copies.

use std::collections::BTreeMap;

use lm_processors::{
    GrammarRequest, Layout, ModelDataProcessor, ParserOptions, ProcessorEvent, Thinking, ToolCall, ToolSpec,
    Value,
};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, verdict};
use crate::shared;

/// Replies that a parser accepts and a grammar does not write, with the reason.
const DEPARTURES: &[(&str, &str)] = &[
    ("granite4_long_string_args_stream_without_reparse", "arguments as the text of JSON"),
    ("granite4_string_args_split_across_chunks", "arguments as the text of JSON"),
    ("TestExtractToolCalls::test_incomplete_tool_call", "a closing marker is forgiven"),
    ("TestExtractToolCalls::test_missing_tool_suffix", "a closing marker is forgiven"),
    ("hermes_does_not_validate_or_normalize_arguments", "a comma before the last bracket"),
    ("internlm2_does_not_validate_or_normalize_arguments", "a comma before the last bracket"),
    ("kimi_k2_does_not_validate_or_normalize_arguments", "a comma before the last bracket"),
    ("mistral_does_not_validate_or_normalize_arguments", "a comma before the last bracket"),
    ("deepseek_v31_parse_complete_extracts_raw_json_arguments", "text after the calls is dropped"),
    ("test_tool_call[mixed_content_streaming_with_eos_gigachat31]", "an end token is dropped"),
    ("Kimi-K2-Thinking/228", "the calls end the reasoning"),
    ("Kimi-K2-Thinking/230", "a closing marker is forgiven"),
    ("TestExtractToolCalls::test_extract_tool_calls[no_functions_prefix]", "the prefix is forgiven"),
    ("test_extract_tool_calls[wrong_json]", "a marker is forgiven"),
    ("test_extract_tool_calls[trailing_text_after_json]", "text after the calls is dropped"),
    ("test_extract_tool_calls[trailing_text_after_args_json]", "text after the calls is dropped"),
    ("test_extract_tool_calls_parallel_malformed_then_well_formed", "the name is missing"),
    ("test_malformed_tool_call_matrix_non_streaming[mixed_wellformed_then_malformed]", "the name is missing"),
    ("test_extract_tool_calls_with_arguments", "the word that the broken copy renames is a value too"),
    ("gemma4/8", "a closing marker is forgiven"),
    ("glm45_streaming_ignores_trailing_text_after_tool_calls", "text after the calls is dropped"),
    ("openai-gpt-oss-120b/421", "a header's parts in another order"),
    ("openai-gpt-oss-120b/422", "a header's parts in another order"),
    ("openai-gpt-oss-120b/424", "a header without the kind of its text"),
    ("openai-gpt-oss-120b/426", "a closing marker is forgiven"),
    ("invoke/14", "a repeated parameter"),
    ("kv_tools/18", "a boolean as a number"),
    ("LFM2-8B-A1B/246", "JSON's constants in Python"),
    ("test_tool_call[more_types_streaming_json_literals]", "JSON's constants in Python"),
    ("test_tool_call[set_arg_streaming]", "a set as a list"),
    ("test_tool_call[nested_quote_streaming]", "quotes inside a text are forgiven"),
    ("test_tool_call[leading_zero_int_streaming]", "a number with a leading zero"),
    ("test_tool_call[nul_byte_string_arg_streaming]", "a control character in a string"),
    ("inclusionai-ling-3.0-flash/199", "the parameters in another order"),
    ("inclusionai-ling-3.0-flash/205", "the broken copies are texts, and a text is allowed"),
    (
        "minimax_m2_parse_complete_preserves_prefix_and_ignores_trailing_text",
        "text after the calls is dropped",
    ),
    ("minimax_m2_streaming_ignores_text_after_tool_block", "text after the calls is dropped"),
    ("MiniMax-M3/331", "elements in a text"),
    ("test_non_streaming_nested_tool_call", "a number with a leading zero"),
    ("Qwen3-Coder/119", "a marker is forgiven"),
    ("Qwen3-Coder/128", "the parameters in another order"),
    ("Qwen3-Coder/129", "the parameters in another order"),
    ("Qwen3-Coder/137", "the broken copy is a text, and a text is allowed"),
    (
        "test_extract_tool_calls_non_streaming_mixed_content_and_multiple_tool_calls",
        "text between the calls is dropped",
    ),
];

#[derive(Default)]
struct Counts {
    vectors: usize,
    accepted: usize,
    broken: BTreeMap<&'static str, (usize, usize)>,
}

#[test]
fn well_formed_calls_pass_and_broken_ones_stop() {
    let Some(folder) = shared::path("goldens/parser/tools") else { return };
    let compiler = Compiler::new();
    let mut missed = Vec::new();
    for family in lm_processors::ALL {
        let path = folder.join(format!("{}.json", family.processor.name()));
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let mut counts = Counts::default();
        for vector in file["vectors"].as_array().into_iter().flatten() {
            check(&compiler, family.processor, vector, &mut counts, &mut missed);
        }
        let broken: Vec<String> = counts
            .broken
            .iter()
            .map(|(kind, (stopped, all))| format!("{kind} stopped {stopped} of {all}"))
            .collect();
        println!(
            "{:28} {:3} of {:3} taken; {}",
            family.processor.name(),
            counts.accepted,
            counts.vectors,
            broken.join(", ")
        );
        missed.extend(
            counts
                .broken
                .iter()
                .filter(|(_, (stopped, all))| stopped < all)
                .map(|(kind, _)| format!("{}: a {kind} passed", family.processor.name())),
        );
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn check(
    compiler: &Compiler,
    processor: &dyn ModelDataProcessor,
    vector: &Value,
    counts: &mut Counts,
    missed: &mut Vec<String>,
) {
    let Some((tools, calls)) = well_formed(processor, vector) else { return };
    let output = vector["output"].as_str().expect("text");
    if DEPARTURES.iter().any(|(name, _)| vector["name"] == *name) {
        return;
    }
    counts.vectors += 1;
    let thinking = [Thinking::Allowed, Thinking::Open];
    let taken = thinking.into_iter().find_map(|thinking| {
        let request = GrammarRequest { tools: &tools, thinking, layout: Layout::Any, ..Default::default() };
        let grammar = processor.grammar(&request).expect("a grammar")?;
        let matcher = compiler
            .compile_grammar(&grammar.grammar)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", processor.name(), grammar.grammar.lark));
        (verdict(&matcher, output) == Verdict::Accepted).then_some(matcher)
    });
    let Some(matcher) = taken else {
        missed.push(format!("{}: {} is not taken: {:?}", processor.name(), vector["name"], head(output)));
        return;
    };
    counts.accepted += 1;
    for (kind, text) in broken(output, &calls) {
        let (stopped, all) = counts.broken.entry(kind).or_default();
        *all += 1;
        if verdict(&matcher, &text) == Verdict::Accepted {
            println!("{}: {} with a {kind} is taken: {:?}", processor.name(), vector["name"], head(&text));
        } else {
            *stopped += 1;
        }
    }
}

/// Tools and calls of a reply whose calls are complete, of declared tools, match them, and end the reply;
/// without a declaration, the tools are derived from the calls.
fn well_formed(processor: &dyn ModelDataProcessor, vector: &Value) -> Option<(Vec<ToolSpec>, Vec<ToolCall>)> {
    let expected = vector["expected"]["tool_calls"].as_array().filter(|calls| !calls.is_empty())?;
    let names = expected.iter().map(|call| call["name"].as_str()).collect::<Option<Vec<_>>>()?;
    if vector["options"]["partial"] == true {
        return None;
    }
    let declared = vector["tools"].as_array().map(|tools| {
        tools.iter().map(|tool| ToolSpec::from_json(tool.clone()).expect("a declaration")).collect::<Vec<_>>()
    });
    let named = || names.iter().map(|name| ToolSpec::new(*name, "", json!({}))).collect();
    let calls = calls_at_end(processor, declared.clone().unwrap_or_else(named), vector["output"].as_str()?)?;
    if !calls.iter().map(|call| call.name.as_str()).eq(names) {
        return None;
    }
    let mut calls = calls;
    for (call, expected) in calls.iter_mut().zip(expected) {
        if let Some(Value::Object(arguments)) = expected.get("arguments") {
            call.arguments = arguments.clone();
        }
    }
    let inferred = || {
        calls.iter().map(|call| ToolSpec::new(&call.name, "", schema_of(&json!(call.arguments)))).collect()
    };
    let tools: Vec<ToolSpec> = declared.unwrap_or_else(inferred);
    let fits = |call: &ToolCall| {
        let parameters = tools.iter().find(|tool| tool.name() == call.name).map(ToolSpec::parameters)?;
        let declared = call.arguments.keys().all(|key| parameters["properties"].get(key).is_some());
        (declared && jsonschema::is_valid(parameters, &json!(call.arguments))).then_some(())
    };
    calls.iter().try_for_each(fits)?;
    Some((tools, calls))
}

/// Calls of a reply in which nothing is malformed and nothing follows them: a grammar ends there.
fn calls_at_end(
    processor: &dyn ModelDataProcessor,
    tools: Vec<ToolSpec>,
    output: &str,
) -> Option<Vec<ToolCall>> {
    let mut parser = processor.parser(&ParserOptions { tools: tools.into(), ..Default::default() });
    let mut calls = Vec::new();
    for event in [parser.push(output), parser.finish()].concat() {
        match event {
            ProcessorEvent::ToolCall { call, .. } => calls.push(call),
            ProcessorEvent::Malformed { .. } => return None,
            ProcessorEvent::Text(text) if !calls.is_empty() && !text.trim().is_empty() => return None,
            _ => {}
        }
    }
    Some(calls)
}

fn head(text: &str) -> String {
    text.chars().take(600).collect()
}

/// A schema that `value` matches, without further types and keys.
fn schema_of(value: &Value) -> Value {
    match value {
        Value::Null => json!({"type": "null"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) if items.is_empty() => json!({"type": "array"}),
        Value::Array(items) => {
            json!({"type": "array", "items": {"anyOf": items.iter().map(schema_of).collect::<Vec<_>>()}})
        }
        Value::Object(map) => {
            let properties: serde_json::Map<_, _> =
                map.iter().map(|(key, value)| (key.clone(), schema_of(value))).collect();
            json!({"type": "object", "properties": properties, "required": map.keys().collect::<Vec<_>>()})
        }
    }
}

/// Copies of `output` with one fault in the last call.
fn broken(output: &str, calls: &[ToolCall]) -> Vec<(&'static str, String)> {
    let replaced = |from: &str, to: &str| {
        let at = output.rfind(from)?;
        Some(format!("{}{to}{}", &output[..at], &output[at + from.len()..]))
    };
    let call = calls.last().expect("a call");
    let name = call.arguments.keys().next().unwrap_or(&call.name);
    let renamed = replaced(name, &format!("{name}_x"));
    let is_text = |bracket: &str| calls.iter().any(|call| has_text(&json!(call.arguments), bracket));
    let bracket =
        ["}", ")", "]", ">"].into_iter().find(|bracket| output.contains(bracket) && !is_text(bracket));
    let lost = bracket.and_then(|bracket| replaced(bracket, ""));
    let number = call.arguments.values().find(|value| value.is_number()).map(Value::to_string);
    let mistyped = number.and_then(|number| replaced(&number, "\"zz\""));
    [("renamed key", renamed), ("lost bracket", lost), ("wrong type", mistyped)]
        .into_iter()
        .filter_map(|(kind, text)| Some((kind, text?)))
        .collect()
}

/// Returns true if a text in `value` contains `part`.
fn has_text(value: &Value, part: &str) -> bool {
    match value {
        Value::String(text) => text.contains(part),
        Value::Array(items) => items.iter().any(|item| has_text(item, part)),
        Value::Object(map) => map.values().any(|value| has_text(value, part)),
        _ => false,
    }
}
