//! Turns with tool calls.

use lm_conversation::{Content, ConversationConfig, ConversationEvent, Message, TurnOptions};
use serde_json::json;

use crate::turns::fixture::{CALL, config, conversation, weather};

#[test]
fn calls_get_ids_and_their_results_go_back() {
    let (mut conversation, _) = conversation(config().with_preface(weather()), [CALL, "Sunny.", CALL]);
    let reply = conversation.send("How is the weather in Paris?").unwrap();
    assert_eq!(reply.message.content, Content::None);
    let call = &reply.tool_calls()[0];
    assert_eq!((call.id.as_deref(), call.name.as_str()), (Some("call_0"), "get_weather"));
    assert_eq!(call.arguments["location"], "Paris");
    let result = Message::tool(Some("call_0"), "get_weather", json!({"temperature": 25}));
    let reply = conversation.send(result).unwrap();
    assert_eq!(reply.text(), "Sunny.");
    let again = conversation.send("And now?").unwrap();
    assert_eq!(again.tool_calls()[0].id.as_deref(), Some("call_1"));
}

#[test]
fn stream_reports_a_call_incrementally() {
    let reply = format!("Let me see.\n{CALL}");
    let (mut conversation, _) = conversation(config().with_preface(weather()), [reply.as_str()]);
    let stream = conversation.stream("Weather?", TurnOptions::default()).unwrap();
    let events = stream.collect::<Result<Vec<_>, _>>().unwrap();
    let mut arguments = String::new();
    let mut text = String::new();
    for event in &events {
        match event {
            ConversationEvent::ToolCallArguments { fragment, .. } => arguments += fragment,
            ConversationEvent::Text(piece) => text += piece,
            _ => {}
        }
    }
    assert_eq!((text.as_str(), arguments.as_str()), ("Let me see.", "{\"location\": \"Paris\"}"));
    let started =
        ConversationEvent::ToolCallStarted { index: 0, name: Some("get_weather".to_owned()), id: None };
    assert!(events.contains(&started), "{events:?}");
    let call = events.iter().find(|event| matches!(event, ConversationEvent::ToolCall(_))).unwrap();
    assert_eq!(
        call.to_json().unwrap(),
        json!({"role": "assistant", "tool_calls": [{"id": "call_0", "type": "function",
            "function": {"name": "get_weather", "arguments": {"location": "Paris"}}}]})
    );
}

#[test]
fn text_without_tools_is_not_a_call() {
    let (mut conversation, _) = conversation(config(), [CALL]);
    let reply = conversation.send("Weather?").unwrap();
    assert_eq!((reply.text().as_str(), reply.tool_calls().len()), (CALL, 0));
}

#[test]
fn used_ids_are_not_reassigned() {
    let earlier = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "tool_calls": [{"id": "call_0", "type": "function",
            "function": {"name": "get_weather", "arguments": {}}}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "sunny"},
    ]);
    let mut preface = weather();
    preface.messages = serde_json::from_value(earlier).unwrap();
    let (mut conversation, _) = conversation(ConversationConfig { preface, ..config() }, [CALL]);
    assert_eq!(conversation.send("Again.").unwrap().tool_calls()[0].id.as_deref(), Some("call_1"));
}
