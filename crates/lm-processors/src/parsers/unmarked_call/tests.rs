//! Tests of calls without markers.

use serde_json::json;

use super::*;
use crate::{ParserOptions, UnmarkedCalls, by_name};

fn options() -> ParserOptions {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = ToolSpec::from_json(json!({"name": "weather", "parameters": parameters})).expect("a tool");
    ParserOptions {
        tools: [tool].into(),
        unmarked: Some(UnmarkedCalls::Read),
        prompt_tail: Some("".into()),
        ..ParserOptions::default()
    }
}

/// Text and calls of a reply, with the same result in every split.
fn read(reply: &str, options: &ParserOptions) -> (String, Vec<ToolCall>) {
    let read_from = |cut: usize| {
        let mut parser = by_name("qwen").expect("a family").parser(options);
        let mut events = parser.push(&reply[..cut]);
        events.extend(parser.push(&reply[cut..]));
        events.extend(parser.finish());
        let (mut text, mut calls) = (String::new(), Vec::new());
        for event in events {
            match event {
                ProcessorEvent::Text(more) => text += &more,
                ProcessorEvent::ToolCall { call, .. } => calls.push(call),
                _ => {}
            }
        }
        (text, calls)
    };
    let whole = read_from(0);
    (1..reply.len()).for_each(|cut| assert_eq!(read_from(cut), whole, "{reply} cut at {cut}"));
    whole
}

const CALL: &str = r#"{"name": "weather", "arguments": {"city": "Rome"}}"#;

#[test]
fn whole_reply_is_a_call() {
    let pretty = "{\n  \"name\": \"weather\",\n  \"arguments\": {\"city\": \"Rome\"}\n}";
    let swapped = r#"{"arguments": {"city": "Rome"}, "name": "weather"}"#;
    let named = r#"{"name": "weather", "parameters": {"city": "Rome"}}"#;
    let doubled = format!("{{{CALL}}}");
    let mut replies = [CALL, pretty, swapped, named, &doubled].map(str::to_owned).to_vec();
    replies.extend([format!("```json\n{doubled}\n```"), format!("{{{CALL}\n}}\n")]);
    replies.extend(["```json\n", "```\n", " \n```JSON\n"].map(|open| format!("{open}{pretty}\n```\n")));
    replies.extend(["tools", "function", "function-call"].map(|tag| format!("<{tag}>\n{CALL}\n</{tag}>")));
    for reply in replies {
        let (text, calls) = read(&reply, &options());
        assert_eq!((text.as_str(), calls.len()), ("", 1), "{reply}");
        assert_eq!(calls[0], ToolCall::new("weather", json!({"city": "Rome"}).as_object().unwrap().clone()));
    }
}

#[test]
fn everything_else_stays_text() {
    let others = [
        format!("Here it is: {CALL}"),
        format!("{CALL} Done."),
        format!("{CALL}\n{CALL}"),
        format!("{{{CALL}"),
        format!("{{{CALL}}} Done."),
        format!("{{{CALL}}}}}"),
        format!("{{ {CALL}}}"),
        format!("```json\n{CALL}"),
        format!("```json\n{CALL}\n```\nDone."),
        CALL.replace("weather", "wether"),
        CALL.replace("weather", "weather2"),
        CALL.replace("city", "town"),
        CALL.replace("\"Rome\"", "\"Rome\", \"country\": \"Italy\""),
        CALL.replace("\"Rome\"", "5"),
        CALL.replace("{\"name\"", "{\"id\": 1, \"name\""),
        format!("{}, \"response\": 5}}", &CALL[..CALL.len() - 1]),
        "{\"name\": \"weather\"}".to_owned(),
        "```rust\nfn main() {}\n```".to_owned(),
        "{".to_owned(),
        "```".to_owned(),
        format!("{}{CALL}", " ".repeat(300)),
        format!("{{{}{}", " ".repeat(300), &CALL[1..]),
        format!("{CALL}{}", "\n".repeat(300)),
        format!("{{\"name\"{}:", " ".repeat(3_000)),
    ];
    for reply in others {
        assert_eq!(read(&reply, &options()), (reply.clone(), vec![]));
    }
    let off = ParserOptions { unmarked: Some(UnmarkedCalls::Text), ..options() };
    assert_eq!(read(CALL, &off), (CALL.to_owned(), vec![]));
    let none = ParserOptions { tools: [].into(), ..options() };
    assert_eq!(read(CALL, &none), (CALL.to_owned(), vec![]));
}

/// A parser whose events are given.
struct Scripted(Vec<ProcessorEvent>);

impl OutputParser for Scripted {
    fn push(&mut self, _delta: &str) -> Vec<ProcessorEvent> {
        std::mem::take(&mut self.0)
    }
    fn finish(&mut self) -> Vec<ProcessorEvent> {
        Vec::new()
    }
}

#[test]
fn held_text_precedes_a_later_channel() {
    let channel = ProcessorEvent::Channel { name: "reasoning".to_owned(), text: "Hm.".to_owned() };
    let events = vec![ProcessorEvent::Text("{\"name\": ".to_owned()), channel];
    let mut parser = UnmarkedCallParser::new(Box::new(Scripted(events.clone())), options().tools);
    let mut got = parser.push("");
    got.extend(parser.finish());
    assert_eq!(got, events);
}

#[test]
fn text_passes_as_soon_as_it_is_no_call() {
    for (reply, held) in [
        ("Hello", 0),
        ("{\"answer\": 5}", 3),
        ("```python\nprint()", 10),
        ("{\"name\": \"wex\"", 12),
        ("<tooth>", 4),
    ] {
        let mut parser = by_name("qwen").expect("a family").parser(&options());
        let passed = (0..reply.len()).find(|&at| !parser.push(&reply[at..=at]).is_empty());
        assert_eq!(passed, Some(held), "{reply}");
    }
}
