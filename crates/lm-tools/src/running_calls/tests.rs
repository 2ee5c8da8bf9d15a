mod abandoned;
mod hostile;
mod limits;
mod progress;
mod property;
mod retries;
mod runtime;

use crate::{
    CallContext, CallEvent, CallLimits, CallResult, CancelHandle, Error, Map, RetryPolicy, State, Tool,
    ToolAnnotations, ToolCall, ToolError, ToolOutput, Toolset, Value, tool,
};
use lm_template::ToolSpec;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NONE: Duration = Duration::ZERO;

/// Waits until it is cancelled.
#[tool]
fn wait(context: &CallContext) -> String {
    while !context.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    format!("{:?} {} was cancelled", context.id(), context.name())
}

/// Returns at once.
#[tool]
async fn quick(context: &CallContext, n: i64) -> Result<i64, String> {
    if context.is_cancelled() { Err("cancelled".to_owned()) } else { Ok(n) }
}

/// Never ends.
#[tool(timeout = "30ms")]
async fn never(dropped: State<Arc<AtomicUsize>>) -> i64 {
    let _counted = Counted(Arc::clone(&dropped));
    std::future::pending().await
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Panics at its first poll.
#[tool]
async fn explode() -> i64 {
    panic!("no figures today")
}

/// Returns as many letters.
#[tool]
fn letters(count: usize) -> String {
    "é".repeat(count)
}

/// A tool with all its options.
struct Custom<F> {
    name: &'static str,
    is_async: bool,
    is_sequential: bool,
    is_idempotent: bool,
    retries: Option<RetryPolicy>,
    timeout: Option<Duration>,
    run: F,
}

impl<F: Fn(Map<String, Value>, &CallContext) -> ToolOutput> Custom<F> {
    fn new(name: &'static str, run: F) -> Self {
        let (is_async, is_sequential, is_idempotent) = (false, false, false);
        Self { name, is_async, is_sequential, is_idempotent, retries: None, timeout: None, run }
    }
}

impl<F: Fn(Map<String, Value>, &CallContext) -> ToolOutput + Send + Sync> Tool for Custom<F> {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        ToolSpec::new(self.name, "A tool.", parameters)
    }

    fn call(&self, arguments: Map<String, Value>, context: &CallContext) -> ToolOutput {
        (self.run)(arguments, context)
    }

    fn is_async(&self) -> bool {
        self.is_async
    }

    fn is_sequential(&self) -> bool {
        self.is_sequential
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { idempotent: Some(self.is_idempotent), ..ToolAnnotations::default() }
    }

    fn retries(&self) -> Option<RetryPolicy> {
        self.retries
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// Events of the calls, up to the end.
fn events(tools: &Toolset, calls: Vec<ToolCall>) -> Vec<CallEvent> {
    let mut running = tools.start(calls, &CancelHandle::new(), None);
    std::iter::from_fn(|| running.next_event()).collect()
}

/// The last event, which is a result.
fn last(events: &[CallEvent]) -> &CallResult {
    match events.last() {
        Some(CallEvent::Finished(result)) => result,
        other => panic!("{other:?} is not a result"),
    }
}

fn call(name: &str, arguments: Value) -> ToolCall {
    let call = json!({"name": name, "arguments": arguments, "id": format!("id_{name}")});
    ToolCall::from_json(call).expect("a call")
}

fn limits(max_parallel: usize, timeout: Option<Duration>, cancel_grace: Option<Duration>) -> CallLimits {
    CallLimits { max_parallel, timeout, cancel_grace, ..CallLimits::default() }
}

/// Texts of the results, without a deadline or a cancel.
fn texts(tools: &Toolset, calls: Vec<ToolCall>) -> Vec<String> {
    tools.start(calls, &CancelHandle::new(), None).map(|result| result.content.text()).collect()
}

/// A tool `meet` that returns when as many calls run at the same time.
fn meeting(size: usize) -> Toolset {
    let (arrived, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let spec = ToolSpec::new("meet", "Meet.", json!({"type": "object"}));
    let meet = move |_: Map<String, Value>| {
        let now = arrived.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(now, Ordering::SeqCst);
        let started = Instant::now();
        while peak.load(Ordering::SeqCst) < size && started.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        arrived.fetch_sub(1, Ordering::SeqCst);
        Ok(json!(peak.load(Ordering::SeqCst)))
    };
    Toolset::new().with_fn(spec, meet).expect("one tool")
}

#[test]
fn calls_run_at_the_same_time_up_to_the_limit() {
    let calls = || vec![call("meet", json!({})); 6];
    let tools = meeting(3).with_limits(limits(3, None, None));
    assert_eq!(texts(&tools, calls()), ["3"; 6]);
    let tools = meeting(1).with_limits(limits(1, None, None));
    assert_eq!(texts(&tools, calls()), ["1"; 6]);
}

#[test]
fn every_call_has_one_result_in_order() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let tools = Toolset::new()
        .with_state(Arc::clone(&dropped))
        .with_limits(CallLimits { max_result_bytes: 101, ..limits(2, None, None) });
    let tools = tools.with(never::tool()).and_then(|tools| tools.with(quick::tool()));
    let tools =
        tools.and_then(|tools| tools.with(explode::tool())).and_then(|tools| tools.with(letters::tool()));
    let calls = vec![
        call("never", json!({})),
        call("quick", json!({"n": 1})),
        call("explode", json!({})),
        call("unknown", json!({})),
        call("quick", json!({"n": "one"})),
        call("letters", json!({"count": 80})),
        call("quick", json!({"n": 2})),
    ];
    let mut results = tools.expect("four tools").start(calls.clone(), &CancelHandle::new(), None);
    assert_eq!(results.len(), 7);
    let messages: Vec<_> = results.by_ref().collect();
    assert_eq!((messages.len(), results.len(), results.next()), (7, 0, None));
    for (call, result) in calls.iter().zip(&messages) {
        assert_eq!((&result.tool_call_id, result.name.as_deref()), (&call.id, Some(call.name.as_str())));
    }
    let text = |index: usize| messages[index].content.text();
    assert!(text(0).contains("no result after 0."), "{}", text(0));
    assert_eq!((text(1), text(6)), ("1".to_owned(), "2".to_owned()));
    assert!(text(2).contains("the tool panicked: no figures today"), "{}", text(2));
    assert!(text(3).contains("Tool not found"), "{}", text(3));
    assert!(text(4).contains("argument `n`: expected integer, got"), "{}", text(4));
    assert_eq!(text(5), format!("{}\n[cut: 100 of 160 bytes]", "é".repeat(50)));
    wait_until(|| dropped.load(Ordering::SeqCst) == 1 || text(0).contains("it was not run"));
}

/// Waits for something that another thread does.
fn wait_until(mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn deadline_ends_a_blocking_call_and_cancels_its_context() {
    let tools = Toolset::new().with(wait::tool()).expect("one tool");
    let soon = Instant::now() + Duration::from_secs(1);
    for (limited, deadline) in [(limits(1, Some(NONE), None), None), (CallLimits::default(), Some(soon))] {
        let tools = tools.clone().with_limits(limited);
        let mut results = tools.start(vec![call("wait", json!({}))], &CancelHandle::new(), deadline);
        let text = results.next().expect("a result").content.text();
        assert!(text.contains("no result after"), "{text}");
    }
}

#[test]
fn cancel_lets_running_calls_end_and_starts_none() {
    let tools = Toolset::new().with(wait::tool()).expect("one tool");
    let calls = || vec![call("wait", json!({})); 3];
    let cancelled = |limits: CallLimits, tools: &Toolset| {
        let cancel = CancelHandle::new();
        let results = tools.clone().with_limits(limits).start(calls(), &cancel, None);
        cancel.cancel();
        results.map(|result| result.content.text()).collect::<Vec<_>>()
    };
    let texts = cancelled(limits(2, None, None), &tools);
    let ended = "Some(\"id_wait\") wait was cancelled";
    assert_eq!(texts[..2], [ended, ended]);
    assert!(texts[2].contains("the call was not run"), "{}", texts[2]);
    // A tool that does not look at its context is abandoned.
    let (release, tools) = deaf();
    let texts = cancelled(limits(1, None, Some(NONE)), &tools);
    assert!(texts[0].contains("the turn was ended while the call ran"), "{}", texts[0]);
    assert!(texts[1..].iter().all(|text| text.contains("not run")), "{texts:?}");
    drop(release);
}

/// A tool `wait` that ends with the sender.
fn deaf() -> (Sender<()>, Toolset) {
    let (release, released) = channel();
    let released: Mutex<Receiver<()>> = Mutex::new(released);
    let run = move |_: Map<String, Value>| {
        let _ = released.lock().expect("no other call").recv();
        Ok(Value::Null)
    };
    let spec = ToolSpec::new("wait", "Waits.", json!({"type": "object"}));
    (release, Toolset::new().with_fn(spec, run).expect("one tool"))
}

#[test]
fn async_tools_run_with_and_without_a_runtime() {
    let calls = || (0..20).map(|n| call("quick", json!({"n": n}))).collect::<Vec<_>>();
    let expected: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let tools = Toolset::new().with(quick::tool()).expect("one tool");
    assert_eq!(texts(&tools, calls()), expected);
    let spawned = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&spawned);
    let tools = tools.with_spawner(move |future| {
        count.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(|| futures_executor::block_on(future));
    });
    assert_eq!(texts(&tools, calls()), expected);
    assert_eq!(spawned.load(Ordering::SeqCst), 20);
    let mut results = tools.start(calls(), &CancelHandle::new(), None);
    let received = futures_executor::block_on(async {
        let mut texts = Vec::new();
        while let Some(result) = results.recv().await {
            texts.push(result.content.text());
        }
        texts
    });
    assert_eq!(received, expected);
}

#[test]
fn call_dropped_by_its_runtime_has_a_result() {
    let tools = Toolset::new().with(quick::tool()).expect("one tool");
    for tools in [tools.clone().with_spawner(drop), tools.with_spawner(|_| panic!("no runtime"))] {
        let texts = texts(&tools, vec![call("quick", json!({"n": 1})); 2]);
        assert!(texts.iter().all(|text| text.contains("not run: no thread or runtime took it")), "{texts:?}");
    }
}

#[test]
fn calls_do_not_start_after_the_deadline() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let spec = ToolSpec::new("count", "Count.", json!({"type": "object"}));
    let tools = Toolset::new().with_fn(spec, move |_| Ok(count.fetch_add(1, Ordering::SeqCst).into()));
    let calls = vec![call("count", json!({})); 3];
    let results = tools.expect("one tool").start(calls, &CancelHandle::new(), Some(Instant::now()));
    assert!(results.map(|result| result.content.text()).all(|text| text.contains("not run")));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[test]
fn future_started_after_cancel_does_not_run() {
    let queue = Arc::new(Mutex::new(Vec::new()));
    let queued = Arc::clone(&queue);
    let tools = Toolset::new().with(quick::tool()).expect("one tool");
    let tools = tools.with_spawner(move |future| queued.lock().expect("no panic").push(future));
    let cancel = CancelHandle::new();
    let results = tools.start(vec![call("quick", json!({"n": 1})); 2], &cancel, None);
    cancel.cancel();
    queue.lock().expect("no panic").drain(..).for_each(futures_executor::block_on);
    assert!(results.map(|result| result.content.text()).all(|text| text.contains("not run")));
}

/// A waker that panics.
struct Panicking;

impl std::task::Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("no runtime")
    }
}

#[test]
fn panicking_waker_keeps_the_limits() {
    let tools = Toolset::new().with_state(Arc::<AtomicUsize>::default()).with(never::tool());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let futures = Arc::clone(&kept);
    let tools = tools.expect("one tool").with_spawner(move |mut future| {
        let waker = Arc::new(Panicking).into();
        assert!(future.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        futures.lock().expect("no panic").push(future);
    });
    for _ in 0..2 {
        let texts = texts(&tools, vec![call("never", json!({}))]);
        assert!(texts[0].contains("no result after"), "{texts:?}");
    }
}

#[test]
fn tools_can_call_tools_and_deep_results_are_errors() {
    let spec = |name: &str| ToolSpec::new(name, "Nested.", json!({"type": "object"}));
    let inner = Toolset::new().with(quick::tool()).expect("one tool");
    let tools = Toolset::new().with_async_fn(spec("outer"), move |_, context| {
        let inner = inner.clone();
        async move {
            let direct = Tool::call(&quick::tool(), Map::from_iter([("n".to_owned(), 1.into())]), &context);
            Ok(json!([direct.wait()?, inner.call(&call("quick", json!({"n": 2}))).content.text()]))
        }
    });
    let tools = tools.and_then(|tools| {
        tools.with_fn(spec("deep"), |_| Ok((0..200).fold(Value::Null, |value, _| json!([value]))))
    });
    let texts = texts(&tools.expect("two tools"), vec![call("outer", json!({})), call("deep", json!({}))]);
    assert_eq!(texts[0], "[1,\"2\"]");
    assert!(texts[1].contains("nested deeper than 128 levels"), "{}", texts[1]);
}

/// Takes an argument that hides what the expansion names.
#[tool]
async fn arguments(context: i64, run: Option<i64>) -> i64 {
    context + run.unwrap_or_default()
}

/// Describes an argument that the model does not see.
///
/// # Arguments
/// - `call`: the context of the call
#[tool]
fn context(call: &CallContext) -> String {
    call.name().to_owned()
}

#[test]
fn functions_and_arguments_accept_any_name() {
    let tools = Toolset::new().with(arguments::tool()).and_then(|tools| tools.with(context::tool()));
    let calls = vec![call("arguments", json!({"context": 40, "run": 2})), call("context", json!({}))];
    assert_eq!(texts(&tools.expect("two tools"), calls), ["42", "context"]);
}

#[test]
fn tool_with_missing_state_is_rejected() {
    let error = Toolset::new().with(never::tool()).expect_err("no state");
    assert!(matches!(&error, Error::MissingState { tool, .. } if tool == "never"), "{error}");
    assert!(error.to_string().contains("AtomicUsize"), "{error}");
    let direct = never::tool();
    let result = Tool::call(&direct, Map::new(), &CallContext::default()).wait();
    assert!(matches!(result, Err(ToolError::Failed { .. })), "{result:?}");
}

#[test]
fn injected_arguments_are_not_declared() {
    let parameters = |spec: ToolSpec| spec.parameters().clone();
    assert_eq!(parameters(Tool::spec(&wait::tool()))["properties"], json!({}));
    assert_eq!(parameters(Tool::spec(&never::tool()))["properties"], json!({}));
    let quick = parameters(Tool::spec(&quick::tool()));
    assert_eq!((&quick["properties"]["n"]["type"], &quick["required"]), (&json!("integer"), &json!(["n"])));
}
