//! Detached turns: they run to their end without a reader.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lm_conversation::{Conversation, ConversationEvent, Error, Message, Result, TurnOptions};

use crate::turns::fixture::{config, conversation, weather};

const PATIENCE: Duration = Duration::from_secs(60);

/// A callback that sends the events to a receiver.
fn sender() -> (impl FnMut(Result<ConversationEvent>) + Send + 'static, Receiver<Result<ConversationEvent>>) {
    let (events, received) = channel();
    (move |event| events.send(event).unwrap(), received)
}

/// A callback that waits for the sender's end before its first event returns.
fn held() -> (impl FnMut(Result<ConversationEvent>) + Send + 'static, Sender<()>) {
    let (open, opened) = channel::<()>();
    let callback = move |_| {
        let _ = opened.recv(); // Fails at the sender's end.
    };
    (callback, open)
}

fn text(events: &[Result<ConversationEvent>]) -> String {
    let text = |event: &Result<ConversationEvent>| match event {
        Ok(ConversationEvent::Text(text)) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[test]
fn unread_turn_ends_in_the_history() {
    let (mut conversation, engine) = conversation(config(), ["Hello there!", "Yes."]);
    let (callback, received) = sender();
    drop(conversation.stream("Hi.", TurnOptions::default()).unwrap().detach(callback).unwrap());
    engine.wait_idle(PATIENCE).unwrap();
    assert_eq!(conversation.history(), [Message::user("Hi."), Message::assistant("Hello there!")]);
    let events: Vec<_> = received.try_iter().collect();
    assert_eq!(text(&events), "Hello there!");
    let Some(Ok(ConversationEvent::Finished(reply))) = events.last() else { panic!("{events:?}") };
    assert_eq!(reply.message, conversation.history()[1]);
    assert_eq!(conversation.send("More?").unwrap().text(), "Yes.");
}

#[test]
fn turn_goes_on_without_its_conversation() {
    let (mut conversation, _) = conversation(config(), ["Hello!"]);
    let (callback, received) = sender();
    let turn = conversation.stream("Hi.", TurnOptions::default()).unwrap().detach(callback).unwrap();
    drop(conversation);
    assert_eq!(turn.wait().unwrap().text(), "Hello!");
    assert!(matches!(received.iter().last(), Some(Ok(ConversationEvent::Finished(_)))));
}

#[test]
fn next_turn_waits_for_the_end_and_reads_of_the_history_do_not() {
    let (mut conversation, _) = conversation(config(), ["Hello there!", "Yes."]);
    let (callback, open) = held();
    let turn = conversation.stream("Hi.", TurnOptions::default()).unwrap().detach(callback).unwrap();
    assert_eq!(conversation.history(), []);
    assert!(conversation.saved().history.is_empty() && !turn.is_finished());
    let mut other = conversation.share();
    let next = std::thread::spawn(move || other.send("More?").map(|reply| reply.text()));
    drop(open);
    assert_eq!(next.join().unwrap().unwrap(), "Yes.");
    let texts: Vec<_> = conversation.history().iter().map(|message| message.content.text()).collect();
    assert_eq!(texts, ["Hi.", "Hello there!", "More?", "Yes."]);
    assert_eq!(turn.wait().unwrap().text(), "Hello there!");
}

#[test]
fn cancelled_turn_leaves_no_trace() {
    let long = "and ".repeat(1_000);
    for aborted in [false, true] {
        let (mut conversation, engine) = conversation(config(), [long.as_str(), "Yes."]);
        let (callback, received) = sender();
        let turn = conversation.stream("Hi.", TurnOptions::default()).unwrap().detach(callback).unwrap();
        if aborted {
            conversation.abort();
        } else {
            turn.cancel();
        }
        assert!(matches!(turn.wait(), Err(Error::Cancelled)));
        assert!(matches!(received.iter().last(), Some(Err(Error::Cancelled))));
        engine.wait_idle(PATIENCE).unwrap();
        assert_eq!(conversation.history(), []);
        conversation.send("More?").unwrap();
        assert_eq!(conversation.history().len(), 2);
    }
}

#[test]
fn error_of_the_turn_reaches_the_callback() {
    let malformed = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\"";
    let free =
        TurnOptions { constrain_calls: Some(lm_conversation::ConstrainCalls::No), ..TurnOptions::default() };
    let (mut conversation, _) = conversation(config().with_preface(weather()), [malformed, "Yes."]);
    let (callback, received) = sender();
    let turn = conversation.stream("Weather?", free).unwrap().detach(callback).unwrap();
    let Err(Error::DetachedTurn { message }) = turn.wait() else { panic!("the call is malformed") };
    let last = received.iter().last().unwrap().unwrap_err();
    assert!(matches!(last, Error::Processor(_)) && last.to_string() == message, "{last:?}: {message}");
    assert_eq!(conversation.history(), []);
}

/// Sends a message in the callback of a detached turn, at the first event that `is_time` selects; returns the
/// texts of the history at the end.
fn sent_in_callback(is_time: fn(&ConversationEvent) -> bool) -> Vec<String> {
    let (mut conversation, engine) = conversation(config(), ["Hello there!", "Yes."]);
    let mut handle: Option<Conversation> = Some(conversation.share());
    let replies = Arc::new(Mutex::new(Vec::new()));
    let kept = replies.clone();
    let callback = move |event: Result<ConversationEvent>| {
        if event.as_ref().is_ok_and(is_time)
            && let Some(mut handle) = handle.take()
        {
            kept.lock().unwrap().push(handle.send("More?").unwrap().text());
        }
    };
    drop(conversation.stream("Hi.", TurnOptions::default()).unwrap().detach(callback).unwrap());
    engine.wait_idle(PATIENCE).unwrap();
    assert_eq!(replies.lock().unwrap().as_slice(), ["Yes."]);
    conversation.history().iter().map(|message| message.content.text()).collect()
}

#[test]
fn callback_starts_the_next_turn_without_a_deadlock() {
    let at_end = sent_in_callback(|event| matches!(event, ConversationEvent::Finished(_)));
    assert_eq!(at_end, ["Hi.", "Hello there!", "More?", "Yes."]);
    let early = sent_in_callback(|event| matches!(event, ConversationEvent::Text(_)));
    assert_eq!(early, ["More?", "Yes."], "it replaces the turn that runs");
}

#[test]
fn panic_of_the_callback_ends_its_turn_alone() {
    let (mut conversation, engine) = conversation(config(), ["Hello there!", "Yes."]);
    let callback = |_| panic!("no more");
    let turn = conversation.stream("Hi.", TurnOptions::default()).unwrap().detach(callback).unwrap();
    let panic = std::thread::spawn(move || turn.wait()).join().unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"no more"));
    engine.wait_idle(PATIENCE).unwrap();
    assert_eq!(conversation.history(), []);
    assert_eq!(conversation.send("More?").unwrap().text(), "Yes.");
}
