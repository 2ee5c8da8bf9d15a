use super::{Custom, call, events, last, limits, meeting, texts};
use crate::{CallContext, CancelHandle, ToolErrorKind, ToolOutput, Toolset, Value};
use lm_template::ToolSpec;
use serde_json::json;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Deadline in the context of a call, by the limits of its tool, of the toolset, and of the turn.
fn deadline(tool: Option<Duration>, toolset: Option<Duration>, turn: Option<Instant>) -> Option<Instant> {
    let (send, sent) = channel();
    let send = Mutex::new(send);
    let run = move |_, context: &CallContext| {
        let _ = send.lock().expect("one call").send(context.deadline());
        ToolOutput::from(Ok(Value::Null))
    };
    let tool = Custom { timeout: tool, ..Custom::new("look", run) };
    let tools = Toolset::new().with(tool).expect("one tool").with_limits(limits(1, toolset, None));
    tools.start(vec![call("look", json!({}))], &CancelHandle::new(), turn).for_each(drop);
    sent.recv().expect("the tool runs")
}

#[test]
fn tool_limit_overrides_the_toolset_limit() {
    for (tool, toolset, expected) in [
        (Some(HOUR), Some(MINUTE), Some(HOUR)),
        (Some(MINUTE), Some(HOUR), Some(MINUTE)),
        (None, Some(HOUR), Some(HOUR)),
        (Some(HOUR), None, Some(HOUR)),
        (None, None, None),
    ] {
        let before = Instant::now();
        let deadline = deadline(tool, toolset, None);
        let earliest = expected.map(|limit| before + limit);
        let latest = expected.map(|limit| Instant::now() + limit);
        assert!(earliest <= deadline && deadline <= latest, "{tool:?} {toolset:?}: {deadline:?}");
    }
}

#[test]
fn call_context_has_the_turn_deadline() {
    let turn = Instant::now() + MINUTE;
    assert_eq!(deadline(None, None, Some(turn)), Some(turn));
    assert_eq!(deadline(Some(HOUR), Some(HOUR), Some(turn)), Some(turn));
    let late = Instant::now() + 2 * HOUR;
    assert!(deadline(Some(HOUR), None, Some(late)).is_some_and(|deadline| deadline < late));
}

#[test]
fn dropped_reader_cancels_calls_but_not_the_turn() {
    let (started, has_started) = channel::<CallContext>();
    let (release, released) = channel::<()>();
    let ends = Mutex::new((started, released));
    let run = move |_, context: &CallContext| {
        let (started, released) = &*ends.lock().expect("one call at a time");
        let _ = started.send(context.clone());
        let _ = released.recv();
        ToolOutput::from(Ok(Value::Null))
    };
    let tools = Toolset::new().with(Custom::new("wait", run)).expect("one tool");
    let cancel = CancelHandle::new();
    let running =
        tools.with_limits(limits(1, None, None)).start(vec![call("wait", json!({})); 2], &cancel, None);
    let context = has_started.recv().expect("the first call begins");
    assert!(!context.is_cancelled());
    drop(running);
    assert!(context.is_cancelled());
    assert!(!cancel.is_cancelled(), "the handle is the caller's");
    drop(release);
    assert!(has_started.recv().is_err(), "the second call does not begin");
}

#[test]
fn calls_after_a_sequential_one_run_concurrently() {
    let alone = Custom { is_sequential: true, ..Custom::new("alone", |_, _| Ok(json!("alone")).into()) };
    let tools = meeting(2).with(alone).expect("two tools").with_limits(limits(2, None, None));
    let calls = ["alone", "meet", "meet"].map(|name| call(name, json!({}))).to_vec();
    assert_eq!(texts(&tools, calls), ["alone", "2", "2"]);
}

#[test]
fn rejected_call_error_is_cut() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let tools = Toolset::new().with_fn(ToolSpec::new("sum", "Sum.", schema), |_| Ok(Value::Null));
    let long = call("sum", json!({ "é".repeat(100_000): "one" }));
    let events = events(&tools.expect("one tool"), vec![long]);
    let error = last(&events).error.as_ref().expect("the argument is not an integer");
    assert_eq!(error.kind(), ToolErrorKind::InvalidArguments);
    let cut = format!("{}\n[cut: 4096 of 200000 bytes]", "é".repeat(2048));
    assert_eq!(error.to_string(), format!("argument `{cut}`: expected integer, got \"one\""));
}
