//! Events of calls: indices, ids, names and fragments.

use lm_processors::{
    ALL, GrammarRequest, OnMalformed, ParserOptions, ProcessorEvent, ReasoningText, ReplyForm,
    ResponseFormat, ToolCall, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::grammar::writer;
use crate::parsers::common::{family, parse, with_a_tool};

fn tool() -> ToolSpec {
    let properties = json!({"city": {"type": "string"}, "days": {"type": "integer"}});
    ToolSpec::new(
        "get_weather",
        "",
        json!({"type": "object", "properties": properties, "required": ["city"]}),
    )
}

fn options(tail: &str) -> ParserOptions {
    ParserOptions { tools: [tool()].into(), ..with_a_tool(OnMalformed::Error, tail) }
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

/// The calls of a reply, each assembled from its events, whose index must be its position.
fn calls(events: &[ProcessorEvent]) -> Vec<ToolCall> {
    let (mut calls, mut started, mut fragments): (Vec<ToolCall>, _, _) = (Vec::new(), None, String::new());
    for event in events {
        match event {
            ProcessorEvent::ToolCallStarted { index, name, id } => {
                assert_eq!(*index, calls.len(), "{events:?}");
                (started, fragments) = (Some((name, id)), String::new());
            }
            ProcessorEvent::ToolCallArguments { index, fragment } => {
                assert_eq!(*index, calls.len(), "{events:?}");
                fragments += fragment;
            }
            ProcessorEvent::ToolCall { index, call } => {
                assert_eq!(*index, calls.len(), "{events:?}");
                let (name, id) = started.take().expect("a call starts once");
                assert!(name.as_ref().is_none_or(|name| *name == call.name), "{events:?}");
                assert!(id.is_none() || *id == call.id, "{events:?}");
                let sent: Value = serde_json::from_str(&fragments).expect("fragments are JSON");
                assert_eq!(sent, Value::Object(call.arguments.clone()), "{events:?}");
                calls.push(call.clone());
            }
            _ => {}
        }
    }
    calls
}

#[test]
fn calls_are_numbered_in_every_dialect() {
    let written = ["Graz", "Linz", "Wels"]
        .map(|city| ToolCall::new("get_weather", arguments(json!({"city": city, "days": city.len()}))));
    for processor in ALL.iter().map(|family| family.processor) {
        let dialect = processor.dialect().expect("a dialect");
        let Some(reply) = writer::reply(dialect, &written, &[tool()]) else { continue };
        let read = calls(&parse(processor, &options(""), [&*reply]));
        let read: Vec<_> = read.iter().map(|call| (&call.name, &call.arguments)).collect();
        let expected: Vec<_> = written.iter().map(|call| (&call.name, &call.arguments)).collect();
        assert_eq!(read, expected, "{}: {reply}", processor.name());
    }
}

/// Arguments of the calls, text, and number of malformed calls of a reply, one row a rule.
#[test]
fn readers_follow_their_rules() {
    let graz = || json!({"city": "Graz"});
    let cases: [(&str, &str, Vec<Value>, &str, usize); 11] = [
        (
            "k2_horizon",
            "<ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key>\
             <ifm|arg_value>Linz</ifm|arg_value></ifm|tool_call><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key>\
             <ifm|arg_value>Wels</ifm|arg_value></ifm|tool_call>x</ifm|tool_calls>\
             <ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key>\
             <ifm|arg_value>Graz</ifm|arg_value></ifm|tool_call></ifm|tool_calls>",
            vec![graz()],
            "",
            1,
        ),
        // A malformed call rejects its section, whose calls do not count.
        (
            "k2_horizon",
            "<ifm|tool_calls><ifm|tool_call>get_weather</ifm|tool_call>x</ifm|tool_calls>\
             <ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key>\
             <ifm|arg_value>Graz</ifm|arg_value></ifm|tool_call></ifm|tool_calls>",
            vec![graz()],
            "",
            1,
        ),
        // Positional arguments are those of the schema, in its order.
        ("pythonic", "[get_weather('Graz', 3)]", vec![json!({"city": "Graz", "days": 3})], "", 0),
        ("pythonic", "[default_api.get_weather(city='Graz')]", vec![graz()], "", 0),
        // A name alone is not a call in braces.
        ("gemma4", "<|tool_call>get_town<tool_call|>", vec![], "", 1),
        // A parameter that was given does not end a value.
        (
            "qwen3_coder_xml",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\na\n<parameter=city>\nb\n</parameter>\n\
             </function>\n</tool_call>",
            vec![json!({"city": "a\n<parameter=city>\nb"})],
            "",
            0,
        ),
        // A value without its closing marker ends at the first marker that ends its call.
        (
            "qwen3_coder_xml",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nGraz</function> and </function>\n</tool_call>\n\
             </tool_call>",
            vec![graz()],
            " and </function>\n\n</tool_call>",
            0,
        ),
        // The first of two keys for the arguments counts.
        (
            "hermes",
            r#"<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Graz\"}", "parameters": "{}"}</tool_call>"#,
            vec![graz()],
            "",
            0,
        ),
        (
            "hermes",
            r#"<tool_call>{"name": "functions.get_weather", "arguments": {"city": "Graz"}}</tool_call>"#,
            vec![graz()],
            "",
            0,
        ),
        // A required argument is missing.
        ("minicpm5_xml", r#"<function name="get_weather"></function>"#, vec![], "", 1),
        ("minimax_m3", "</mm:think>Hello", vec![], "Hello", 0),
    ];
    for (name, reply, expected, text, malformed) in cases {
        let events = parse(family(name), &options(""), [reply]);
        let read = calls(&events);
        let read: Vec<Value> = read.iter().map(|call| Value::Object(call.arguments.clone())).collect();
        let faults = events.iter().filter(|event| matches!(event, ProcessorEvent::Malformed { .. })).count();
        let said: String = events
            .iter()
            .filter_map(|event| match event {
                ProcessorEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!((read, said.as_str(), faults), (expected, text, malformed), "{name}: {reply}");
        assert!(calls(&events).iter().all(|call| call.name == "get_weather"), "{name}: {reply}");
    }
}

/// The closing marker of a section is text if its opening marker is, as a part of its first call.
#[test]
fn section_with_malformed_call_keeps_both_markers_or_none() {
    let good = "<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Graz</arg_value>\n</tool_call>";
    let bad = "<tool_call>no name {</tool_call>";
    let options = ParserOptions { tools: [tool()].into(), ..with_a_tool(OnMalformed::Text, "") };
    for (first, second) in [(good, bad), (bad, good)] {
        let reply = format!("<tool_calls>\n{first}\n{second}\n</tool_calls>");
        let events = parse(family("hy_v3"), &options, [&*reply]);
        let complete = events.iter().filter(|event| matches!(event, ProcessorEvent::ToolCall { .. }));
        assert_eq!(complete.count(), 1, "{events:?}");
        let text = |event: &ProcessorEvent| matches!(event, ProcessorEvent::Text(text) if text.contains("</tool_calls>"));
        assert!(!events.iter().any(text), "{events:?}");
    }
}

/// Whitespace between reasoning in the answer and a formatted answer is text.
#[test]
fn whitespace_after_inline_reasoning_is_kept() {
    let response_format = Some(ResponseFormat::JsonObject);
    let request = GrammarRequest { response_format, ..GrammarRequest::default() };
    let options = ParserOptions {
        form: Some(ReplyForm::of(&request)),
        reasoning: ReasoningText::Inline,
        ..options("")
    };
    let reply = "<think>Hm.</think>\n\n{\"a\": 1}";
    assert_eq!(parse(family("hermes"), &options, [reply]), [ProcessorEvent::Text(reply.to_owned())]);
}

/// The prefix of a recipient is not part of the tool's name, also if no tool of that name is declared.
#[test]
fn recipients_are_named_without_their_prefix() {
    let reply = "<|channel|>commentary to=functions.clock<|message|>{}<|call|>";
    let events = parse(family("gpt_oss"), &options(""), [reply]);
    assert_eq!(calls(&events), [ToolCall::new("clock", Map::new())]);
}
