//! Text around calls: every character outside of the calls' syntax is text of the answer, in every dialect.

use lm_processors::{
    ALL, MarkerTokens, OnMalformed, ParserOptions, ProcessorEvent, Recovery, ToolCall, ToolSpec,
};
use serde_json::json;

use crate::grammar::writer;
use crate::parsers::common::{coalesce, family, parse, with_a_tool};
use crate::tokens::{push, tokenized, tokens};

/// Texts before, between and after calls, without whitespace at their ends.
const TEXTS: &[[&str; 3]] = &[
    ["First: a < b.", "Then {this} and [that].", "It's done."],
    ["\"Quoted\"", "; a separator", ", and so on"],
    ["(x)", "} ) ]", "]"],
    ["a", "b", "c"],
    ["", "", "Only after it."],
    ["Only before it.", "", ""],
    ["", "Only between them: 0.5", ""],
];

/// Whitespace next to the calls, which may be trimmed.
const LAYOUTS: &[&str] = &["", " ", "\n", " \n\n"];

fn tool() -> ToolSpec {
    let city = json!({"city": {"type": "string"}});
    ToolSpec::new("get_weather", "", json!({"type": "object", "properties": city, "required": ["city"]}))
}

fn options(tail: Option<&str>, recovery: Recovery, known: &MarkerTokens) -> ParserOptions {
    ParserOptions {
        tools: [tool()].into(),
        prompt_tail: tail.map(Into::into),
        recovery,
        tokens: known.clone(),
        ..with_a_tool(OnMalformed::Error, "")
    }
}

/// Text, number of calls and number of other events.
fn text_and_calls(events: &[ProcessorEvent]) -> (String, usize, usize) {
    let mut sum = (String::new(), 0, 0);
    for event in events {
        match event {
            // A family whose templates open the reasoning starts with it if the prompt is unknown.
            ProcessorEvent::Text(text) | ProcessorEvent::Channel { text, .. } => sum.0 += text,
            ProcessorEvent::ToolCall { .. } => sum.1 += 1,
            ProcessorEvent::ToolCallStarted { .. } | ProcessorEvent::ToolCallArguments { .. } => {}
            _ => sum.2 += 1,
        }
    }
    sum
}

#[test]
fn text_around_calls_is_text_in_every_dialect() {
    let arguments = json!({"city": "Graz"}).as_object().expect("an object").clone();
    let call = ToolCall::new("get_weather", arguments);
    let (mut replies, mut wrong) = (0, Vec::new());
    for processor in ALL.iter().map(|family| family.processor) {
        let dialect = processor.dialect().expect("a dialect");
        let Some(call) = writer::reply(dialect, std::slice::from_ref(&call), &[tool()]) else { continue };
        let cases = TEXTS.iter().flat_map(|texts| LAYOUTS.iter().map(move |layout| (texts, layout)));
        for ([before, between, after], layout) in cases {
            let reply = format!("{before}{layout}{call}{layout}{between}{layout}{call}{layout}{after}");
            let expected = [*before, between, after].concat();
            for known in [MarkerTokens::default(), tokens(processor)] {
                for (tail, recovery) in
                    [(Some(""), Recovery::On), (None, Recovery::On), (Some(""), Recovery::Off)]
                {
                    let mut parser = processor.parser(&options(tail, recovery, &known));
                    let mut events = Vec::new();
                    for piece in tokenized(&reply, &known) {
                        events.extend(push(&mut *parser, piece));
                    }
                    events.extend(parser.finish());
                    let events = coalesce(events);
                    let (text, calls, others) = text_and_calls(&events);
                    let bare = |text: &str| text.split_whitespace().collect::<String>();
                    let same = text == expected || !layout.is_empty() && bare(&text) == bare(&expected);
                    if !same || (calls, others) != (2, 0) {
                        wrong.push(format!(
                            "{}: {reply:?} {tail:?} {recovery:?}\n  {events:?}",
                            processor.name()
                        ));
                    }
                    replies += 1;
                }
            }
        }
    }
    println!("{replies} replies");
    assert!(wrong.is_empty(), "{} of {replies} replies:\n{}", wrong.len(), wrong.join("\n"));
}

/// Text of the answer for a reply after a prompt, whole and by character.
fn answer(name: &str, tail: &str, reply: &str) -> String {
    let options = options(Some(tail), Recovery::On, &MarkerTokens::default());
    let whole = parse(family(name), &options, [reply]);
    assert_eq!(parse(family(name), &options, reply.split_inclusive(|_| true)), whole, "{name}: {reply}");
    let text = |event: &ProcessorEvent| match event {
        ProcessorEvent::Text(text) => text.clone(),
        _ => String::new(),
    };
    whole.iter().map(text).collect()
}

/// A header ends before its message ends and before the next one starts; any other text after its marker is
/// text.
#[test]
fn header_without_an_end_is_text() {
    const SUNNY: &str = "<|channel|>final It is sunny.";
    let long = format!("<|channel|>final {}", "sunny ".repeat(400));
    let cases: &[(&str, &str, &str, &str)] = &[
        ("gpt_oss", "", "<|channel|>", "<|channel|>"),
        ("gpt_oss", "", SUNNY, SUNNY),
        ("gpt_oss", "", &long, &long),
        ("gpt_oss", "", "<|channel|>final It is sunny.<|end|>", SUNNY),
        ("gpt_oss", "", "<|start|>assistant<|channel|>final It is sunny.<|start|>assistant", SUNNY),
        (
            "gpt_oss",
            "",
            "<|channel|>final It is sunny.<|end|><|start|>assistant<|channel|>final<|message|> Yes.",
            "<|channel|>final It is sunny. Yes.",
        ),
        (
            "gpt_oss",
            "",
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>fi",
            "<|channel|>fi",
        ),
        ("gpt_oss", "<|start|>assistant<|channel|>analysis", " and more", " and more"),
        ("gpt_oss", "<|start|>assistant<|chan", "nel|>final", "nel|>final"),
        ("gpt_oss", "<|start|>assistant ", "Yes.", "Yes."),
        ("gpt_oss", "<|start|>assistant<|channel|>", "final<|message|>Yes.", "Yes."),
        ("muse", "", " to=user and more", " to=user and more"),
        ("hf_response_template_invoke", "", "to=Graz by train", "to=Graz by train"),
    ];
    for (name, tail, reply, text) in cases {
        assert_eq!(answer(name, tail, reply), *text, "{name}: {tail} | {reply}");
    }
}

/// Citation markers are stripped from text only, and only if they are whole.
#[test]
fn citations_are_stripped_from_text() {
    let long = format!("</co: {}>", "0".repeat(2000));
    for (reply, text) in [
        ("It is <co>sunny</co: 0:[1]>.", "It is sunny."),
        ("It is <co", "It is <co"),
        ("It is </co: 0", "It is </co: 0"),
        ("It is </co: no source, 2 > 1", "It is </co: no source, 2 > 1"),
        (&*long, &*long),
    ] {
        assert_eq!(answer("cohere_action", "", reply), text, "{reply}");
    }
    let call = r#"<|START_ACTION|>[{"tool_name": "get_weather", "parameters": {"city": "<co>Graz</co: 0>"}}]<|END_ACTION|>"#;
    let options = options(Some(""), Recovery::On, &MarkerTokens::default());
    let message = family("cohere_action").to_message(call, &options).expect("a call");
    assert_eq!(message.tool_calls[0].arguments["city"], "<co>Graz</co: 0>");
}
