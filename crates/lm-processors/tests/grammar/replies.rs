//! Whole replies: modes, channels, formats.

use lm_processors::{Calls, GrammarRequest, Layout, ResponseFormat, Thinking, ToolChoice, ToolSpec};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, grammar_of, verdict};

fn tools() -> Vec<ToolSpec> {
    let weather = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}}, "required": ["city"]});
    vec![
        ToolSpec::new("get_weather", "The weather.", weather),
        ToolSpec::new("get_time", "The time.", json!({})),
    ]
}

const PARIS: &str =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>";
const TIME: &str = "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>";

fn check(request: &GrammarRequest<'_>, accepted: &[&str], stopped: &[&str]) {
    check_in("hermes", request, accepted, stopped);
}

fn check_in(family: &str, request: &GrammarRequest<'_>, accepted: &[&str], stopped: &[&str]) {
    let compiler = Compiler::new();
    let grammar = grammar_of(family, request).expect("a grammar");
    let matcher = compiler
        .compile_grammar(&grammar.grammar)
        .unwrap_or_else(|error| panic!("{error}\n{}", grammar.grammar.lark));
    for text in accepted {
        assert_eq!(verdict(&matcher, text), Verdict::Accepted, "{text}\n{}", grammar.grammar.lark);
    }
    for text in stopped {
        assert_ne!(verdict(&matcher, text), Verdict::Accepted, "{text}\n{}", grammar.grammar.lark);
    }
}

#[test]
fn auto_allows_text_and_calls() {
    let tools = tools();
    let request = GrammarRequest { tools: &tools, ..Default::default() };
    let think = format!("<think>\nI <tool_call> not.\n</think>\n\nSo: {PARIS}");
    let both = format!("{PARIS}\n{TIME}");
    let (after, unknown) = (format!("{PARIS} Done."), PARIS.replace("get_weather", "get_whether"));
    let wrong = PARIS.replace("\"Paris\"", "7");
    let more = PARIS.replace("\"Paris\"", "\"Paris\", \"unit\": \"C\"");
    check(
        &request,
        &["", "Just text, with a < b and {braces}.", PARIS, &both, &think, "<think>\nHm.\n</think>\n\nYes."],
        &[&after, &unknown, &wrong, &more, "<tool_call>", &PARIS[..40]],
    );
}

#[test]
fn required_allows_only_calls() {
    let tools = tools();
    let request = GrammarRequest { tools: &tools, choice: ToolChoice::Required, ..Default::default() };
    let text = format!("Well: {PARIS}");
    check(&request, &[PARIS, TIME], &["", "Text.", &text]);
    let request = GrammarRequest { calls: Calls::One, ..request };
    check(&request, &[TIME], &[&format!("{PARIS}\n{TIME}")]);
    let request = GrammarRequest { choice: ToolChoice::Named("get_time".into()), ..request };
    check(&request, &[TIME], &[PARIS]);
}

#[test]
fn none_allows_only_text() {
    let tools = tools();
    let request = GrammarRequest { tools: &tools, choice: ToolChoice::None, ..Default::default() };
    check(&request, &["", "Text.", "<tool", "<think>\na\n</think>b"], &[PARIS, "a<tool_call>b"]);
}

#[test]
fn response_format_replaces_the_text() {
    let tools = tools();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let format = Some(ResponseFormat::JsonSchema(schema));
    let request = GrammarRequest { tools: &tools, response_format: format, ..Default::default() };
    let thought = format!("<think>\nHm.\n</think>\n\n{PARIS}");
    check(
        &request,
        &["{\"n\": 5}", "{\"n\":5}", PARIS, &thought, "<think>\n</think>{\"n\": 5}"],
        &["", "Text.", "{}", "{\"n\": \"5\"}"],
    );
    let request = GrammarRequest { tools: &[], ..request };
    check(&request, &["{\"n\": 5}"], &[PARIS]);
}

#[test]
fn other_formats_replace_the_text() {
    let tools = tools();
    let cases = [
        (ResponseFormat::Regex("[0-9]+/[0-9]+".into()), "1/12", "1-2"),
        (ResponseFormat::Choice(vec!["yes".into(), "no \"maybe\"".into()]), "no \"maybe\"", "perhaps"),
        (ResponseFormat::Lark("start: a+ \"}\"\na: \"{\" | /x/".into()), "{x{}", "}"),
        (ResponseFormat::JsonObject, "{\"a\": [1, {\"b\": null}]}", "[]"),
    ];
    for (format, right, wrong) in cases {
        let request = GrammarRequest { tools: &tools, response_format: Some(format), ..Default::default() };
        check(&request, &[right, PARIS, &format!("<think>a</think>{right}")], &[wrong, ""]);
    }
}

/// If a call is JSON without a marker, an answer never starts like a call of an offered tool.
#[test]
fn answer_does_not_start_as_a_bare_call() {
    let tools = tools();
    let format = Some(ResponseFormat::JsonObject);
    let request = GrammarRequest { tools: &tools, response_format: format, ..Default::default() };
    check_in(
        "llama3_json",
        &request,
        &[
            "{\"name\": \"get_time\", \"parameters\": {}}",
            "{\"name\": \"get_tim\", \"parameters\": {}}",
            "{\"name\": {\"a\": 1}}",
            "{\"a\": 1, \"b\": 2}",
            "{}",
        ],
        &[
            "{\"name\": \"get_time\", \"parameters\": {\"a\": 1}}",
            "{\"name\":\"get_time\"}",
            "{\"name\": \"get_time\", \"a\": 1}",
        ],
    );
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"enum": ["get_time", "x"]}},
        "required": ["name"], "additionalProperties": false});
    let request = GrammarRequest { response_format: Some(ResponseFormat::JsonSchema(schema)), ..request };
    check_in(
        "llama3_json",
        &request,
        &["{\"name\": \"x\"}", "{\"id\": 1, \"name\": \"x\"}"],
        &["{\"name\": \"get_time\"}", "{\"name\":\"get_time\"}"],
    );
    let schema = json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
    let request = GrammarRequest { response_format: Some(ResponseFormat::JsonSchema(schema)), ..request };
    check_in(
        "xlam_json",
        &request,
        &["[]", "[{\"name\": \"x\"}]", "[{\"name\": \"get_time\", \"arguments\": {}}]"],
        &["[{\"name\": \"get_time\"}]", "[{\"name\": \"get_time\", \"arguments\": 1}]"],
    );
    let format = Some(ResponseFormat::JsonObject);
    let request = GrammarRequest { response_format: format, ..request };
    check_in(
        "generic_json",
        &request,
        &[
            "{\"tool_call\": {\"name\": \"get_time\", \"arguments\": {}}}",
            "{\"a\": 1, \"b\": 2}",
            "{\"tool_cal\": 1}",
        ],
        &["{\"tool_call\": 1}", "{\"tool_call\":{}}"],
    );
    let only = json!({"type": "object", "properties": {"name": {"const": "get_time"}}, "required": ["name"]});
    let request = GrammarRequest { response_format: Some(ResponseFormat::JsonSchema(only)), ..request };
    let error = grammar_of("llama3_json", &request).expect_err("no answer is left");
    assert!(matches!(error, lm_processors::Error::AnswerLikeCall { .. }), "{error}");
    let request = GrammarRequest { choice: ToolChoice::None, ..request };
    check_in("llama3_json", &request, &["{\"name\": \"get_time\"}"], &["{}"]);
}

/// Patterns and listed answers do not start like calls or channels that ordinary text can spell.
#[test]
fn answer_does_not_start_as_a_marker() {
    let tools = tools();
    let format = Some(ResponseFormat::Regex("(?s:.)*".to_owned()));
    let request = GrammarRequest { tools: &tools, response_format: format, ..Default::default() };
    check(&request, &["a<tool_call>b", "<tool_cal", PARIS], &["<tool_call>b", "<think>b"]);
    check_in("llama4_pythonic", &request, &["a[get_time()]", "[get_time()]"], &["[get_time(1)]", "[a"]);
    let list = GrammarRequest {
        response_format: Some(ResponseFormat::Regex("\\[[a-z]+\\]".to_owned())),
        ..request.clone()
    };
    let error = grammar_of("llama4_pythonic", &list).expect_err("every answer begins as a call");
    assert!(matches!(error, lm_processors::Error::AnswerLikeCall { .. }), "{error}");
    let choice = vec!["<tool_call>".to_owned(), "<think>a</think>".to_owned()];
    let request = GrammarRequest { response_format: Some(ResponseFormat::Choice(choice)), ..request };
    let error = grammar_of("hermes", &request).expect_err("an answer begins as a call");
    assert!(matches!(error, lm_processors::Error::AnswerLikeCall { .. }), "{error}");
    let request = GrammarRequest { choice: ToolChoice::None, ..request };
    check(&request, &["<tool_call>", "<think>a</think>"], &["<think>b</think><tool_call>"]);
}

#[test]
fn open_reasoning_ends_before_the_answer() {
    let tools = tools();
    let request = GrammarRequest {
        tools: &tools,
        thinking: Thinking::Open,
        choice: ToolChoice::Required,
        ..Default::default()
    };
    let reply = format!("I\n</think>\n\n{PARIS}");
    let again = format!("I\n</think>\n\n<think>\nI\n</think>\n\n{PARIS}");
    check(&request, &[&reply], &[PARIS, "I", "I</think>", &again]);
    let request = GrammarRequest { thinking: Thinking::Allowed, ..request };
    check(&request, &[PARIS, &format!("<think>\n{reply}")], &[&format!("<think>\n{again}")]);
    let request = GrammarRequest { thinking: Thinking::Forbidden, ..request };
    check(&request, &[PARIS], &[&reply, &format!("<think>\n</think>{PARIS}")]);
}

#[test]
fn every_layout_is_parsed() {
    let tools = tools();
    let request = GrammarRequest { tools: &tools, layout: Layout::Any, ..Default::default() };
    let compact =
        "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\",\"days\":3}}</tool_call>\n";
    let turned =
        "<tool_call>\n{\"arguments\": {\n  \"city\" : \"Paris\" }, \"name\": \"get_weather\"}\n</tool_call>";
    check(
        &request,
        &[compact, turned, PARIS],
        &["<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"days\":3}}</tool_call>"],
    );
}

#[test]
fn unsupported_requests_are_errors() {
    let tools = tools();
    let named = ToolChoice::Named("other".into());
    let errors = [
        GrammarRequest { choice: ToolChoice::Required, ..Default::default() },
        GrammarRequest { tools: &tools, choice: named, ..Default::default() },
    ]
    .map(|request| grammar_of("hermes", &request).unwrap_err().to_string());
    assert_eq!(errors[0], "a tool call is required, but no tool is declared");
    assert_eq!(errors[1], "the tool `other` must be called, but is not declared");
}

/// A marker of messages, or of a call inside its section, is none in reasoning: the parser would end the
/// reasoning there.
#[test]
fn reasoning_excludes_its_end_marker() {
    let tools = tools();
    let auto = GrammarRequest { tools: &tools, thinking: Thinking::Allowed, ..Default::default() };
    check_in(
        "gpt_oss",
        &auto,
        &["<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So."],
        &[
            "<|channel|>analysis<|message|>Pa<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>{}<|end|><|start|>assistant",
            "<|channel|>analysis<|message|>Pa<|channel|>final<|message|>x<|end|><|start|>assistant",
        ],
    );
    let format = Some(ResponseFormat::JsonObject);
    let request = GrammarRequest { response_format: format, ..auto };
    check_in(
        "kimi_k2",
        &request,
        &["<think>Hm.</think>{\"a\": 1}"],
        &["<think>I could write <|tool_call_begin|> here.</think>{\"a\": 1}"],
    );
    check_in(
        "deepseek_dsml",
        &request,
        &["<think>Hm.</think>{\"a\": 1}"],
        &["<think>the tag <｜DSML｜invoke is</think>{\"a\": 1}"],
    );
}

/// Every syntax of calls that the parser reads is excluded from text, not only the one that the grammar
/// writes.
#[test]
fn text_excludes_markers_of_other_call_syntaxes() {
    let tools = tools();
    let request = GrammarRequest { tools: &tools, ..Default::default() };
    for (family, texts) in [
        ("deepseek_v3", &["a<｜tool_calls_begin｜>b"][..]),
        ("hy_v3", &["a<tool_calls:opensource>b"]),
        ("llama3_json", &["a<|python_tag|>b", "a<function=get_time>b"]),
    ] {
        check_in(family, &request, &["a<b"], texts);
    }
}

#[test]
fn open_reasoning_is_not_reopened() {
    let tools = tools();
    let format = Some(ResponseFormat::Regex("yes|no".into()));
    let request = GrammarRequest {
        tools: &tools,
        response_format: format,
        thinking: Thinking::Open,
        ..Default::default()
    };
    check(&request, &["I</think>yes"], &["I</think><think>I</think>yes"]);
}

#[test]
fn expression_matches_its_pattern() {
    let thinking = Thinking::Forbidden;
    let of = |regex: &str| GrammarRequest {
        response_format: Some(ResponseFormat::Regex(regex.into())),
        thinking,
        ..Default::default()
    };
    check(&of("(?s:.)*"), &["<think>b", ""], &[]);
    check(&of("a\\\\/b"), &["a\\/b"], &["a/b"]);
    let schema = json!({"type": "string", "maxLength": 65_536});
    let format = Some(ResponseFormat::JsonSchema(schema));
    let request = GrammarRequest { response_format: format, thinking, ..Default::default() };
    let text = |length: usize| format!("\"{}\"", "a".repeat(length));
    check(&request, &[&text(65_536)], &[&text(65_537)]);
}
