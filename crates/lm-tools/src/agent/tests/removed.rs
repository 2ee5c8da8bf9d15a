//! Turns that are removed from the history to make room.

use super::*;

/// An agent in a small context that removes its oldest turns.
fn forgetful(replies: Vec<String>) -> Agent {
    let settings = lm_conversation::EngineSettings { max_context: Some(768), ..Default::default() };
    let model = lm_session::testing::FakeLm::scripted(&lm_session::testing::tokenizer(), replies);
    let engine = Engine::new(lm_session::testing::loaded(model), settings).expect("an engine");
    let overflow = lm_conversation::Overflow::DropOldest(lm_conversation::DroppedHistory::Removed);
    let template = Some(template());
    let mut config = ConversationConfig { template, overflow, ..ConversationConfig::default() };
    config.session.max_output_tokens = Some(60);
    Agent::builder(&engine, multiplication()).config(config).build().expect("an agent")
}

#[test]
fn turn_ended_before_its_calls_restores_removed_turns() {
    let replies = (0..6).map(|n| format!("Answer {n}.")).chain([said("multiply", 1, 1)]);
    let mut agent = forgetful(replies.collect());
    for number in 0..6 {
        agent.run(format!("Question {number}? {}", "so ".repeat(15))).expect("an answer");
    }
    let before = agent.conversation().history();
    let mut stream = agent.stream("so ".repeat(130)).expect("a stream");
    let mut dropped = 0;
    for event in stream.by_ref() {
        match event.expect("an event") {
            AgentEvent::Conversation(ConversationEvent::Dropped(turns)) => dropped = turns.messages.len(),
            AgentEvent::ReplyFinished(_) => break,
            _ => {}
        }
    }
    assert!(dropped > 0, "nothing was removed");
    drop(stream);
    assert_eq!(agent.conversation().history(), before);
}
