//! Prompts that exceed the context.

use lm_conversation::{
    Conversation, ConversationConfig, ConversationEvent, DroppedHistory, DroppedTurns, Engine,
    EngineSettings, Error, Message, OnCancel, Overflow, Role, SessionConfig, TurnOptions,
};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_template::Preface;
use serde_json::json;

use crate::turns::fixture::config;

const CONTEXT: usize = 512;

/// A conversation of a model that answers each of `count` turns with a few words, with little context.
fn small(config: ConversationConfig, count: usize) -> Conversation {
    let replies = (0..count).map(|number| format!("Answer {number}."));
    let settings = EngineSettings { max_context: Some(CONTEXT), ..EngineSettings::default() };
    let engine = Engine::new(loaded(FakeLm::scripted(&tokenizer(), replies)), settings).expect("an engine");
    let session = SessionConfig { max_output_tokens: Some(40), ..config.session.clone() };
    Conversation::new(&engine, ConversationConfig { session, ..config }).expect("a conversation")
}

fn dropping(history: DroppedHistory) -> ConversationConfig {
    let preface = Preface { messages: vec![Message::system("Be brief.")], ..Preface::default() };
    ConversationConfig { overflow: Overflow::DropOldest(history), ..config() }.with_preface(preface)
}

/// Sends a question and returns the turns that were dropped for it.
fn ask(conversation: &mut Conversation, number: usize) -> Option<DroppedTurns> {
    let question = format!("Question {number}: {}", "and so on ".repeat(3));
    let turn = conversation.stream(question, TurnOptions::default()).expect("a turn");
    let events: Vec<_> = turn.collect::<Result<_, _>>().expect("it ends");
    let Some(ConversationEvent::Finished(reply)) = events.last() else { panic!("{events:?}") };
    assert_eq!(reply.text(), format!("Answer {number}."));
    match events.into_iter().next() {
        Some(ConversationEvent::Dropped(dropped)) => Some(dropped),
        _ => None,
    }
}

pub fn rendered(conversation: &Conversation) -> String {
    conversation.render("x", Default::default()).expect("a prompt").text
}

#[test]
fn default_overflow_error_keeps_the_conversation() {
    let mut conversation = small(config(), 40);
    let full = loop {
        let before = conversation.history();
        match conversation.send("and so on ".repeat(5)) {
            Ok(_) => assert!(before.len() < 80, "it never fills"),
            Err(error) => break (error, before),
        }
    };
    assert!(matches!(full.0, Error::Session(lm_session::Error::PromptTooLong { .. })), "{}", full.0);
    assert_eq!(conversation.history(), full.1);
    // The policy is an option of one turn as well.
    let overflow = Some(Overflow::DropOldest(DroppedHistory::Kept));
    conversation
        .send_with("and so on ".repeat(5), TurnOptions { overflow, ..Default::default() })
        .expect("it fits");
}

#[test]
fn oldest_turns_are_dropped_reported_and_kept() {
    let mut conversation = small(dropping(DroppedHistory::Kept), 30);
    let mut left_out: Vec<Message> = Vec::new();
    let mut drops = 0;
    for number in 0..30 {
        if let Some(dropped) = ask(&mut conversation, number) {
            assert_eq!((dropped.turns * 2, dropped.history), (dropped.messages.len(), DroppedHistory::Kept));
            left_out.extend(dropped.messages);
            drops += 1;
        }
        let history = conversation.history();
        assert_eq!(history.len(), 2 * (number + 1), "nothing is lost");
        assert_eq!(history[..left_out.len()], left_out);
        let prompt = rendered(&conversation);
        assert!(prompt.contains("Be brief."), "the preface stays");
        assert_eq!(prompt.contains("Question 0:"), left_out.is_empty());
        assert!(prompt.contains(&format!("Question {number}:")));
        assert!(conversation.remaining_context().expect("a prompt") > 0);
    }
    assert!((2..15).contains(&drops), "{drops}: several turns fit after each");
    let fork = conversation.fork().expect("a fork");
    assert_eq!(rendered(&fork), rendered(&conversation));
    let saved = conversation.history();
    conversation.set_history(saved);
    assert!(rendered(&conversation).contains("Question 0:"), "prompts begin with the first message again");
}

#[test]
fn turns_between_drops_reuse_the_cache() {
    let mut conversation = small(dropping(DroppedHistory::Kept), 30);
    let mut after_drop = None;
    for number in 0..30 {
        let dropped = ask(&mut conversation, number);
        match (&after_drop, dropped) {
            (_, Some(_)) => after_drop = Some(conversation.tokens()),
            (Some(before), None) => {
                let now = conversation.tokens();
                assert!(now.len() > before.len() && now.starts_with(&before[..before.len() - 1]), "{number}");
                after_drop = Some(now);
            }
            (None, None) => {}
        }
    }
    assert!(after_drop.is_some());
}

/// Number of the first question in the next prompt.
fn first_question(conversation: &Conversation) -> String {
    let prompt = rendered(conversation);
    let number = prompt.split("Question ").nth(1).and_then(|rest| rest.split(':').next());
    number.expect("a question").to_owned()
}

#[test]
fn restored_history_has_the_same_cut() {
    let mut conversation = small(dropping(DroppedHistory::Kept), 24);
    let mut cuts = std::collections::BTreeSet::new();
    for number in 0..24 {
        let mut restored = small(dropping(DroppedHistory::Kept), 1);
        restored.set_history(conversation.history());
        ask(&mut conversation, number);
        restored.send(format!("Question {number}: {}", "and so on ".repeat(3))).expect("a turn");
        assert_eq!(first_question(&restored), first_question(&conversation), "{number}");
        cuts.insert(first_question(&conversation));
    }
    assert!((2..10).contains(&cuts.len()), "{cuts:?}");
}

#[test]
fn dropped_turns_are_removed_after_the_turn() {
    let mut conversation = small(dropping(DroppedHistory::Removed), 40);
    let (mut number, mut all) = (0, Vec::new());
    let dropped = loop {
        let before = conversation.history();
        let dropped = ask(&mut conversation, number);
        number += 1;
        let history = conversation.history();
        if let Some(dropped) = dropped {
            assert_eq!(before[..dropped.messages.len()], dropped.messages);
            assert_eq!(history[..history.len() - 2], before[dropped.messages.len()..]);
            break dropped;
        }
        all = history;
    };
    assert_eq!(dropped.messages, all[..dropped.messages.len()]);
    // A turn that fails removes nothing.
    while number < 40 {
        let before = conversation.history();
        let options = TurnOptions::default();
        options.cancel.cancel();
        let cancelled = conversation.send_with("and so on ".repeat(9), options);
        assert!(matches!(cancelled, Err(Error::Cancelled)));
        assert_eq!(conversation.history(), before);
        number += 10;
    }
}

#[test]
fn overflow_keeps_call_results_and_the_running_turn() {
    let mut conversation = small(dropping(DroppedHistory::Kept), 20);
    let call = |n: usize| {
        let call = json!({"id": format!("c{n}"), "function": {"name": "f", "arguments": {"n": n}}});
        Message::from_json(json!({"role": "assistant", "tool_calls": [call]})).expect("a message")
    };
    let result = |n: usize| Message::tool(Some(&format!("c{n}")), "f", json!("word ".repeat(8)));
    let turn = |n| [Message::user(format!("Old {n}")), call(n), result(n), Message::assistant("Done.")];
    let open = [Message::user("Now."), call(90)];
    conversation.set_history((0..8).flat_map(turn).chain(open.clone()).collect());
    let mut reply = conversation.stream(vec![result(90)], TurnOptions::default()).expect("a turn");
    let Some(Ok(ConversationEvent::Dropped(dropped))) = reply.next() else {
        panic!("it exceeds the context")
    };
    assert_eq!(dropped.messages.len() % 4, 0);
    assert!(
        dropped.messages.chunks(4).all(|turn| turn[0].role == Role::User && turn[3].role == Role::Assistant)
    );
    reply.into_reply().expect("a reply");
    let prompt = rendered(&conversation);
    assert_eq!(prompt.matches("<tool_call>").count(), prompt.matches("<tool_response>").count());
    assert!(prompt.contains("Now."));
    // A turn that exceeds the context alone is an error.
    let error = conversation.send("word ".repeat(CONTEXT)).expect_err("it cannot fit");
    assert!(matches!(error, Error::Session(lm_session::Error::PromptTooLong { .. })), "{error}");
}

#[test]
fn remaining_context_is_known_before_sending() {
    let mut conversation = small(config(), 4);
    assert_eq!(conversation.remaining_context().expect("nothing is rendered"), CONTEXT);
    conversation.send("Hi.").expect("a turn");
    let remaining = conversation.remaining_context().expect("a prompt");
    assert_eq!(
        remaining,
        CONTEXT - conversation.render(Vec::new(), lm_conversation::GenerationPrompt::Omit).unwrap().ids.len()
    );
    let counted = conversation.count_tokens("And now?").expect("a prompt");
    assert!(CONTEXT - counted < remaining);
    let reply = conversation.send("And now?").expect("a turn");
    assert_eq!(reply.finish.usage.prompt_tokens, counted);
}

#[test]
fn partial_reply_keeps_its_dropped_turns() {
    let mut conversation = small(dropping(DroppedHistory::Kept), 40);
    let options = || TurnOptions { on_cancel: OnCancel::KeepPartial, ..TurnOptions::default() };
    for number in 0..20 {
        let turn = conversation
            .stream(format!("Question {number}: {}", "so ".repeat(9)), options())
            .expect("a turn");
        if number % 2 == 0 {
            turn.canceller().cancel()
        }
        turn.into_reply().expect("it is kept");
    }
    assert_eq!(conversation.history().len(), 40);
    assert!(!rendered(&conversation).contains("Question 0:"));
}
