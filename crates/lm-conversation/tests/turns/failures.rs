//! Failed and cancelled turns leave no trace, and the next turn works.

use lm_conversation::{
    ConstrainCalls, Conversation, ConversationConfig, ConversationEvent, Error, Message, OnMalformed,
    PromptTemplate, TurnOptions,
};
use lm_session::MediaKind;
use lm_session::testing::scripted_engine;
use serde_json::json;

use crate::turns::fixture::{CALL, config, conversation, weather};

/// Asserts that the first turn of `conversation` is still the whole history, and that another turn works.
fn check_untouched(conversation: &mut Conversation, text: &str) {
    assert_eq!(conversation.history(), [Message::user("Hi."), Message::assistant("Hello!")]);
    assert_eq!(conversation.send("Still there?").expect("a turn").text(), text);
    assert_eq!(conversation.history().len(), 4);
}

#[test]
fn dropped_stream_ends_the_turn() {
    let (mut conversation, _) = conversation(config(), ["Hello!", "Never heard to its end.", "Yes."]);
    conversation.send("Hi.").unwrap();
    let mut stream = conversation.stream("Talk.", TurnOptions::default()).unwrap();
    assert!(stream.by_ref().any(|event| matches!(event, Ok(ConversationEvent::Text(_)))));
    drop(stream);
    check_untouched(&mut conversation, "Yes.");
}

#[test]
fn running_turn_is_cancelled() {
    let long = "and ".repeat(400);
    let (mut conversation, _) = conversation(config(), ["Hello!", long.as_str(), "Yes."]);
    conversation.send("Hi.").unwrap();
    let turn = conversation.stream("Talk.", TurnOptions::default()).unwrap();
    let cancel = turn.canceller();
    let mut cancelled = false;
    for event in turn {
        cancel.cancel();
        cancelled |= matches!(event, Err(Error::Cancelled));
    }
    // The scripted model may finish before the flag is seen; then the turn is complete and counts.
    if cancelled {
        check_untouched(&mut conversation, "Yes.");
    } else {
        assert_eq!(conversation.history()[3], Message::assistant(long));
    }
}

#[test]
fn turn_is_cancelled_before_its_start() {
    let (mut conversation, _) = conversation(config(), ["Hello!", "Yes."]);
    conversation.send("Hi.").unwrap();
    let turn = TurnOptions::default();
    turn.cancel.cancel();
    assert!(matches!(conversation.send_with("Talk.", turn), Err(Error::Cancelled)));
    check_untouched(&mut conversation, "Yes.");
}

/// A config with a tool, whose calls are unconstrained and may be malformed.
fn unconstrained() -> ConversationConfig {
    ConversationConfig { constrain_calls: ConstrainCalls::No, ..config().with_preface(weather()) }
}

#[test]
fn malformed_call_is_reported() {
    let broken = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\"";
    let replies = ["Hello!", broken, "Yes."];
    let (mut strict, _) = conversation(unconstrained(), replies);
    strict.send("Hi.").unwrap();
    let error = strict.send("Weather?").unwrap_err();
    assert!(matches!(error, Error::Processor(lm_processors::Error::MalformedToolCall { .. })), "{error}");
    check_untouched(&mut strict, "Yes.");
    let lenient = ConversationConfig { on_malformed: OnMalformed::Text, ..unconstrained() };
    let (mut lenient, _) = conversation(lenient, [broken]);
    assert_eq!(lenient.send("Weather?").unwrap().text(), broken);
}

#[test]
fn call_cut_by_the_limit_is_reported() {
    let (mut conversation, _) = conversation(unconstrained(), ["Hello!", CALL, "Yes."]);
    conversation.send("Hi.").unwrap();
    let turn = TurnOptions { max_output_tokens: Some(12), ..TurnOptions::default() };
    let error = conversation.send_with("Weather?", turn).unwrap_err();
    assert!(matches!(error, Error::Processor(lm_processors::Error::MalformedToolCall { .. })), "{error}");
    check_untouched(&mut conversation, "Yes.");
}

#[test]
fn unreadable_parts_are_named() {
    let (mut conversation, _) = conversation(config(), ["Hello!", "Yes."]);
    conversation.send("Hi.").unwrap();
    let ran = conversation.tokens();
    for (kind, part) in [
        (MediaKind::Image, json!({"type": "image", "path": "/no/such/image.jpg"})),
        (MediaKind::Audio, json!({"type": "audio", "blob": "UklGRg=="})),
    ] {
        let parts = json!([{"type": "text", "text": "What is this?"}, part]);
        let error = conversation.send(json!({"role": "user", "content": parts})).unwrap_err();
        let Error::UnreadMedium { kind: named, message: 2, part: 1 } = error else { panic!("{error}") };
        assert_eq!(named, kind);
    }
    assert_eq!(conversation.tokens(), ran);
    check_untouched(&mut conversation, "Yes.");
}

#[test]
fn overlong_prompt_is_an_error() {
    let (mut conversation, engine) = conversation(config(), ["Hello!", "Yes."]);
    conversation.send("Hi.").unwrap();
    let error = conversation.send("x".repeat(engine.context_tokens() + 1)).unwrap_err();
    assert!(matches!(error, Error::Session(lm_session::Error::PromptTooLong { .. })), "{error}");
    check_untouched(&mut conversation, "Yes.");
}

#[test]
fn missing_broken_and_refusing_templates_are_errors() {
    let engine = scripted_engine(["Hello!"]);
    let error = Conversation::new(&engine, ConversationConfig::default()).unwrap_err();
    assert_eq!(error.to_string(), "model `fake` has no chat template");
    let error = PromptTemplate::new("a\n{% if %}").unwrap_err();
    assert!(matches!(error, lm_template::Error::TemplateSyntax { line: 2, .. }), "{error}");
    let template = PromptTemplate::new("{{ raise_exception('no ' + messages[-1].content) }}").unwrap();
    let refusing = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    let (mut conversation, _) = conversation(refusing, ["Hello!"]);
    let error = conversation.send("cheese").unwrap_err();
    assert_eq!(error.to_string(), "chat template refused the conversation: no cheese");
    assert!(matches!(conversation.send(Vec::<Message>::new()), Err(Error::NoMessage)));
}
