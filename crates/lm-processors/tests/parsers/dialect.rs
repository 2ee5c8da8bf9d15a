//! Results of the tag dialect on whole replies: one row per rule.

use crate::parsers::common::{Broken, Sum, family, parse, sum, with_a_tool};
use lm_processors::{Error, OnMalformed, ParserOptions, ProcessorEvent};
use serde_json::json;

const CALL: &str = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";

fn read(name: &str, reply: &str) -> Sum {
    sum(parse(family(name), &with_a_tool(OnMalformed::Error, ""), [reply]), Broken::Error)
}

#[test]
fn text_around_calls() {
    let cases: &[(&str, &str, &str, usize)] = &[
        ("qwen", "Let me see.\n{CALL}", "Let me see.", 1),
        ("hermes", "Let me see.\n{CALL}", "Let me see.", 1),
        ("hermes", "Let me see.\n<tool_call>{\"name\": \"f\"}</tool_call>", "Let me see.\n", 1),
        ("qwen", "{CALL}\n{CALL}\n", "", 2),
        ("qwen", "\n\n{CALL}", "", 1),
        ("qwen", "{CALL}\nDone.", "\nDone.", 1),
        ("qwen", "<think>\nWhy?\n</think>\n\n{CALL}", "", 1),
        ("qwen", "<think>\nWhy?\n</think>\n\nBecause.\n", "Because.\n", 0),
        ("qwen", "<think>{CALL}</think>No call.", "No call.", 0),
        ("generic", "{CALL}", CALL, 0),
        ("gemma4", "\n  Let me see. \n", "\n  Let me see. \n", 0),
    ];
    for (name, reply, text, calls) in cases {
        let got = read(name, &reply.replace("{CALL}", CALL));
        assert_eq!((got.text.as_str(), got.calls.len()), (*text, *calls), "{name}: {reply}");
        assert!(got.malformed.is_empty(), "{name}: {reply}");
    }
}

#[test]
fn text_without_tools_is_not_a_call() {
    let message = family("qwen").to_message(CALL, &ParserOptions::default()).unwrap();
    assert_eq!((message.content.text().as_str(), message.tool_calls.len()), (CALL, 0));
}

#[test]
fn malformed_calls_are_errors_or_text() {
    let cases = [
        ("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\"", "it is unfinished"),
        ("<tool_call>nonsense</tool_call>", "it does not begin as a JSON object"),
        ("<tool_call>{\"arguments\": {}}</tool_call>", "tool_call: missing key `name`"),
        ("<tool_call>[]</tool_call>", "the list of calls is empty"),
        ("<tool_call>{\"name\": \"f\n</tool_call>", "unterminated string or comment"),
    ];
    for (reply, reason) in cases {
        let reply = format!("a\n{reply}");
        let got = read("qwen", &reply);
        assert_eq!((got.text.trim_end(), got.malformed), ("a", vec![reason.to_owned()]), "{reply}");
        let options = with_a_tool(OnMalformed::Text, "");
        assert_eq!(family("qwen").to_message(&reply, &options).unwrap().content.text(), reply);
        let error = family("qwen").to_message(&reply, &with_a_tool(OnMalformed::Error, "")).unwrap_err();
        assert!(matches!(error, Error::MalformedToolCall { .. }), "{reply}: {error}");
    }
}

#[test]
fn complete_call_without_closing_tag_is_a_call() {
    let got = read("qwen", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool");
    assert_eq!(got.calls, [json!({"name": "f", "arguments": {}})]);
}

/// Text after a whole call between its markers is text, and does not invalidate the call.
#[test]
fn text_inside_call_markers_is_text() {
    let got = read("qwen", "<tool_call>{\"name\": \"f\"} and more</tool_call>");
    assert_eq!((got.text.as_str(), got.calls.len(), got.malformed.len()), (" and more", 1, 0));
}

/// A fault after the first call of a list leaves that call valid, once.
#[test]
fn calls_before_a_fault_are_not_repeated_as_text() {
    let reply = "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": }]";
    let got = sum(parse(family("mistral_json"), &with_a_tool(OnMalformed::Text, ""), [reply]), Broken::Text);
    assert_eq!((got.text.as_str(), got.calls.len()), (", {\"name\": }]", 1));
}

#[test]
fn numbering_continues_after_a_malformed_call() {
    let reply = format!("<tool_call>{{\"name\": \"f\", \"arguments\": {{}} x</tool_call>{CALL}");
    let events = parse(family("qwen"), &with_a_tool(OnMalformed::Error, ""), [reply.as_str()]);
    let last = events.last().unwrap();
    assert!(matches!(last, ProcessorEvent::ToolCall { index: 1, .. }), "{events:?}");
}

#[test]
fn events_of_a_call_in_order() {
    let events = parse(family("qwen"), &with_a_tool(OnMalformed::Error, ""), ["Hi\n", CALL]);
    let arguments = json!({"x": 1}).as_object().unwrap().clone();
    assert_eq!(
        events,
        [
            ProcessorEvent::Text("Hi".to_owned()),
            ProcessorEvent::ToolCallStarted { index: 0, name: Some("f".to_owned()), id: None },
            ProcessorEvent::ToolCallArguments { index: 0, fragment: "{\"x\": 1}".to_owned() },
            ProcessorEvent::ToolCall { index: 0, call: lm_processors::ToolCall::new("f", arguments) },
        ]
    );
}

#[test]
fn prompt_can_open_the_reasoning() {
    let qwen = family("qwen");
    assert!(qwen.opens_reasoning("<|im_start|>assistant\n<think>\n"));
    assert!(!qwen.opens_reasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    assert!(!qwen.opens_reasoning("<|im_start|>assistant\n"));
    let got = sum(
        parse(qwen, &with_a_tool(OnMalformed::Error, "<think>\n"), ["Hm.\n</think>\n\nYes."]),
        Broken::Error,
    );
    assert_eq!((got.reasoning.as_str(), got.text.as_str()), ("Hm.", "Yes."));
}

/// Template input of a message's content, for each family.
#[test]
fn messages_have_the_template_form() {
    let result = json!({"role": "tool", "content": {"temperature": 25, "unit": "C"}});
    let parts =
        json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    let cases = [
        ("qwen", &result, json!("{\"temperature\": 25, \"unit\": \"C\"}")),
        ("generic", &result, json!({"temperature": 25, "unit": "C"})),
        ("qwen", &parts, json!("ab")),
        ("generic", &parts, json!("ab")),
    ];
    for (name, message, content) in cases {
        let message = lm_processors::Message::from_json(message.clone()).unwrap();
        assert_eq!(family(name).message_to_template_input(&message).unwrap()["content"], content, "{name}");
    }
}

#[test]
fn unreadable_parts_of_a_text_model_are_named() {
    let message = json!({"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image", "path": "a.png"}]});
    let message = lm_processors::Message::from_json(message).unwrap();
    for processor in lm_processors::ALL.iter().map(|family| family.processor) {
        let error = processor.message_to_template_input(&message).unwrap_err();
        let expected =
            Error::UnsupportedPart { part: "image".to_owned(), index: 1, processor: processor.name() };
        assert_eq!(error, expected);
    }
}

#[test]
fn declarations_are_wrapped_if_the_family_expects_it() {
    let bare =
        lm_processors::ToolSpec::from_json(json!({"name": "f", "description": "F.", "parameters": {}}))
            .unwrap();
    let wrapped =
        json!([{"type": "function", "function": {"name": "f", "description": "F.", "parameters": {}}}]);
    assert_eq!(family("qwen").format_tools(std::slice::from_ref(&bare)), wrapped);
    assert_eq!(family("generic").format_tools(std::slice::from_ref(&bare)), json!([bare]));
    assert_eq!(family("qwen").format_tools(&[]), json!(null));
}

/// Without a marker, an object is a call only with arguments and without other keys; nothing of it is lost.
#[test]
fn non_call_object_is_text() {
    let texts = [
        "{\"name\": \"Bob\",\"age\":3}",
        "{\"name\": \"get_weather\"}",
        "{\"name\": \"get_weather\", \"parameters\": {\"a\": 1}, \"why\": \"so\"}",
        "See {\"name\": \"get_weather\", \"why\": {\"name\": \"get_weather\", \"parameters\": {}}}.",
    ];
    for name in ["llama3_json", "xlam_json"] {
        for text in texts {
            let text = if name == "xlam_json" {
                text.replace('{', "[{").replace('}', "}]")
            } else {
                text.to_owned()
            };
            let got = read(name, &text);
            assert_eq!(
                (got.text.as_str(), got.calls.len(), got.malformed.len()),
                (text.as_str(), 0, 0),
                "{name}"
            );
        }
    }
    let got = read(
        "llama3_json",
        "{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"a\": 1}}",
    );
    assert_eq!(got.calls, [json!({"name": "get_weather", "arguments": {"a": 1}})]);
    // With a marker, an object without arguments that has other keys is malformed.
    let got = read("hermes", "<tool_call>{\"name\": \"Bob\", \"age\": 3}</tool_call>");
    assert_eq!(got.malformed, ["`age` is not a key of a call"]);
}
