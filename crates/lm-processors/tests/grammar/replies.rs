//! Whole replies: modes, channels, formats.

use lm_processors::{Calls, GrammarRequest, Layout, ResponseFormat, Thinking, ToolChoice, ToolSpec};
use serde_json::json;

use crate::common::{Compiler, Verdict, grammar_of, verdict};

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
    let compiler = Compiler::new();
    let grammar = grammar_of("hermes", request).expect("a grammar");
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
fn auto_is_text_or_text_and_calls() {
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
fn required_is_calls_only() {
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
fn none_is_text_without_calls() {
    let tools = tools();
    let request = GrammarRequest { tools: &tools, choice: ToolChoice::None, ..Default::default() };
    check(&request, &["", "Text.", "<tool", "<think>\na\n</think>b"], &[PARIS, "a<tool_call>b"]);
}

#[test]
fn a_response_format_stands_in_the_text_s_place() {
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
fn other_formats_stand_there_too() {
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
    check(&request, &[&reply], &[PARIS, "I", "I</think>"]);
    let request = GrammarRequest { thinking: Thinking::Forbidden, ..request };
    check(&request, &[PARIS], &[&reply, &format!("<think>\n</think>{PARIS}")]);
}

#[test]
fn any_layout_is_what_the_parser_reads() {
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
fn what_cannot_be_asked_is_an_error() {
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
