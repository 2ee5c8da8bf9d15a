//! Replies in the form of a tool's result.

use super::*;

/// An agent whose replies are not constrained: the grammar excludes the tag where it is a token.
fn agent<R: Into<String>>(replies: impl IntoIterator<Item = R>) -> Agent {
    configured(ConstrainCalls::No, multiplication(), replies)
}

const RESULT: &str = "<tool_response>\n2\n</tool_response>";

/// Text events of a turn, and its reply.
fn streamed(agent: &mut Agent) -> (String, AgentReply) {
    let mut text = String::new();
    for event in agent.stream("What is 1 times 2?").expect("a turn") {
        match event.expect("an event") {
            AgentEvent::Text(more) => text += &more,
            AgentEvent::Finished(reply) => return (text, reply),
            _ => {}
        }
    }
    panic!("a turn without an end")
}

#[test]
fn quoted_result_is_asked_for_in_words() {
    let mut agent = agent([said("multiply", 1, 2), RESULT.to_owned(), "It is 2.".to_owned()]);
    let (text, reply) = streamed(&mut agent);
    assert_eq!((text.as_str(), reply.text().as_str()), ("It is 2.", "It is 2."));
    assert_eq!((reply.steps.len(), reply.finished.len(), &reply.stop), (1, 3, &StopReason::Answered));
    let history = agent.conversation().history();
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    let told = history[2].content.text();
    assert_eq!(told, "2\nNow answer the question in words. Do not call a function.");
}

#[test]
fn invented_result_becomes_a_call() {
    let mut agent = agent([RESULT.to_owned(), said("multiply", 1, 2), "It is 2.".to_owned()]);
    let (text, reply) = streamed(&mut agent);
    assert_eq!((text.as_str(), reply.steps.len()), ("It is 2.", 1));
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
}

#[test]
fn second_result_of_a_turn_is_its_answer() {
    let mut agent =
        agent([RESULT.to_owned(), said("multiply", 1, 2), RESULT.to_owned(), "Never.".to_owned()]);
    let (text, reply) = streamed(&mut agent);
    assert_eq!((text.as_str(), reply.text().as_str()), (RESULT, RESULT));
    assert_eq!(reply.stop, StopReason::Answered);
}

#[test]
fn text_that_only_begins_like_a_result_is_kept() {
    for said in ["<tool_respond>", "  <tool", "<", "It is <tool_response>.", "\n"] {
        let (text, reply) = streamed(&mut agent([said.to_owned(), "Never.".to_owned()]));
        assert_eq!((text.as_str(), reply.text().as_str()), (reply.text().as_str(), text.as_str()), "{said}");
        assert_eq!((text.trim(), reply.finished.len()), (said.trim(), 1), "{said}");
    }
}

#[test]
fn discarded_result_keeps_all_messages_of_the_input() {
    let mut agent = agent([RESULT.to_owned(), said("multiply", 1, 2), "It is 2.".to_owned()]);
    agent.conversation_mut().set_history(vec![Message::user("Hello."), Message::assistant("Hello!")]);
    let reply =
        agent.run(vec![Message::user("Think."), Message::user("What is 1 times 2?")]).expect("a reply");
    assert_eq!(reply.text(), "It is 2.");
    let texts: Vec<_> = agent.conversation().history().iter().map(|message| message.content.text()).collect();
    assert_eq!(texts, ["Hello.", "Hello!", "Think.", "What is 1 times 2?", "", "2", "It is 2."]);
}
