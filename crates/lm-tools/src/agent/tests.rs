use super::*;
use crate::{AgentStep, CallLimits, CallOutcome, Error, StopReason, ToolCall, tool};
use lm_conversation::{
    CancelHandle, ConstrainCalls, ConversationConfig, ConversationEvent, OnCancel, ToolChoice,
};
use lm_session::testing::scripted_engine;
use lm_template::{Message, PromptTemplate, Role};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

mod external;
mod faults;
mod hooks;
mod invented_result;
mod limits;
mod records;
mod removed;
mod turns;

/// Multiply a and b.
#[tool]
fn multiply(
    /** first int */
    a: i64,
    /** second int */
    b: i64,
) -> i64 {
    a * b
}

/// Divide a by b.
#[tool]
fn divide(a: i64, b: i64) -> i64 {
    a / b
}

/// The embedded model's chat template, for which the calls of the Qwen dialect are parsed.
fn template() -> PromptTemplate {
    let (_, source) =
        lm_pocket::FILES.iter().find(|(name, _)| *name == "chat_template.jinja").expect("a template");
    PromptTemplate::new(std::str::from_utf8(source).expect("text")).expect("a template that compiles")
}

fn said(name: &str, a: i64, b: i64) -> String {
    format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{\"a\": {a}, \"b\": {b}}}}}\n</tool_call>")
}

fn agent_with<R: Into<String>>(tools: Toolset, replies: impl IntoIterator<Item = R>) -> Agent {
    configured(ConstrainCalls::Yes, tools, replies)
}

fn configured<R: Into<String>>(
    constrain_calls: ConstrainCalls,
    tools: Toolset,
    replies: impl IntoIterator<Item = R>,
) -> Agent {
    let engine = scripted_engine(replies.into_iter().map(Into::into).collect::<Vec<String>>());
    let template = Some(template());
    let config = ConversationConfig { template, constrain_calls, ..ConversationConfig::default() };
    Agent::builder(&engine, tools).config(config).max_rounds(2).build().expect("an agent")
}

fn multiplication() -> Toolset {
    Toolset::new().with(multiply::tool()).expect("one tool")
}

fn agent<R: Into<String>>(replies: impl IntoIterator<Item = R>) -> Agent {
    agent_with(multiplication(), replies)
}

fn roles(agent: &Agent) -> Vec<Role> {
    agent.conversation().history().iter().map(|message| message.role.clone()).collect()
}

#[test]
fn calls_run_and_results_return_by_id() {
    let both = said("multiply", 3, 5) + "\n" + &said("multiply", 2, 43);
    let mut agent = agent([both, "15 and 86.".to_owned()]);
    let reply = agent.run("What are 3 times 5 and 2 times 43?").expect("an answer");
    assert_eq!(reply.message.content.text(), "15 and 86.");
    let results: Vec<String> = reply.steps.iter().map(|step| step.result.content.text()).collect();
    assert_eq!(results, ["15", "86"]);
    let ids: Vec<&Option<String>> = reply.steps.iter().map(|step| &step.call.id).collect();
    assert!(ids[0].is_some() && ids[1].is_some() && ids[0] != ids[1], "{ids:?}");
    assert!(reply.steps.iter().all(|step| step.call.id == step.result.tool_call_id));
    assert_eq!(reply.finished.len(), 2);
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant]);
    // The model is given each result with its call's id.
    let history = agent.conversation().history();
    let sent: Vec<_> =
        history[2..4].iter().map(|result| (&result.tool_call_id, result.content.text())).collect();
    let calls = &history[1].tool_calls;
    assert_eq!(sent, [(&calls[0].id, "15".to_owned()), (&calls[1].id, "86".to_owned())]);
    assert_eq!(calls[0].arguments["a"], 3);
}

/// A tool that panics.
struct Panicking;

impl crate::Tool for Panicking {
    fn spec(&self) -> crate::ToolSpec {
        crate::ToolSpec::new("explode", "Explode.", json!({"type": "object", "properties": {}}))
    }

    fn call(&self, _: crate::Map<String, crate::Value>, _: &crate::CallContext) -> crate::ToolOutput {
        panic!("no figures today")
    }
}

#[test]
fn tool_panic_is_a_result_for_the_model() {
    let call = "<tool_call>\n{\"name\": \"explode\", \"arguments\": {}}\n</tool_call>";
    let tools = Toolset::new().with(Panicking).expect("one tool");
    let mut agent = agent_with(tools, [call, "It failed."]);
    let reply = agent.run("Explode.").expect("an answer");
    assert_eq!(reply.message.content.text(), "It failed.");
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    let result = &agent.conversation().history()[2];
    assert_eq!(*result, reply.steps[0].result);
    assert_eq!(result.tool_call_id, reply.steps[0].call.id);
    let error: serde_json::Value = serde_json::from_str(&result.content.text()).expect("JSON");
    assert!(error["error"].as_str().is_some_and(|error| error.contains("no figures today")), "{error}");
}

/// If a call were required for the second reply too, the model could not answer.
#[test]
fn only_the_first_reply_requires_a_call() {
    for choice in [ToolChoice::Required, ToolChoice::Named("multiply".to_owned())] {
        let mut agent = agent([said("multiply", 3, 5), "15.".to_owned()]);
        let options = TurnOptions { tool_choice: choice, ..TurnOptions::default() };
        let reply = agent.run_with("3 times 5?", options).expect("an answer");
        assert_eq!((reply.steps.len(), reply.message.content.text().as_str()), (1, "15."));
    }
}

#[test]
fn error_returns_to_the_model_for_another_try() {
    // Constrained to the declared tools, the model could not call another one.
    let replies = [said("divide", 3, 5), said("multiply", 3, 5), "15.".to_owned()];
    let mut agent = configured(ConstrainCalls::No, multiplication(), replies);
    let reply = agent.run("3 times 5?").expect("an answer");
    let results: Vec<String> = reply.steps.iter().map(|step| step.result.content.text()).collect();
    assert_eq!(results, [r#"{"tool_name":"divide","error":"Tool not found"}"#, "15"]);
    assert_eq!(reply.message.content.text(), "15.");
}

#[test]
fn rounds_are_limited_and_every_call_has_a_result() {
    let [one, two, three] = [1, 2, 3].map(|a| said("multiply", a, 1));
    let mut agent = agent([one, two, three, "Hello!".to_owned()]);
    let reply = agent.run("Go on forever.").expect("a reply");
    assert_eq!(reply.stop, StopReason::RoundLimit { max_rounds: 2 });
    let outcomes: Vec<_> = reply.steps.iter().map(|step| (step.round, step.outcome.clone())).collect();
    assert_eq!(outcomes, [(0, CallOutcome::Ran), (1, CallOutcome::Ran), (2, CallOutcome::NotRun)]);
    let refused = reply.steps[2].result.content.text();
    assert!(refused.contains("the call was not run: no answer after 2 rounds"), "{refused}");
    assert!(matches!(reply.answered(), Err(Error::Stopped { steps, .. }) if steps.len() == 3));
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&agent), [User, Assistant, Tool, Assistant, Tool, Assistant, Tool]);
    assert_eq!(agent.run("Hi!").expect("an answer").message.content.text(), "Hello!");
}

#[test]
fn zero_rounds_allow_only_an_answer() {
    let mut agent = agent([said("multiply", 1, 1)]);
    agent.settings.limits.max_rounds = 0;
    let reply = agent.run("3 times 5?").expect("an answer");
    assert_eq!((reply.steps.len(), reply.message.tool_calls.len()), (0, 0));
}

/// A tool that cancels its own turn.
struct Canceller {
    cancel: CancelHandle,
    runs: Arc<AtomicUsize>,
}

impl crate::Tool for Canceller {
    fn spec(&self) -> crate::ToolSpec {
        crate::ToolSpec::new("cancel", "Cancel.", json!({"type": "object"}))
    }

    fn call(&self, _: crate::Map<String, crate::Value>, _: &crate::CallContext) -> crate::ToolOutput {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.cancel.cancel();
        Ok(json!("cancelled")).into()
    }
}

#[test]
fn turn_cancelled_during_a_tool_keeps_finished_calls() {
    let (cancel, runs) = (CancelHandle::new(), Arc::default());
    let canceller = Canceller { cancel: cancel.clone(), runs: Arc::clone(&runs) };
    let twice = said("cancel", 1, 2) + "\n" + &said("cancel", 3, 4);
    let one_by_one = CallLimits { max_parallel: 1, ..CallLimits::default() };
    let tools = Toolset::new().with_limits(one_by_one).with(canceller).expect("one tool");
    let mut agent = agent_with(tools, [twice.as_str(), "Hello!"]);

    let options = TurnOptions { cancel, ..TurnOptions::default() };
    assert!(matches!(agent.run_with("Cancel twice.", options), Err(Error::Cancelled)));
    assert_eq!(runs.load(Ordering::Relaxed), 1, "the second call is not run");
    let history = agent.conversation().history();
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&agent), [User, Assistant, Tool, Tool]);
    assert_eq!(history[2].content.text(), "cancelled");
    assert!(history[3].content.text().contains("not run"), "{:?}", history[3]);
    let ids: Vec<_> = history[1].tool_calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids, [&history[2].tool_call_id, &history[3].tool_call_id]);
    assert_eq!(agent.run("Hi!").expect("an answer").message.content.text(), "Hello!");
    assert_eq!(roles(&agent), [User, Assistant, Tool, Tool, User, Assistant]);
}

/// A template that refuses a user message after results, as Mistral's do.
#[test]
fn cancelled_turn_leaves_no_empty_message() {
    let source = "{% set ns = namespace(user=true) %}{% for m in messages %}{% if m.role != 'tool' and not m.tool_calls %}\
                  {% if (m.role == 'user') != ns.user %}{{ raise_exception('roles must alternate') }}{% endif %}\
                  {% set ns.user = not ns.user %}{% endif %}[{{ m.role }}|{{ m.content }}\
                  {% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}]{% endfor %}{{ tools | tojson }}";
    for on_cancel in [OnCancel::Rollback, OnCancel::KeepPartial] {
        let cancel = CancelHandle::new();
        let canceller = Canceller { cancel: cancel.clone(), runs: Arc::default() };
        let tools = Toolset::new().with(canceller).expect("one tool");
        let engine = scripted_engine([said("cancel", 1, 2), "Hello!".to_owned()]);
        let template = Some(PromptTemplate::new(source).expect("it compiles"));
        let processor = lm_processors::by_name("hermes").map(Into::into);
        let config = ConversationConfig { template, processor, ..ConversationConfig::default() };
        let mut agent = Agent::builder(&engine, tools).config(config).build().expect("an agent");
        let options = TurnOptions { cancel, on_cancel, ..TurnOptions::default() };
        assert!(matches!(agent.run_with("Cancel.", options), Err(Error::Cancelled)));
        use Role::{Assistant, Tool, User};
        assert_eq!(roles(&agent), [User, Assistant, Tool], "{on_cancel:?}");
        assert_eq!(agent.run("Hi!").expect("an answer").message.content.text(), "Hello!");
        assert_eq!(roles(&agent), [User, Assistant, Tool, User, Assistant]);
    }
}

#[test]
fn early_cancelled_turn_leaves_nothing() {
    for on_cancel in [OnCancel::Rollback, OnCancel::KeepPartial] {
        let mut agent = agent(["Never.", "Hello!"]);
        let options = TurnOptions { on_cancel, ..TurnOptions::default() };
        let cancel = options.cancel.clone();
        let stream = agent.stream_with("Talk.", options).expect("a stream");
        cancel.cancel();
        assert!(matches!(stream.last(), Some(Err(Error::Cancelled))));
        assert_eq!(roles(&agent), [], "{on_cancel:?}");
    }
}

#[test]
fn handle_cancels_a_streamed_turn() {
    let mut agent = agent(["word ".repeat(500), "Hello!".to_owned()]);
    let mut stream = agent.stream("Talk.").expect("a stream");
    assert!(matches!(stream.next(), Some(Ok(_))));
    stream.canceller().cancel();
    assert!(matches!(stream.by_ref().last(), Some(Err(Error::Cancelled))));
    drop(stream);
    assert_eq!(roles(&agent), []);
    assert_eq!(agent.run("Hi!").expect("an answer").message.content.text(), "Hello!");
}

#[test]
fn stream_yields_text_calls_results_and_answer_in_order() {
    let mut agent = agent([format!("One moment.{}", said("multiply", 3, 5)), "It is 15.".to_owned()]);
    let mut log = Vec::new();
    let mut text = String::new();
    for event in agent.stream("3 times 5?").expect("a stream") {
        match event.expect("an event") {
            AgentEvent::Text(chunk) => text += &chunk,
            AgentEvent::ToolCall(call) => {
                log.push(std::mem::take(&mut text));
                log.push(format!("call {}", serde_json::Value::Object(call.arguments)));
            }
            AgentEvent::ToolResult(step) => log.push(format!("result {}", step.result.content.text())),
            AgentEvent::Finished(reply) => {
                log.push(std::mem::take(&mut text));
                assert_eq!(reply.message.content.text(), "It is 15.");
                assert_eq!(reply.steps.len(), 1);
            }
            _ => {}
        }
    }
    assert_eq!(log, ["One moment.", r#"call {"a":3,"b":5}"#, "result 15", "It is 15."]);
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
}

#[test]
fn dropped_stream_restores_the_conversation() {
    let long = "word ".repeat(500);
    let mut agent = agent([long, "Hello!".to_owned()]);
    let mut stream = agent.stream("Talk.").expect("a stream");
    assert!(stream.by_ref().any(|event| matches!(event, Ok(AgentEvent::Text(_)))));
    drop(stream);
    assert_eq!(roles(&agent), []);
    assert_eq!(agent.run("Hi!").expect("an answer").message.content.text(), "Hello!");
}

#[test]
fn error_is_the_last_stream_item() {
    let mut agent =
        configured(ConstrainCalls::No, multiplication(), ["<tool_call>{\"name\": 5}</tool_call>"]);
    let events: Vec<_> = agent.stream("Go on.").expect("a stream").collect();
    let (last, before) = events.split_last().expect("events");
    assert!(matches!(last, Err(Error::Conversation(_))), "{last:?}");
    assert!(before.iter().all(Result::is_ok));
}

#[test]
fn history_before_a_stopped_turn_is_kept() {
    let [one, two, three] = [1, 2, 3].map(|a| said("multiply", a, 1));
    let mut agent = agent(["Hello!".to_owned(), one, two, three]);
    agent.run("Hi!").expect("an answer");
    let before = agent.conversation().history();
    assert_ne!(agent.run("Go on forever.").expect("a reply").stop, StopReason::Answered);
    assert_eq!(agent.conversation().history()[..2], before);
    assert_eq!(before[0], Message::user("Hi!"));
}

#[test]
fn cut_reply_continues_and_its_calls_run() {
    let text = format!("Let me work that out for you now.{}", said("multiply", 3, 5));
    let mut agent = agent([text, "It is 15.".to_owned()]);
    let short = TurnOptions { max_output_tokens: Some(5), ..TurnOptions::default() };
    let cut = agent.run_with("3 times 5?", short).expect("a reply");
    assert!("Let me work that out for you now.".starts_with(&cut.message.content.text()));
    let before = agent.conversation().history();
    let cancelled = TurnOptions::default();
    cancelled.cancel.cancel();
    let stream = agent.continue_reply(cancelled).expect("a stream");
    assert!(matches!(stream.last(), Some(Err(Error::Cancelled))));
    assert_eq!(agent.conversation().history(), before, "the reply is as it was cut");
    let stream = agent.continue_reply(TurnOptions::default()).expect("a stream");
    let Some(Ok(AgentEvent::Finished(reply))) = stream.last() else { panic!("it ends with the answer") };
    assert_eq!((reply.steps.len(), reply.message.content.text().as_str()), (1, "It is 15."));
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&agent), [User, Assistant, Tool, Assistant]);
}

#[test]
fn stopped_continuation_keeps_finished_calls() {
    let [one, two, three, four] = [1, 2, 3, 4].map(|a| said("multiply", a, 1));
    let mut agent = agent([format!("I will multiply as often as it takes.{one}"), two, three, four]);
    let short = TurnOptions { max_output_tokens: Some(5), ..TurnOptions::default() };
    agent.run_with("Go on forever.", short).expect("a reply");
    let last = agent.continue_reply(TurnOptions::default()).expect("a stream").last();
    let Some(Ok(AgentEvent::Finished(reply))) = last else { panic!("{last:?}") };
    assert_eq!(reply.stop, StopReason::RoundLimit { max_rounds: 2 });
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&agent), [User, Assistant, Tool, Assistant, Tool, Assistant, Tool]);
}

#[test]
fn stopped_turn_ends_correctly_after_removed_turns() {
    let calls = (1..=3).map(|a| said("multiply", a, 1));
    let replies: Vec<String> = (0..6).map(|n| format!("Answer {n}.")).chain(calls).collect();
    let settings = lm_conversation::EngineSettings { max_context: Some(768), ..Default::default() };
    let model = lm_session::testing::FakeLm::scripted(&lm_session::testing::tokenizer(), replies);
    let engine =
        lm_conversation::Engine::new(lm_session::testing::loaded(model), settings).expect("an engine");
    let overflow = lm_conversation::Overflow::DropOldest(lm_conversation::DroppedHistory::Removed);
    let template = Some(template());
    let mut config = ConversationConfig { template, overflow, ..ConversationConfig::default() };
    config.session.max_output_tokens = Some(60);
    let mut agent =
        Agent::builder(&engine, multiplication()).config(config).max_rounds(2).build().expect("an agent");
    for number in 0..6 {
        agent.run(format!("Question {number}? {}", "so ".repeat(15))).expect("an answer");
    }
    let before = agent.conversation().history();
    let reply = agent.run("so ".repeat(90)).expect("a reply");
    assert_eq!(reply.stop, StopReason::RoundLimit { max_rounds: 2 });
    let history = agent.conversation().history();
    let question = history.iter().rposition(|message| message.role == Role::User).expect("the last question");
    assert!(question < before.len(), "turns were removed");
    assert_eq!(history[..question], before[before.len() - question..]);
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&agent)[question..], [User, Assistant, Tool, Assistant, Tool, Assistant, Tool]);
}

#[test]
fn agents_can_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<Agent>();
    is_send::<AgentTurn>();
    is_send::<AgentStream>();
    is_send::<Toolset>();
    is_send::<ToolCall>();
}
