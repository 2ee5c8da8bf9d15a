//! Turns that are owned by their readers.

use super::*;
use std::sync::mpsc::{Receiver, channel};

/// A tool that reports its start, and waits for the sender to be dropped.
struct Gate {
    started: std::sync::mpsc::Sender<()>,
    open: Arc<std::sync::Mutex<Receiver<()>>>,
}

impl crate::Tool for Gate {
    fn spec(&self) -> crate::ToolSpec {
        crate::ToolSpec::new("gate", "Wait.", json!({"type": "object"}))
    }

    fn call(&self, _: crate::Map<String, crate::Value>, _: &crate::CallContext) -> crate::ToolOutput {
        self.started.send(()).expect("the test waits");
        let _ = self.open.lock().expect("no panic").recv();
        Ok(json!("open")).into()
    }
}

/// An agent whose model calls the gate; its ends.
fn gated(replies: impl IntoIterator<Item = String>) -> (Agent, Receiver<()>, std::sync::mpsc::Sender<()>) {
    let (started, has_started) = channel();
    let (key, open) = channel();
    let tools = Toolset::new().with(Gate { started, open: Arc::new(open.into()) }).expect("one tool");
    let tools = tools.with_limits(CallLimits { cancel_grace: None, ..CallLimits::default() });
    (agent_with(tools, [said("gate", 1, 2)].into_iter().chain(replies)), has_started, key)
}

#[test]
fn turn_can_be_read_on_another_thread() {
    let mut agent = agent([said("multiply", 3, 5), "15.".to_owned()]);
    let turn = agent.stream("3 times 5?").expect("a turn");
    let reply = std::thread::spawn(move || turn.into_reply()).join().expect("no panic").expect("an answer");
    assert_eq!((reply.text().as_str(), &reply.stop), ("15.", &StopReason::Answered));
    assert_eq!(agent.conversation().history().len(), 4);
}

#[test]
fn async_turn_is_read_as_events_stream_or_reply() {
    let round = || [said("multiply", 3, 5), "15.".to_owned()];
    let mut agent = agent([round(), round(), round(), round()].concat());
    let blocking: Vec<_> = agent.stream("a").expect("a turn").map(kind).collect();
    let received = futures_executor::block_on(async {
        let mut turn = agent.stream("a").expect("a turn");
        let mut events = Vec::new();
        while let Some(event) = turn.recv().await {
            events.push(kind(event));
        }
        assert!(turn.recv().await.is_none());
        events
    });
    let stream = agent.stream("a").expect("a turn").into_stream();
    let streamed: Vec<_> = futures_executor::block_on_stream(stream).map(kind).collect();
    // The prefill of later turns has other steps.
    let said =
        |events: Vec<&'static str>| events.into_iter().filter(|&kind| kind != "conversation").collect();
    let [blocking, received, streamed]: [Vec<_>; 3] = [blocking, received, streamed].map(said);
    assert_eq!(blocking.last(), Some(&"finished"));
    assert!(blocking.contains(&"call") && blocking.contains(&"result"), "{blocking:?}");
    assert_eq!((&received, &streamed), (&blocking, &blocking));
    let reply = futures_executor::block_on(agent.run_async("a")).expect("an answer");
    assert_eq!((reply.text().as_str(), reply.steps.len()), ("15.", 1));
}

/// Kind of an event; the number of text events depends on the batching of tokens.
fn kind(event: Result<AgentEvent>) -> &'static str {
    match event.expect("an event") {
        AgentEvent::Text(_) => "text",
        AgentEvent::ToolCallStarted { .. } => "started",
        AgentEvent::ToolCallArguments { .. } => "arguments",
        AgentEvent::ToolCall(_) => "call",
        AgentEvent::ToolResult(_) => "result",
        AgentEvent::ReplyFinished(_) => "reply",
        AgentEvent::Finished(_) => "finished",
        _ => "conversation",
    }
}

#[test]
fn dropped_turn_does_not_wait_for_a_running_tool() {
    let (mut agent, has_started, key) = gated(["Hello!".to_owned()]);
    let mut turn = agent.stream("Wait.").expect("a turn");
    let reader = std::thread::spawn(move || {
        let before = turn.by_ref().take_while(|event| !matches!(event, Ok(AgentEvent::ReplyFinished(_))));
        before.for_each(drop);
        // The calls begin with the next poll.
        let mut next = Box::pin(turn.recv());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(next.as_mut().poll(&mut context).is_pending());
        drop(next);
        has_started.recv().expect("the tool begins");
        drop(turn);
    });
    reader.join().expect("no panic");
    let history = agent.conversation().history();
    assert_eq!(history.len(), 3);
    assert!(history[2].content.text().contains("may have taken effect"), "{:?}", history[2]);
    assert_eq!(history[2].tool_call_id, history[1].tool_calls[0].id);
    drop(key);
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Hello!");
}

#[test]
fn dropped_turn_can_keep_its_partial_reply() {
    for panics in [false, true] {
        let long = "word ".repeat(500);
        let mut agent = agent([long.clone(), "Hello!".to_owned()]);
        let options = TurnOptions { on_cancel: OnCancel::KeepPartial, ..TurnOptions::default() };
        let mut turn = agent.stream_with("Talk.", options).expect("a turn");
        let reader = std::thread::spawn(move || {
            assert!(turn.any(|event| matches!(event, Ok(AgentEvent::Text(_)))));
            assert!(!panics, "the reader of this test fails, which drops the turn");
        });
        assert_eq!(reader.join().is_err(), panics);
        assert_eq!(roles(&agent), [Role::User, Role::Assistant], "the reader panics: {panics}");
        let kept = agent.conversation().history()[1].content.text();
        assert!(!kept.is_empty() && long.starts_with(&kept), "{kept}");
        assert_eq!(agent.run("Hi!").expect("an answer").text(), "Hello!");
    }
}

#[test]
fn next_turn_ends_the_running_one() {
    let (mut agent, has_started, key) = gated(["Hello!".to_owned()]);
    let turn = agent.stream("Wait.").expect("a turn");
    let reader = std::thread::spawn(move || turn.into_reply());
    has_started.recv().expect("the tool begins");
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Hello!");
    drop(key);
    assert!(matches!(reader.join().expect("no panic"), Err(Error::Cancelled)));
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&agent), [User, Assistant, Tool, User, Assistant]);
    assert!(agent.conversation().history()[2].content.text().contains("may have taken effect"));
}

#[test]
fn reset_ends_the_running_turn() {
    let mut agent = agent(["word ".repeat(500), "Hello!".to_owned()]);
    let mut turn = agent.stream("Talk.").expect("a turn");
    assert!(turn.by_ref().any(|event| matches!(event, Ok(AgentEvent::Text(_)))));
    agent.conversation_mut().reset();
    assert!(matches!(turn.last(), Some(Err(Error::Cancelled))));
    assert_eq!(roles(&agent), []);
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Hello!");
}

#[test]
fn dropped_agent_leaves_its_turn_running() {
    let mut agent = agent([said("multiply", 3, 5), "15.".to_owned()]);
    let turn = agent.stream("3 times 5?").expect("a turn");
    drop(agent);
    assert_eq!(turn.into_reply().expect("an answer").text(), "15.");
}

#[test]
fn turn_has_its_own_tools() {
    let other = Toolset::new().with(super::divide::tool()).expect("one tool");
    let replies = [said("divide", 6, 3), "2.".to_owned(), said("multiply", 6, 3), "18.".to_owned()];
    let mut agent = agent(replies);
    let reply = agent.turn("6 divided by 3?").tools(other).run().expect("an answer");
    assert_eq!((reply.steps[0].result.content.text().as_str(), reply.text().as_str()), ("2", "2."));
    let reply = agent.run("6 times 3?").expect("an answer");
    assert_eq!((reply.steps[0].result.content.text().as_str(), reply.text().as_str()), ("18", "18."));
}

#[test]
fn later_turns_have_the_tools_that_are_set() {
    let other = Toolset::new().with(super::divide::tool()).expect("one tool");
    let mut agent = agent([said("divide", 6, 3), "2.".to_owned()]);
    agent.set_tools(other);
    assert_eq!(agent.tools().names().collect::<Vec<_>>(), ["divide"]);
    let reply = agent.run("6 divided by 3?").expect("an answer");
    assert_eq!((reply.steps[0].result.content.text().as_str(), reply.text().as_str()), ("2", "2."));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Product {
    product: i64,
}

#[test]
fn typed_answer_can_have_its_own_tools() {
    let other = Toolset::new().with(super::divide::tool()).expect("one tool");
    let json = |product: i64| format!(r#"{{"product":{product}}}"#);
    let replies = [said("divide", 6, 3), json(2), json(7), said("multiply", 6, 3), json(18)];
    let mut agent = agent(replies);
    let answer: Product = agent.turn("6 divided by 3?").tools(other).run_as().expect("an answer");
    assert_eq!(answer.product, 2);
    let answer: Product = agent.turn("Seven?").tools(Toolset::new()).run_as().expect("an answer");
    assert_eq!(answer.product, 7);
    let answer: Product = agent.run_as("6 times 3?").expect("an answer");
    assert_eq!(answer.product, 18);
    let results: Vec<_> =
        agent.conversation().history().into_iter().filter(|message| message.role == Role::Tool).collect();
    assert_eq!(results.iter().map(|result| result.content.text()).collect::<Vec<_>>(), ["2", "18"]);
    assert_eq!(agent.tools().names().collect::<Vec<_>>(), ["multiply"]);
}

#[test]
fn answer_is_typed() {
    let mut agent = agent([said("multiply", 3, 5), r#"{"product":15}"#.to_owned()]);
    let answer: Product = agent.run_as("3 times 5?").expect("an answer");
    assert_eq!(answer.product, 15);
}

#[test]
fn steps_are_available_after_an_error() {
    let broken = "<tool_call>{\"name\": 5}</tool_call>".to_owned();
    let mut agent = configured(ConstrainCalls::No, multiplication(), [said("multiply", 3, 5), broken]);
    let mut turn = agent.stream("Go on.").expect("a turn");
    assert!(matches!(turn.by_ref().last(), Some(Err(Error::Conversation(_)))));
    assert_eq!(turn.steps()[0].result.content.text(), "15");
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool]);
}

#[test]
fn panicking_reader_ends_the_turn_with_results() {
    let mut agent = agent([said("multiply", 3, 5), "Done.".to_owned()]);
    let choices = ToolChoices::with(|reply, _| if reply == 1 { panic!("a bug") } else { ToolChoice::Auto });
    let settings = AgentSettings { tool_choices: choices, ..AgentSettings::default() };
    let mut turn = agent.turn("Go on.").settings(settings).start().expect("a turn");
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| turn.by_ref().count()));
    assert!(read.is_err());
    assert!(turn.next().is_none());
    drop(turn);
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(agent.run("Go on.").expect("an answer").text(), "Done.");
}

/// A hook that looks at its agent, and what it saw.
#[derive(Clone, Default)]
struct Onlooker {
    agent: Arc<std::sync::Mutex<Option<Agent>>>,
    seen: Arc<std::sync::Mutex<Vec<(usize, usize)>>>,
}

impl Onlooker {
    fn look(&self) {
        let agent = self.agent.lock().expect("no panic");
        let seen =
            agent.as_ref().map(|agent| (agent.waiting_calls().len(), agent.conversation().history().len()));
        self.seen.lock().expect("no panic").extend(seen);
    }
}

impl Hook for Onlooker {
    fn record(&self, _: &AgentStep) {
        self.look();
    }
}

#[test]
fn hooks_and_choices_can_use_the_agent() {
    let looker = Onlooker::default();
    let chooser = looker.clone();
    let choose = move |_: usize, _: &[AgentStep]| {
        chooser.look();
        ToolChoice::Auto
    };
    let mut agent = agent([said("multiply", 3, 5), "Done.".to_owned()]);
    let settings = AgentSettings {
        tool_choices: ToolChoices::with(choose),
        hooks: vec![Arc::new(looker.clone())],
        ..AgentSettings::default()
    };
    let turn = agent.turn("Go on.").settings(settings).start().expect("a turn");
    *looker.agent.lock().expect("no panic") = Some(agent);
    assert_eq!(turn.into_reply().expect("an answer").text(), "Done.");
    // No call waits while the turn runs; the history has the question and the call.
    assert_eq!(*looker.seen.lock().expect("no panic"), [(0, 2), (0, 2)]);
}
