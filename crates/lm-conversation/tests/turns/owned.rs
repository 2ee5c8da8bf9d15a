//! Turns are owned: cancelled alone, read elsewhere, and replaced by later calls.

use std::time::Instant;

use lm_conversation::{
    Conversation, ConversationEvent, Error, FinishReason, Message, OnCancel, Reply, ToolChoice, Turn,
    TurnOptions,
};

use crate::turns::fixture::{config, conversation, weather};

fn started(conversation: &mut Conversation, options: TurnOptions) -> Turn {
    let mut turn = conversation.stream("Talk.", options).expect("a turn");
    assert!(turn.by_ref().any(|event| matches!(event, Ok(ConversationEvent::Text(_)))), "it has started");
    turn
}

fn finished(turn: Turn) -> Result<Reply, Error> {
    turn.into_reply()
}

/// A reply that is too long to be over when its turn is cancelled.
fn long() -> String {
    "and ".repeat(400)
}

#[test]
fn cancelled_turn_can_keep_its_partial_reply() {
    let keep = || TurnOptions { on_cancel: OnCancel::KeepPartial, ..TurnOptions::default() };
    for dropped in [false, true] {
        let (mut conversation, _) = conversation(config(), [long().as_str(), "Yes."]);
        let turn = started(&mut conversation, keep());
        if dropped {
            drop(turn);
        } else {
            turn.canceller().cancel();
            let reply = finished(turn).expect("it is kept");
            assert!(
                matches!(reply.finish.reason, FinishReason::Cancelled | FinishReason::EndToken),
                "{reply:?}"
            );
            assert_eq!(conversation.history()[1], reply.message);
        }
        let history = conversation.history();
        assert_eq!(history[0], Message::user("Talk."));
        let text = history[1].content.text();
        assert!(!text.is_empty() && long().starts_with(&text), "{text}");
        assert_eq!(conversation.send("More?").expect("a turn").text(), "Yes.");
    }
}

#[test]
fn partial_reply_keeps_its_reasoning() {
    let thought = "Let me count: one, two, three.";
    let script = format!("<think>\n{thought}\n</think>\n\n{}", long());
    for dropped in [false, true] {
        let (mut conversation, _) = conversation(config(), [script.as_str()]);
        let options = TurnOptions { on_cancel: OnCancel::KeepPartial, ..TurnOptions::default() };
        let turn = started(&mut conversation, options);
        if dropped {
            drop(turn);
        } else {
            turn.canceller().cancel();
            let reply = finished(turn).expect("it is kept");
            assert_eq!(reply.message.reasoning_content.as_deref(), Some(thought));
        }
        let kept = conversation.history().pop().expect("the reply");
        assert_eq!(kept.reasoning_content.as_deref(), Some(thought));
        assert!(long().starts_with(&kept.content.text()), "the reasoning is not part of the text: {kept:?}");
    }
}

#[test]
fn early_cancelled_turn_keeps_the_question() {
    let (mut conversation, _) = conversation(config(), ["Never.", "Yes."]);
    let options = TurnOptions { on_cancel: OnCancel::KeepPartial, ..TurnOptions::default() };
    options.cancel.cancel();
    let reply = conversation.send_with("Talk.", options).expect("it is kept");
    assert_eq!(reply.finish.usage.output_tokens, 0);
    assert_eq!(conversation.history(), [Message::user("Talk."), Message::assistant("")]);
}

#[test]
fn late_cancel_does_not_end_the_next_turn() {
    let (mut conversation, _) = conversation(config(), ["Hello!", "Yes."]);
    let mut turn = conversation.stream("Hi.", TurnOptions::default()).expect("a turn");
    let cancel = turn.canceller();
    assert!(matches!(turn.by_ref().last(), Some(Ok(ConversationEvent::Finished(_)))));
    cancel.cancel();
    drop(turn);
    assert_eq!(conversation.send("And?").expect("the next turn").text(), "Yes.");
    assert_eq!(conversation.history().len(), 4);
}

#[test]
fn turn_dropped_before_its_last_token_leaves_no_trace() {
    let (mut conversation, engine) = conversation(config(), ["Hello!", "Yes."]);
    let turn = conversation.stream("Hi.", TurnOptions::default()).expect("a turn");
    let cancel = turn.canceller();
    engine.cache_stats().expect("it runs"); // The answer comes after the turn's request was taken.
    cancel.cancel();
    drop(turn);
    assert_eq!(conversation.history(), []);
    assert!(conversation.send("And?").is_ok());
}

#[test]
fn history_change_discards_the_running_turn() {
    type Change = fn(&mut Conversation);
    let changes: [Change; 4] = [
        Conversation::reset,
        |conversation| conversation.set_history(vec![Message::user("Earlier."), Message::assistant("Yes.")]),
        |conversation| conversation.set_preface_messages(vec![Message::system("Be brief.")]),
        Conversation::abort,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (mut conversation, _) = conversation(config(), [long().as_str(), "Yes."]);
        let turn = started(&mut conversation, TurnOptions::default());
        change(&mut conversation);
        let history = conversation.history();
        assert!(matches!(finished(turn), Err(Error::Cancelled)), "{number}");
        assert_eq!(conversation.history(), history, "{number}");
        assert_eq!(conversation.send("And?").expect("a turn").text(), "Yes.");
    }
}

#[test]
fn new_turn_ends_the_running_one() {
    let (mut conversation, _) = conversation(config(), [long().as_str(), "Yes."]);
    let old = started(&mut conversation, TurnOptions::default());
    assert_eq!(conversation.send("And?").expect("a turn").text(), "Yes.");
    assert!(matches!(finished(old), Err(Error::Cancelled)));
    assert_eq!(conversation.history(), [Message::user("And?"), Message::assistant("Yes.")]);
}

#[test]
fn turn_ends_after_its_conversation_is_dropped() {
    let (mut conversation, _) = conversation(config(), [long().as_str()]);
    let turn = started(&mut conversation, TurnOptions::default());
    drop(conversation);
    let reply = finished(turn).expect("the turn holds the session");
    assert_eq!(reply.text(), long());
}

#[test]
fn passed_deadline_is_a_distinct_error() {
    let (mut conversation, _) = conversation(config(), [long().as_str(), "Yes."]);
    let late = TurnOptions { deadline: Some(Instant::now()), ..TurnOptions::default() };
    assert!(matches!(conversation.send_with("Talk.", late), Err(Error::DeadlineExceeded)));
    assert_eq!(conversation.history(), []);
}

#[test]
fn fork_copies_history_and_diverges() {
    let (mut conversation, _) = conversation(config(), ["Hello!", "One.", "Two."]);
    conversation.send("Hi.").expect("a turn");
    let mut fork = conversation.fork().expect("a fork");
    assert_eq!(conversation.send("And?").expect("a turn").text(), "One.");
    assert_eq!(fork.history().len(), 2);
    let reply = fork.send("Or?").expect("a turn");
    assert_eq!((reply.text().as_str(), fork.history().len(), conversation.history().len()), ("Two.", 4, 4));
    assert!(reply.finish.usage.cached_tokens > 0, "the prefix is shared");
}

#[test]
fn prompt_is_counted_and_prefilled_before_its_turn() {
    let (mut conversation, _) = conversation(config(), ["Hello!"]);
    let counted = conversation.count_tokens("Hi.").expect("a prompt");
    let stats = conversation.prefill("Hi.").expect("it runs");
    assert_eq!(conversation.history(), []);
    let usage = conversation.send("Hi.").expect("a turn").finish.usage;
    assert_eq!(usage.prompt_tokens, counted);
    assert!(stats.prefilled_tokens > 0 && stats.prefilled_tokens <= counted);
}

/// A stop string may end a reply before the call that is required.
#[test]
fn stop_string_preventing_a_required_call_is_an_error() {
    let (mut conversation, _) =
        conversation(config().with_preface(weather()), ["<tool_call>\n{\"name\"", "Yes."]);
    let options = TurnOptions {
        tool_choice: ToolChoice::Required,
        stop: vec!["\"name".to_owned()],
        ..Default::default()
    };
    let error = conversation.send_with("Weather?", options).expect_err("no call can be written");
    assert!(
        matches!(&error, Error::NoCall { reason: FinishReason::StopString(_), .. } | Error::Processor(_)),
        "{error}"
    );
    assert_eq!(conversation.history(), []);
}

#[derive(Debug, PartialEq, schemars::JsonSchema, serde::Deserialize)]
struct Everything {
    small: u8,
    signed: i64,
    share: f32,
    kind: Kind,
    names: Vec<String>,
    maybe: Option<bool>,
}

#[derive(Debug, PartialEq, schemars::JsonSchema, serde::Deserialize)]
enum Kind {
    Plain,
    Named { name: String },
}

#[test]
fn typed_answer_always_deserializes() {
    let (mut scripted, _) = conversation(
        config(),
        [r#"{"small":7,"signed":-9,"share":0.5,"kind":{"Named":{"name":"x"}},"names":["a"],"maybe":null}"#],
    );
    let expected = Everything {
        small: 7,
        signed: -9,
        share: 0.5,
        kind: Kind::Named { name: "x".to_owned() },
        names: vec!["a".to_owned()],
        maybe: None,
    };
    assert_eq!(scripted.ask::<Everything>("Go.").expect("an answer"), expected);
    for seed in 0..8 {
        let model = lm_session::testing::FakeLm::noise(seed, lm_session::testing::tokenizer().logits_width());
        let loaded = lm_session::testing::loaded(model);
        let engine = lm_conversation::Engine::new(loaded, Default::default()).expect("an engine");
        let mut config = config();
        config.session.max_output_tokens = Some(600);
        let mut noise = Conversation::new(&engine, config).expect("a conversation");
        match noise.ask::<Everything>("Go.") {
            Ok(_) => {}
            // Steered to its end: valid, but not the model's answer.
            Err(Error::InvalidAnswer { text, message, .. }) if message.contains("token limit") => {
                serde_json::from_str::<Everything>(&text).unwrap_or_else(|error| panic!("{seed}: {error:?}"));
            }
            Err(error) => panic!("{seed}: {error:?}"),
        }
    }
}
