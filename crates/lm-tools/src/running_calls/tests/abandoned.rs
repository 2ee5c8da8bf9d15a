use super::{Custom, call, deaf, events, last, limits, wait_until};
use crate::{CallLimits, CancelHandle, ToolErrorKind, ToolOutput, Toolset, Value};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[test]
fn endless_calls_use_a_bounded_number_of_threads() {
    let started = Arc::new(AtomicUsize::new(0));
    let (count, gate) = (Arc::clone(&started), Arc::new(std::sync::Barrier::new(3)));
    let released = Arc::clone(&gate);
    let run = move |_, _: &_| {
        count.fetch_add(1, Ordering::SeqCst);
        gate.wait();
        ToolOutput::from(Ok(Value::Null))
    };
    let tools = Toolset::new().with(Custom::new("hang", run)).expect("one tool");
    let tools = tools.with(Custom::new("quick", |_, _| Ok(1.into()).into())).expect("two tools");
    let limits = CallLimits { max_abandoned: 2, ..limits(8, None, Some(Duration::ZERO)) };
    let tools = tools.with_limits(limits);
    for number in 1..=2 {
        let cancel = CancelHandle::new();
        let mut running = tools.start(vec![call("hang", json!({}))], &cancel, None);
        wait_until(|| started.load(Ordering::SeqCst) == number);
        cancel.cancel();
        assert_eq!(running.by_ref().count(), 1);
    }
    let refused = events(&tools, vec![call("quick", json!({}))]);
    let result = last(&refused);
    assert_eq!(result.error.as_ref().map(crate::ToolError::kind), Some(ToolErrorKind::Unavailable));
    assert_eq!(result.attempts, 0);
    let text = result.message.content.text();
    assert!(text.contains("not run: 2 calls") && text.contains("have not ended"), "{text}");
    released.wait();
    wait_until(|| tools.watcher().abandoned().load(Ordering::SeqCst) == 0);
    assert_eq!(last(&events(&tools, vec![call("quick", json!({}))])).message.content.text(), "1");
}

#[test]
fn dropped_abandoned_future_does_not_count() {
    let run = |_, _: &_| ToolOutput::pending(std::future::pending());
    let tool = Custom { is_async: true, timeout: Some(Duration::ZERO), ..Custom::new("never", run) };
    let tools = Toolset::new().with(tool).expect("one tool");
    let tools = tools.with_limits(CallLimits { max_abandoned: 1, ..CallLimits::default() });
    let tools = tools.with_spawner(|future| {
        std::thread::spawn(|| futures_executor::block_on(future));
    });
    for _ in 0..3 {
        let events = events(&tools, vec![call("never", json!({}))]);
        let error = last(&events).error.as_ref().expect("an error");
        assert_eq!(error.kind(), ToolErrorKind::TimedOut, "{error}");
        wait_until(|| tools.watcher().abandoned().load(Ordering::SeqCst) == 0);
    }
}

#[test]
fn sequential_call_runs_alone() {
    let running = Arc::new(AtomicUsize::new(0));
    let tool = |is_sequential: bool| {
        let running = Arc::clone(&running);
        let run = move |_, _: &_| {
            let before = running.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            let after = running.fetch_sub(1, Ordering::SeqCst) - 1;
            ToolOutput::from(Ok(json!(!is_sequential || before + after == 0)))
        };
        let name = if is_sequential { "alone" } else { "beside" };
        Custom { is_sequential, ..Custom::new(name, run) }
    };
    let tools = Toolset::new().with(tool(true)).and_then(|tools| tools.with(tool(false)));
    let names = ["beside", "beside", "alone", "beside", "alone", "alone", "missing", "beside", "alone"];
    let calls = names.map(|name| call(name, json!({}))).to_vec();
    let texts = super::texts(&tools.expect("two tools"), calls);
    for (name, text) in names.iter().zip(&texts) {
        assert_eq!(text == "true", *name != "missing", "{name}: {text}");
    }
}

#[test]
fn earlier_of_turn_and_tool_limits_applies() {
    let (release, tools) = deaf();
    let hour = Duration::from_secs(3600);
    let soon = Duration::from_millis(30);
    for (timeout, turn) in
        [(Some(soon), Some(hour)), (Some(hour), Some(soon)), (None, Some(soon)), (Some(soon), None)]
    {
        let tools = tools.clone().with_limits(limits(1, timeout, None));
        let deadline = turn.map(|turn| Instant::now() + turn);
        let mut running = tools.start(vec![call("wait", json!({})); 2], &CancelHandle::new(), deadline);
        let text = running.next().expect("a result").content.text();
        assert!(text.contains("no result after"), "{text}");
        if turn == Some(soon) {
            let text = running.next().expect("a result").content.text();
            assert!(text.contains("not run"), "{text}");
        }
    }
    drop(release);
}
