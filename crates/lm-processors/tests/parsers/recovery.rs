//! Recovery in replies without a grammar, and none in replies under a grammar.

use crate::parsers::common::{Broken, Sum, family, parse, sum};
use lm_processors::{OnMalformed, ParserOptions, ProcessorEvent, Recovery, ToolSpec};
use serde_json::{Value, json};

fn read(name: &str, recovery: Recovery, prompt_tail: &str, reply: &str) -> Sum {
    let string = json!({"type": "string"});
    let parameters = json!({"type": "object", "properties": {"town": string, "unit": string}});
    let options = ParserOptions {
        tools: [ToolSpec::new("forecast", "The weather to come.", parameters)].into(),
        prompt_tail: Some(prompt_tail.into()),
        on_malformed: OnMalformed::Text,
        on_unfinished: OnMalformed::Text,
        recovery,
        ..ParserOptions::default()
    };
    sum(parse(family(name), &options, [reply]), Broken::Text)
}

fn call(arguments: Value) -> Value {
    json!({"name": "forecast", "arguments": arguments})
}

const UNCLOSED: &str = "<tool_call>\n<function=forecast>\n<parameter=town>\nGraz\n<parameter=unit>\nC\n</parameter>\n</function>\n</tool_call>";

#[test]
fn first_closing_marker_ends_a_value_without_recovery() {
    let got = read("qwen3_coder_xml", Recovery::Off, "", UNCLOSED);
    assert_eq!(got.calls, [call(json!({"town": "Graz\n<parameter=unit>\nC"}))]);
    let mended = read("qwen3_coder_xml", Recovery::On, "", UNCLOSED);
    assert_eq!(mended.calls, [call(json!({"town": "Graz", "unit": "C"}))]);
}

#[test]
fn calls_in_reasoning_are_reasoning_without_recovery() {
    let reply = "I look.\n<tool_call>\n<function=forecast>\n</function>\n</tool_call>";
    let got = read("qwen3_coder_xml", Recovery::Off, "<think>\nSo: ", reply);
    assert_eq!((got.reasoning.as_str(), got.calls.len()), (reply, 0));
    let mended = read("qwen3_coder_xml", Recovery::On, "<think>\nSo: ", reply);
    assert_eq!((mended.reasoning.as_str(), mended.calls.len()), ("I look.", 1));
}

/// Neither prose about calls nor a call of an undeclared tool ends truncated reasoning.
#[test]
fn truncated_reasoning_without_a_call_is_reasoning() {
    let replies = [
        "I could write <tool_call> and then <function=forecast> and",
        "Like <tool_call>\n<function=other>\n</function>\n</tool_call> perhaps",
        "<function=forecast>\n<parameter=town>\nGr",
    ];
    for reply in replies {
        let got = read("qwen3_coder_xml", Recovery::On, "<think>\nSo: ", reply);
        assert_eq!((got.reasoning.as_str(), got.text.as_str(), got.calls.len()), (reply, "", 0), "{reply}");
    }
}

/// A plain element is a call's marker only inside its section.
#[test]
fn element_outside_its_section_is_text() {
    let reply = "<invoke name=\"forecast\"></invoke>";
    let got = read("minimax_m2", Recovery::On, "", reply);
    assert_eq!((got.text.as_str(), got.calls.len()), (reply, 0));
}

/// A reply without a call's markers loses nothing, whatever other markers it contains.
#[test]
fn stray_closing_markers_are_text() {
    let reply = "a </tool_call> b </function> c";
    for name in ["hermes", "qwen3_coder_xml", "glm4_xml", "minicpm5_xml"] {
        assert_eq!(read(name, Recovery::On, "", reply).text, reply, "{name}");
    }
}

/// Grammars write keys of any length where a pattern of names allows them.
#[test]
fn keys_under_a_grammar_can_be_long() {
    let key = "k".repeat(5000);
    for (name, reply) in [
        (
            "qwen3_coder_xml",
            format!(
                "<tool_call>\n<function=forecast>\n<parameter={key}>\n1\n</parameter>\n</function>\n</tool_call>"
            ),
        ),
        (
            "glm4_xml",
            format!("<tool_call>forecast<arg_key>{key}</arg_key><arg_value>1</arg_value></tool_call>"),
        ),
        ("gemma4", format!("<|tool_call>call:forecast{{{key}:1}}<tool_call|>")),
    ] {
        assert_eq!(read(name, Recovery::Off, "", &reply).calls, [call(json!({(key.as_str()): 1}))], "{name}");
    }
}

#[test]
fn round_bracket_starts_no_arguments_without_recovery() {
    let tools = [ToolSpec::new(
        "forecast",
        "",
        json!({"type": "object", "properties": {"town": {"type": "string"}}}),
    )];
    let options = ParserOptions { tools: tools.into(), recovery: Recovery::Off, ..ParserOptions::default() };
    let events =
        parse(family("gemma4"), &options, ["<|tool_call>call:forecast(town:<|\"|>Graz<|\"|>)<tool_call|>"]);
    assert!(matches!(&events[..], [ProcessorEvent::Malformed { index: None, .. }]), "{events:?}");
}

#[test]
fn unfinished_list_keeps_the_text_of_a_malformed_call() {
    let good = r#"{"name": "forecast", "arguments": {"town": "Graz"}}"#;
    let bad = r#"{"name": "forecast", "arguments": {}, "arguments": {}}"#;
    let got = read("mistral_json", Recovery::On, "", &format!("[TOOL_CALLS][{good}, {bad}, "));
    assert_eq!(got.calls, [call(json!({"town": "Graz"}))]);
    assert!(got.text.contains(r#""arguments": {}, "arguments""#), "{}", got.text);
}

/// Between markers a string may have a raw line break; in a reply that only looks like a call it may not.
#[test]
fn line_break_in_a_string_is_accepted_between_markers_alone() {
    let object = "{\"name\": \"forecast\", \"parameters\": {\"town\": \"Graz\nWien\"}}";
    let bare = read("llama3_json", Recovery::On, "", object);
    assert_eq!((bare.calls.len(), bare.text.as_str()), (0, object));
    let marked = object.replace("parameters", "arguments");
    let got = read("qwen", Recovery::On, "", &format!("<tool_call>\n{marked}\n</tool_call>"));
    assert_eq!(got.calls, [call(json!({"town": "Graz\nWien"}))]);
}

#[test]
fn repeated_key_of_an_undeclared_parameter_is_text_of_the_value() {
    let options = ParserOptions {
        tools: [ToolSpec::new("forecast", "", json!({"type": "object"}))].into(),
        prompt_tail: Some("".into()),
        ..ParserOptions::default()
    };
    let parameters = "<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n<parameter=a>\ny\n</parameter>\n";
    let reply = format!("<tool_call>\n<function=forecast>\n{parameters}</function>\n</tool_call>");
    let got = sum(parse(family("qwen3_coder_xml"), &options, [reply.as_str()]), Broken::Text);
    assert_eq!(got.calls[0]["arguments"]["b"], "x\n<parameter=a>\ny");
}

/// Templates of Qwen2.5 show calls in doubled braces.
#[test]
fn doubled_braces_of_a_marked_call_are_accepted() {
    let object = r#"{"name": "forecast", "arguments": {"town": "Graz {old {town}}"}}"#;
    for reply in [
        format!("<tool_call>\n{{{object}}}\n</tool_call>"),
        format!("<tool_call>{{{object}\n}}</tool_call>"),
        format!("<tool_call>\n```json\n{{{object}}}\n```\n</tool_call>"),
        format!("<tool_call>\n{{{object}}}\n</tool_call>\n<tool_call>\n{object}\n</tool_call>"),
    ] {
        let got = read("qwen", Recovery::On, "", &reply);
        let expected = call(json!({"town": "Graz {old {town}}"}));
        assert!(!got.calls.is_empty() && got.calls.iter().all(|call| *call == expected), "{reply}");
        assert_eq!(got.text.trim(), "", "{reply}");
    }
}

/// Gemma's strings have no escapes: a delimiter is recovered where one reading is left.
#[test]
fn lost_string_delimiter_is_recovered_or_malformed() {
    let text = json!({"type": "string"});
    let properties = json!({"town": text, "note": text, "days": {"type": "integer"}});
    let tools = [ToolSpec::new("forecast", "", json!({"type": "object", "properties": properties}))];
    let options = ParserOptions { tools: tools.into(), ..ParserOptions::default() };
    let read = |arguments: &str| {
        let reply = format!("<|tool_call>call:forecast{{{arguments}}}<tool_call|>");
        let whole = sum(parse(family("gemma4"), &options, [reply.as_str()]), Broken::Text);
        let pieces = sum(parse(family("gemma4"), &options, reply.split_inclusive(|_| true)), Broken::Text);
        assert_eq!(whole.calls, pieces.calls, "{arguments}");
        whole.calls.first().map(|call| call["arguments"].clone())
    };
    for (arguments, expected) in [
        ("town:Graz, Styria@,days:2", json!({"town": "Graz, Styria", "days": 2})),
        ("days:2,town:Wien@", json!({"days": 2, "town": "Wien"})),
        ("town:Graz (old),note:@a, b@", json!({"town": "Graz (old)", "note": "a, b"})),
        ("town:Linz@,note:@x:y@", json!({"town": "Linz", "note": "x:y"})),
        ("town:@Graz@days:2", json!({"town": "Graz", "days": 2})),
        ("town:@Graz@ note:@x@", json!({"town": "Graz", "note": "x"})),
    ] {
        assert_eq!(read(&arguments.replace('@', "<|\"|>")), Some(expected), "{arguments}");
    }
    for arguments in [
        "town:@Graz,days:2",
        "town:@Graz,note:@x@",
        "town:@Graz,note:@days:2",
        "town:@Graz@x",
        "town:@Graz@unknown:2",
        "town:@@Graz@",
        "town:Graz@x",
    ] {
        assert_eq!(read(&arguments.replace('@', "<|\"|>")), None, "{arguments}");
    }
}

#[test]
fn next_parameter_ends_an_empty_value() {
    let reply = "<tool_call>\n<function=forecast>\n<parameter=town>\n<parameter=unit>\nC\n</parameter>\n</function>\n</tool_call>";
    let got = read("qwen3_coder_xml", Recovery::On, "", reply);
    assert_eq!(got.calls, [call(json!({"town": "", "unit": "C"}))]);
}
