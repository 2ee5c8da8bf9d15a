//! Turns with text only.

use lm_conversation::{
    Conversation, ConversationConfig, ConversationEvent, FinishReason, Message, PromptTemplate, Reply, Role,
    Turn, TurnOptions, Value,
};
use serde_json::json;

use crate::turns::fixture::{CALL, config, conversation, weather};

#[test]
fn turn_adds_two_messages() {
    let (mut conversation, _) = conversation(config(), ["Hello!"]);
    let reply = conversation.send("Hi.").unwrap();
    assert_eq!((reply.text().as_str(), &reply.finish.reason), ("Hello!", &FinishReason::EndToken));
    assert_eq!(conversation.history(), [Message::user("Hi."), Message::assistant("Hello!")]);
    assert_eq!(
        reply.to_json(),
        json!({"role": "assistant", "content": [{"type": "text", "text": "Hello!"}]})
    );
}

#[test]
fn stream_gives_the_reply_in_pieces() {
    let (mut conversation, _) = conversation(config(), ["Hello Wörld 🙂!"]);
    let events: Vec<_> =
        conversation.stream("Hi.", TurnOptions::default()).unwrap().collect::<Result<_, _>>().unwrap();
    let chunks: Vec<Value> = events.iter().filter_map(ConversationEvent::to_json).collect();
    assert_eq!(chunks.last(), Some(&json!({})));
    let text = |chunk: &Value| chunk["content"][0]["text"].as_str().map(str::to_owned);
    assert!(chunks.len() > 5, "{chunks:?}");
    assert_eq!(chunks.iter().filter_map(text).collect::<String>(), "Hello Wörld 🙂!");
    let Some(ConversationEvent::Finished(reply)) = events.last() else { panic!("{events:?}") };
    assert_eq!(conversation.history().last(), Some(&reply.message));
}

#[test]
fn later_turns_prefill_only_new_tokens() {
    let (mut conversation, _) = conversation(config(), ["One.", "Two."]);
    let first = conversation.send("Count.").unwrap();
    let so_far = conversation.tokens().len();
    let second = conversation.send("Go on.").unwrap();
    assert_eq!(first.finish.usage.cached_tokens, 0);
    // All of the first turn is cached, except the end token, which was sampled and never run.
    assert!(second.finish.usage.cached_tokens + 1 >= so_far, "{:?} of {so_far}", second.finish.usage);
}

/// No prompt is the beginning of the next one.
#[test]
fn template_can_rewrite_earlier_messages() {
    let source = "{{ messages | length }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";
    let template = Some(PromptTemplate::new(source).unwrap());
    let (mut conversation, _) = conversation(ConversationConfig { template, ..config() }, ["One.", "Two."]);
    conversation.send("Count.").unwrap();
    let second = conversation.send("Go on.").unwrap();
    assert_eq!((second.text().as_str(), second.finish.usage.cached_tokens), ("Two.", 0));
}

#[test]
fn messages_accept_text_json_or_lists() {
    let (mut conversation, _) = conversation(config(), ["1", "2", "3"]);
    conversation.send(json!({"role": "user", "content": [{"type": "text", "text": "a"}]})).unwrap();
    conversation.send(json!([{"role": "system", "content": "b"}, {"role": "user", "content": "c"}])).unwrap();
    conversation.send(vec![Message::user("d")]).unwrap();
    let roles: Vec<_> = conversation.history().iter().map(|message| message.role.clone()).collect();
    use Role::{Assistant, System, User};
    assert_eq!(roles, [User, Assistant, System, User, Assistant, User, Assistant]);
}

#[test]
fn history_can_be_cleared_and_set() {
    let (mut conversation, _) = conversation(config(), ["1", "2"]);
    conversation.send("a").unwrap();
    let saved = conversation.history();
    conversation.reset();
    assert!(conversation.history().is_empty());
    conversation.set_history(saved);
    conversation.send("b").unwrap();
    assert_eq!(conversation.history().len(), 4);
}

#[test]
fn reasoning_is_separated_from_the_answer() {
    let (mut conversation, _) =
        conversation(config(), ["Let me see.\n</think>\n\nYes.", "<think>\nHm\n</think>\n\nNo."]);
    let thinking = json!({"enable_thinking": true}).as_object().unwrap().clone();
    let turn = TurnOptions { extra_context: thinking, ..TurnOptions::default() };
    // Only this turn's prompt opens the reasoning channel; in the other turn the model opens it.
    let qwen = lm_processors::ALL.iter().find(|family| family.processor.name() == "qwen").unwrap();
    assert_eq!(conversation.processor().name(), qwen.processor.name());
    for turn in [turn, TurnOptions::default()] {
        let reply = conversation.send_with("Well?", turn).unwrap();
        assert!(reply.message.reasoning_content.is_some(), "{reply:?}");
        assert!(["Yes.", "No."].contains(&reply.text().as_str()), "{reply:?}");
    }
}

#[test]
fn conversations_can_be_sent_to_other_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<Conversation>();
    assert_send::<Turn>();
}

#[test]
fn reply_has_its_raw_text_model_and_id_and_serialises() {
    let raw = format!("Let me see.\n{CALL}");
    let (mut conversation, _) = conversation(config().with_preface(weather()), [raw.as_str(), "Sunny."]);
    let reply = conversation.send("Weather?").unwrap();
    assert_eq!((reply.raw.as_str(), reply.model.as_str()), (raw.as_str(), "fake"));
    let id = |reply: &Reply| reply.id.strip_prefix("run-").map(str::to_owned).unwrap();
    assert!(id(&reply).len() == 24 && id(&reply).chars().all(|digit| digit.is_ascii_hexdigit()));
    let json = serde_json::to_value(&reply).unwrap();
    assert_eq!(json["message"], reply.message.to_json());
    assert_eq!((&json["id"], &json["raw"], &json["model"]), (&json!(reply.id), &json!(raw), &json!("fake")));
    assert_eq!(json["finish"]["reason"], "end_token");
    assert_eq!(
        (&json["polyfills"], &json["cut_call"], &json["unenforced"]),
        (&json!([]), &json!(null), &json!([]))
    );
    let result = Message::tool(Some("call_0"), "get_weather", json!("sunny"));
    let next = conversation.send(result).unwrap();
    assert_eq!(next.raw, "Sunny.");
    assert_ne!(id(&next), id(&reply));
}
