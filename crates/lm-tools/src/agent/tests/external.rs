//! Tools that the caller runs.

use super::*;
use crate::testing::ScriptedReply;
use std::sync::Mutex;

/// A tool with code, and two that the caller runs.
fn tools() -> Toolset {
    let spec = |name: &str| {
        let path =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        crate::ToolSpec::new(name, "Changes the editor.", path)
    };
    let tools =
        multiplication().with_external(spec("open")).and_then(|tools| tools.with_external(spec("close")));
    tools.expect("three names")
}

/// An agent that records its steps.
fn recording(replies: impl IntoIterator<Item = ScriptedReply>) -> (Agent, Arc<Mutex<Vec<AgentStep>>>) {
    let record = Arc::new(Mutex::new(Vec::new()));
    let engine = crate::testing::scripted_engine(replies);
    let builder = Agent::builder(&engine, tools()).hook(Recorder(record.clone()));
    (builder.build().expect("an agent"), record)
}

struct Recorder(Arc<Mutex<Vec<AgentStep>>>);

impl Hook for Recorder {
    fn record(&self, step: &AgentStep) {
        self.0.lock().expect("no panic").push(step.clone());
    }
}

fn open(path: &str) -> ScriptedReply {
    ScriptedReply::call("open", json!({"path": path}))
}

/// Two calls of the caller's, and two that run.
fn mixed() -> ScriptedReply {
    open("a")
        .and_call("multiply", json!({"a": 3, "b": 5}))
        .and_call("close", json!({"path": "b"}))
        .and_call("multiply", json!({"a": 2, "b": 43}))
}

fn calls(reply: &AgentReply) -> Vec<ToolCall> {
    match &reply.stop {
        StopReason::ExternalCalls { calls } => calls.clone(),
        other => panic!("it ends with {other:?}"),
    }
}

fn result(call: &ToolCall) -> Message {
    Message::tool(call.id.as_deref(), call.name.as_str(), json!(format!("{} is done", call.name)))
}

fn results(reply: &AgentReply) -> Vec<String> {
    reply.steps.iter().map(|step| step.result.content.text()).collect()
}

/// Names of calls, and texts of other messages.
fn history(agent: &Agent) -> Vec<String> {
    let shown = |message: &Message| match message.tool_calls.is_empty() {
        true => message.content.text(),
        false => message.tool_calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(" "),
    };
    agent.conversation().history().iter().map(shown).collect()
}

const CALLS: &str = "open multiply close multiply";

#[test]
fn turn_ends_with_external_calls_after_the_others() {
    let (mut agent, record) = recording([mixed(), "Done.".into()]);
    let reply = agent.run("Go on.").expect("a reply");
    let waiting = calls(&reply);
    assert_eq!(waiting, [reply.message.tool_calls[0].clone(), reply.message.tool_calls[2].clone()]);
    assert_eq!(results(&reply), ["15", "86"]);
    assert_eq!(history(&agent), ["Go on.", CALLS, "15", "86"]);
    let stop = reply.stop.to_string();
    assert!(stop.starts_with("no answer before the results of the caller's tools: open ("), "{stop}");
    assert!(matches!(reply.clone().answered(), Err(Error::Stopped { steps, .. }) if steps.len() == 2));
    let text = serde_json::to_string(&reply).expect("JSON");
    assert_eq!(serde_json::from_str::<AgentReply>(&text).expect("a reply"), reply);

    // The results in the other order, and without a name.
    let mut given = [result(&waiting[1]), result(&waiting[0])];
    given[1].name = None;
    let reply = agent.run(given.to_vec()).expect("an answer");
    assert_eq!((reply.text().as_str(), &reply.stop), ("Done.", &StopReason::Answered));
    assert_eq!(results(&reply), ["open is done", "close is done"]);
    assert!(reply.steps.iter().all(|step| step.outcome == CallOutcome::External && step.round == 0));
    assert_eq!(history(&agent), ["Go on.", CALLS, "open is done", "15", "close is done", "86", "Done."]);
    let history = agent.conversation().history();
    let ids = history[2..6].iter().map(|result| (&result.tool_call_id, &result.name));
    let of_calls = history[1].tool_calls.iter().map(|call| (&call.id, Some(call.name.clone())));
    assert!(ids.eq(of_calls.collect::<Vec<_>>().iter().map(|(id, name)| (*id, name))));
    let recorded: Vec<_> =
        record.lock().expect("no panic").iter().map(|step| step.call.name.clone()).collect();
    assert_eq!(recorded, ["multiply", "multiply", "open", "close"]);
}

#[test]
fn external_results_work_in_streams_and_async() {
    let (mut agent, _) = recording([open("a"), open("b"), open("c"), "Done.".into(), "Hello!".into()]);
    let reply = futures_executor::block_on(agent.run_async("Go on.")).expect("a reply");
    let mut events = Vec::new();
    let mut stop = None;
    for event in agent.stream(result(&calls(&reply)[0])).expect("a turn") {
        match event.expect("an event") {
            AgentEvent::ToolResult(step) => events.push(format!("result of {}", step.call.name)),
            AgentEvent::ToolCall(call) => events.push(format!("call of {}", call.name)),
            AgentEvent::Finished(reply) => stop = Some(reply),
            _ => {}
        }
    }
    assert_eq!(events, ["result of open", "call of open"]);
    let stop = stop.expect("the end");
    assert_eq!(calls(&stop)[0].arguments["path"], "b");
    let reply = futures_executor::block_on(agent.run_async(result(&calls(&stop)[0]))).expect("a reply");
    assert_eq!(reply.steps[0].round, 1, "the second reply with calls since the question");
    let given = vec![result(&calls(&reply)[0]), Message::user("Hurry.")];
    let reply = agent.turn(given).run().expect("an answer");
    assert_eq!((reply.text().as_str(), reply.steps.len()), ("Done.", 1));
    let mut said = history(&agent);
    assert_eq!(said.split_off(5), ["open", "open is done", "Hurry.", "Done."]);
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Hello!");
}

#[test]
fn calls_after_external_results_are_the_next_round() {
    let multiply = ScriptedReply::call("multiply", json!({"a": 3, "b": 5}));
    let (mut agent, _) = recording([open("a"), multiply, "15.".into()]);
    let waiting = calls(&agent.run("Go on.").expect("a reply"));
    let reply = agent.run(result(&waiting[0])).expect("an answer");
    let rounds: Vec<_> = reply.steps.iter().map(|step| (step.call.name.as_str(), step.round)).collect();
    assert_eq!(rounds, [("open", 0), ("multiply", 1)]);
}

#[test]
fn answer_after_external_calls_is_typed() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Opened {
        files: u8,
    }
    let (mut agent, _) = recording([open("a"), ScriptedReply::text(r#"{"files":1}"#)]);
    let error = agent.run_as::<Opened>("Go on.").err().expect("no answer");
    let Error::Stopped { reason: StopReason::ExternalCalls { calls }, .. } = error else { panic!("{error}") };
    assert_eq!(agent.run_as::<Opened>(result(&calls[0])).expect("an answer").files, 1);
}

#[test]
fn missing_and_unknown_results_change_nothing() {
    let (mut agent, record) = recording([mixed(), "Done.".into()]);
    let waiting = calls(&agent.run("Go on.").expect("a reply"));
    let before = agent.conversation().history();
    let [first, second] = [result(&waiting[0]), result(&waiting[1])];
    let missing = |error: Error| match error {
        Error::MissingResults { calls } => calls.into_iter().map(|call| call.name).collect::<Vec<_>>(),
        other => panic!("{other}"),
    };
    let unknown = |error: Error| match error {
        Error::UnknownResult { id, waiting } => (id, waiting.len()),
        other => panic!("{other}"),
    };
    assert_eq!(missing(agent.run("Hi!").expect_err("calls wait")), ["open", "close"]);
    assert_eq!(missing(agent.run(second.clone()).expect_err("one waits")), ["open"]);
    let late = vec![Message::user("Hi!"), first.clone(), second.clone()];
    assert_eq!(missing(agent.run(late).expect_err("the results come first")), ["open", "close"]);
    let twice = vec![first.clone(), first.clone(), second.clone()];
    assert_eq!(unknown(agent.run(twice).expect_err("two of one call")), (first.tool_call_id.clone(), 2));
    let ran = agent.conversation().history()[2].clone();
    assert_eq!(unknown(agent.run(ran.clone()).expect_err("it has run")), (ran.tool_call_id, 2));
    let mut nameless = first.clone();
    nameless.tool_call_id = None;
    let error = agent.run(nameless).expect_err("no id");
    assert!(
        error.to_string().starts_with(
            "expected the result of a call that waits for one, got one without an id; such calls: open ("
        ),
        "{error}"
    );
    assert_eq!(unknown(error), (None, 2));
    assert_eq!(agent.conversation().history(), before);
    assert_eq!(record.lock().expect("no panic").len(), 2);

    let given = vec![first.clone(), second];
    assert_eq!(agent.run(given).expect("an answer").text(), "Done.");
    let error = agent.run(first).expect_err("it has its result");
    assert!(error.to_string().ends_with("; such calls: none"), "{error}");
}

#[test]
fn results_exceeding_the_context_can_be_resubmitted() {
    let (mut agent, record) = recording([open("a"), "Done.".into()]);
    let waiting = calls(&agent.run("Go on.").expect("a reply"));
    let before = agent.conversation().history();
    let long = Message::tool(waiting[0].id.as_deref(), "open", json!("word ".repeat(8_000)));
    assert!(matches!(agent.run(long), Err(Error::Conversation(_))));
    assert_eq!((agent.conversation().history(), record.lock().expect("no panic").len()), (before, 0));
    assert_eq!(agent.run(result(&waiting[0])).expect("an answer").text(), "Done.");
}

#[test]
fn rejected_external_calls_have_results() {
    let config = ConversationConfig {
        template: Some(template()),
        constrain_calls: ConstrainCalls::No,
        ..ConversationConfig::default()
    };
    let invalid = "<tool_call>\n{\"name\": \"open\", \"arguments\": {}}\n</tool_call>".to_owned();
    let engine = scripted_engine([invalid, "Done.".to_owned()]);
    let mut agent = Agent::builder(&engine, tools()).config(config).build().expect("an agent");
    let reply = agent.run("Go on.").expect("an answer");
    assert_eq!(reply.text(), "Done.");
    assert!(results(&reply)[0].contains("argument `path`: missing"), "{reply:?}");

    let (mut agent, _) = recording([mixed(), "Done.".into()]);
    agent.settings.hooks.push(Arc::new(super::super::hooks::BeforeCall(|request: &CallRequest<'_>| {
        match request.call.name.as_str() {
            "open" => Decision::Answer(json!("it was open")),
            "close" => Decision::Deny("not now".to_owned()),
            _ => Decision::Run,
        }
    })));
    assert_eq!(agent.run("Go on.").expect("an answer").text(), "Done.");
    let limits = AgentLimits { max_calls: Some(3), ..AgentLimits::default() };
    let (mut agent, _) = recording([mixed(), "Done.".into()]);
    let reply = agent.turn("Go on.").limits(limits).run().expect("a reply");
    assert_eq!(reply.stop, StopReason::CallLimit { max_calls: 3 });
    let outcomes: Vec<_> = reply.steps.iter().map(|step| (step.call.name.as_str(), &step.outcome)).collect();
    use CallOutcome::{NotRun, Ran};
    assert_eq!(outcomes, [("multiply", &Ran), ("multiply", &NotRun), ("open", &NotRun), ("close", &NotRun)]);
    assert_eq!(agent.run("Hi!").expect("nothing waits").text(), "Done.");
}

#[test]
fn stopping_hook_leaves_no_external_call() {
    let (mut agent, _) = recording([mixed(), "Done.".into()]);
    agent.settings.hooks.push(Arc::new(super::super::hooks::AfterCallFn(|_: &AgentStep| {
        AfterCall::Stop("enough".to_owned())
    })));
    let reply = agent.run("Go on.").expect("a reply");
    assert_eq!((reply.steps.len(), &reply.stop), (4, &StopReason::Hook { message: "enough".to_owned() }));
    assert_eq!(history(&agent)[1], CALLS);
    let refused = r#"{"tool_name":"open","error":"the call was not run: the turn was stopped: enough"}"#;
    assert_eq!((history(&agent)[2].as_str(), history(&agent)[3].as_str()), (refused, "15"));
}

#[test]
fn hooks_see_external_results() {
    let (mut agent, _) = recording([open("a"), open("b"), "Done.".into()]);
    agent.settings.hooks.push(Arc::new(super::super::hooks::AfterCallFn(|step: &AgentStep| {
        match step.call.arguments["path"].as_str() {
            Some("a") => AfterCall::Replace(json!("replaced")),
            _ => AfterCall::Stop("enough".to_owned()),
        }
    })));
    let reply = agent.run("Go on.").expect("a reply");
    let reply = agent.run(result(&calls(&reply)[0])).expect("a reply");
    assert_eq!((results(&reply), history(&agent)[2].as_str()), (vec!["replaced".to_owned()], "replaced"));
    let stopped = agent.run(result(&calls(&reply)[0])).expect("a reply");
    assert_eq!(stopped.stop, StopReason::Hook { message: "enough".to_owned() });
    assert_eq!(stopped.message.tool_calls[0].arguments["path"], "b");
    assert_eq!(history(&agent)[3..], ["open", "open is done"]);
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Done.");
}

#[test]
fn audit_log_records_runner_and_edits() {
    let (mut agent, record) = recording([open("a").and_call("open", json!({"path": "b"})), "Done.".into()]);
    let ask = |request: &CallRequest<'_>| match request.call.arguments["path"].as_str() {
        Some("a") => Decision::Ask,
        _ => Decision::Run,
    };
    agent.settings.hooks.push(Arc::new(super::super::hooks::BeforeCall(ask)));
    let edited = json!({"path": "c"}).as_object().cloned().expect("an object");
    let mut waiting = Vec::new();
    for event in agent.stream("Go on.").expect("a turn") {
        match event.expect("an event") {
            AgentEvent::Approval(request) => request.allow_with(edited.clone()),
            AgentEvent::Finished(reply) => waiting = calls(&reply),
            _ => {}
        }
    }
    assert_eq!((&waiting[0].arguments, &waiting[1].arguments["path"]), (&edited, &json!("b")));
    agent.conversation_mut(); // It ends no turn that has ended.
    agent.run(waiting.iter().map(result).collect::<Vec<_>>()).expect("an answer");
    let recorded: Vec<_> =
        record.lock().expect("no panic").iter().map(|step| (step.asked, step.outcome.clone())).collect();
    assert_eq!(recorded, [(true, CallOutcome::Edited { arguments: edited }), (false, CallOutcome::External)]);
    assert_eq!(agent.conversation().history()[1].tool_calls[0].arguments["path"], "a");
}

#[test]
fn external_calls_wait_in_a_saved_conversation() {
    let (mut agent, _) = recording([mixed()]);
    let waiting = calls(&agent.run("Go on.").expect("a reply"));
    assert_eq!(agent.waiting_calls(), waiting);
    let saved = agent.conversation().saved();
    drop(agent);
    let (mut agent, record) = recording(["Done.".into()]);
    assert_eq!(agent.waiting_calls(), []);
    agent.conversation_mut().restore(saved).expect("messages");
    assert_eq!(agent.waiting_calls(), waiting);
    assert!(matches!(agent.run("Hi!"), Err(Error::MissingResults { calls }) if calls.len() == 2));
    agent.run(waiting.iter().map(result).collect::<Vec<_>>()).expect("an answer");
    assert_eq!(history(&agent), ["Go on.", CALLS, "open is done", "15", "close is done", "86", "Done."]);
    assert_eq!((agent.waiting_calls(), record.lock().expect("no panic").len()), (Vec::new(), 2));
}

#[test]
fn external_call_waits_as_edited_after_the_turn() {
    let (mut agent, _) = recording([open("a")]);
    agent.settings.hooks.push(Arc::new(super::super::hooks::BeforeCall(|_: &CallRequest<'_>| Decision::Ask)));
    let edited = json!({"path": "c"}).as_object().cloned().expect("an object");
    let mut turn = agent.stream("Go on.").expect("a turn");
    let request = turn.find_map(|event| match event.expect("an event") {
        AgentEvent::Approval(request) => Some(request),
        _ => None,
    });
    assert_eq!(agent.waiting_calls(), []);
    request.expect("a request").allow_with(edited.clone());
    turn.for_each(|event| assert!(event.is_ok(), "{event:?}"));
    assert_eq!(agent.waiting_calls()[0].arguments, edited);
}

#[test]
fn stopped_turn_keeps_its_initial_results() {
    for is_dropped in [true, false] {
        let (mut agent, record) =
            recording([mixed(), ScriptedReply::text("word ".repeat(500)), "Hello!".into()]);
        let waiting = calls(&agent.run("Go on.").expect("a reply"));
        let given: Vec<_> = waiting.iter().map(result).collect();
        let turn = agent.stream(given).expect("a turn");
        if is_dropped {
            drop(turn);
        } else {
            turn.canceller().cancel();
            assert!(matches!(turn.last(), Some(Err(Error::Cancelled))));
        }
        assert_eq!(history(&agent), ["Go on.", CALLS, "open is done", "15", "close is done", "86"]);
        assert_eq!(record.lock().expect("no panic").len(), 4, "each call once");
        assert!(agent.run("Hi!").is_ok());
    }
}

#[test]
fn dropped_turn_leaves_no_external_call() {
    let wait = crate::ToolSpec::new("wait", "Waits.", json!({"type": "object"}));
    let tools = tools().with_async_fn(wait, |_, _| std::future::pending()).expect("four names");
    let engine = crate::testing::scripted_engine([open("a").and_call("wait", json!({})), "Hello!".into()]);
    let mut agent = Agent::builder(&engine, tools).build().expect("an agent");
    let mut turn = agent.stream("Go on.").expect("a turn");
    assert!(turn.any(|event| matches!(event, Ok(AgentEvent::ReplyFinished(_)))));
    // The calls begin with the next poll.
    let mut next = Box::pin(turn.recv());
    assert!(next.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
    drop(next);
    drop(turn);
    let history = agent.conversation().history();
    assert!(history[2].content.text().contains("was not run"), "{history:?}");
    assert!(history[3].content.text().contains("may have taken effect"), "{history:?}");
    assert_eq!(agent.run("Hi!").expect("nothing waits").text(), "Hello!");
}

#[test]
fn recorded_external_results_are_replayed() {
    let (mut agent, _) = recording([mixed(), "Done.".into()]);
    let first = agent.run("Go on.").expect("a reply");
    let second = agent.run(calls(&first).iter().map(result).collect::<Vec<_>>()).expect("an answer");
    let before = history(&agent);
    let (mut agent, _) = recording([mixed(), "Done.".into()]);
    let replay = Arc::new(Replay::new([first.steps, second.steps].concat()));
    agent.settings.hooks.push(replay.clone());
    assert_eq!(agent.run("Go on.").expect("an answer").text(), "Done.");
    assert_eq!((history(&agent), replay.remaining()), (before, 0));
}
