use super::{CallEvent, Custom, limits, wait_until};
use crate::{
    CallContext, CallLimits, CallResult, CancelHandle, Map, Retry, RetryPolicy, Tool, ToolCall, ToolError,
    ToolErrorKind, ToolOutput, Toolset, Value,
};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Behaviour of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Succeeds,
    Fails,
    /// Fails with an error that may be retried.
    Retries,
    /// As above, but not idempotent.
    FailsOnce,
    Panics,
    UntilCancelled,
    /// Ignores its context until the test is over.
    Forever,
    Large,
    Unknown,
    Invalid,
}

use Kind::{Fails, FailsOnce, Forever, Invalid, Large, Panics, Retries, Succeeds, Unknown, UntilCancelled};

const RUNNABLE: [Kind; 8] = [Succeeds, Fails, Retries, FailsOnce, Panics, UntilCancelled, Forever, Large];
const MAX_RETRIES: u32 = 2;

impl Kind {
    /// Name of the tool, blocking or asynchronous.
    fn name(self, is_async: bool) -> &'static str {
        let names = match self {
            Succeeds => ["succeeds", "async_succeeds"],
            Fails => ["fails", "async_fails"],
            Retries => ["retries", "async_retries"],
            FailsOnce => ["fails_once", "async_fails_once"],
            Panics => ["panics", "async_panics"],
            UntilCancelled => ["until_cancelled", "async_until_cancelled"],
            Forever => ["forever", "async_forever"],
            Large => ["large", "async_large"],
            Unknown => ["unknown", "async_unknown"],
            Invalid => return Succeeds.name(is_async),
        };
        names[usize::from(is_async)]
    }

    /// Error of a call that is not cancelled.
    fn error(self) -> Option<ToolErrorKind> {
        match self {
            Succeeds | Large => None,
            Fails | Retries | FailsOnce => Some(ToolErrorKind::Failed),
            Panics => Some(ToolErrorKind::Panicked),
            UntilCancelled | Forever => Some(ToolErrorKind::TimedOut),
            Unknown => Some(ToolErrorKind::UnknownTool),
            Invalid => Some(ToolErrorKind::InvalidArguments),
        }
    }

    fn max_runs(self) -> u32 {
        match self {
            Unknown | Invalid => 0,
            Retries => 1 + MAX_RETRIES,
            _ => 1,
        }
    }
}

/// State of one case.
struct Test {
    /// Runs of each call.
    runs: Vec<AtomicU32>,
    is_over: AtomicBool,
}

impl Test {
    /// Runs a tool of a kind, and waits as a blocking tool does.
    fn run(&self, kind: Kind, context: &CallContext) -> Result<Value, ToolError> {
        context.progress("running");
        while (kind == Forever && !self.is_over.load(Ordering::SeqCst))
            || (kind == UntilCancelled && !context.is_cancelled())
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        match kind {
            Fails => Err(ToolError::failed("failed")),
            Retries | FailsOnce => Err(ToolError::failed("busy").with_retry(Retry::IfIdempotent)),
            Panics => panic!("a tool of this test panics"),
            Large => Ok(json!({"text": "é".repeat(5 << 20)})),
            _ => Ok(Value::Null),
        }
    }
}

fn tool(kind: Kind, is_async: bool, test: &Arc<Test>) -> impl Tool + 'static {
    let test = Arc::clone(test);
    let run = move |arguments: Map<String, Value>, context: &CallContext| {
        let call = arguments["n"].as_u64().unwrap_or_default() as usize;
        test.runs[call].fetch_add(1, Ordering::SeqCst);
        if !is_async {
            return test.run(kind, context).into();
        }
        let (test, context) = (test.clone(), context.clone());
        ToolOutput::pending(async move {
            match kind {
                Forever => std::future::pending().await,
                UntilCancelled => context.cancelled().await,
                _ => {}
            }
            test.run(kind, &context)
        })
    };
    let backoff = Duration::from_millis(1);
    let retries = Some(RetryPolicy { max_retries: MAX_RETRIES, backoff, max_backoff: backoff });
    let timeout = matches!(kind, Forever | UntilCancelled).then_some(Duration::from_millis(15));
    let is_idempotent = kind != FailsOnce;
    Custom {
        is_async,
        is_idempotent,
        retries,
        timeout,
        is_sequential: kind == Fails,
        ..Custom::new(kind.name(is_async), run)
    }
}

/// Runtime of the asynchronous tools of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Runtime {
    None,
    Threads,
    /// Drops every third future.
    Unreliable,
}

fn toolset(test: &Arc<Test>, limits: CallLimits, runtime: Runtime) -> Toolset {
    let kinds = RUNNABLE.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    let tools = kinds.fold(Toolset::new().with_limits(limits), |tools, (kind, is_async)| {
        tools.with(tool(kind, is_async, test)).expect("different names")
    });
    let spawned = AtomicU32::new(0);
    match runtime {
        Runtime::None => tools,
        _ => tools.with_spawner(move |future| {
            let number = spawned.fetch_add(1, Ordering::SeqCst);
            if runtime == Runtime::Threads || !number.is_multiple_of(3) {
                std::thread::spawn(|| futures_executor::block_on(future));
            }
        }),
    }
}

fn calls(kinds: &[(Kind, bool)]) -> Vec<ToolCall> {
    let calls = kinds.iter().enumerate().map(|(number, &(kind, is_async))| {
        let n = if kind == Invalid { json!("no number") } else { json!(number) };
        let call =
            json!({"name": kind.name(is_async), "arguments": {"n": n}, "id": format!("call_{number}")});
        ToolCall::from_json(call).expect("a call")
    });
    calls.collect()
}

/// A case: kinds of calls, maximum in parallel, cancel before an event or not, end of reading, runtime,
/// deadline of the turn.
type Case = (Vec<(Kind, bool)>, usize, Option<usize>, Option<usize>, Runtime, Option<u64>);

fn case() -> impl Strategy<Value = Case> {
    let runnable = RUNNABLE.to_vec();
    let kind = prop_oneof![8 => proptest::sample::select(runnable), 1 => Just(Unknown), 1 => Just(Invalid)];
    (
        proptest::collection::vec((kind, any::<bool>()), 0..10),
        1_usize..6,
        proptest::option::weighted(0.4, 0_usize..20),
        proptest::option::weighted(0.3, 0_usize..20),
        proptest::sample::select(vec![Runtime::None, Runtime::Threads, Runtime::Unreliable]),
        proptest::option::weighted(0.2, 0_u64..30),
    )
}

/// Runs a case, and returns the results that were read.
fn run(case: &Case, test: &Arc<Test>, tools: &Toolset) -> Vec<CallResult> {
    let (kinds, _, cancel_at, read, _, deadline) = case;
    let cancel = CancelHandle::new();
    let deadline = deadline.map(|ms| Instant::now() + Duration::from_millis(ms));
    let mut running = tools.start(calls(kinds), &cancel, deadline);
    let mut results = Vec::new();
    for event in 0..read.unwrap_or(usize::MAX) {
        if *cancel_at == Some(event) {
            cancel.cancel();
        }
        match running.next_event() {
            Some(CallEvent::Finished(result)) => results.push(*result),
            Some(_) => {}
            None => {
                assert_eq!(results.len(), kinds.len(), "one result for each call");
                assert!(running.next_event().is_none());
                break;
            }
        }
    }
    drop(running);
    test.is_over.store(true, Ordering::SeqCst);
    results
}

fn check(case: &Case) {
    let (kinds, max_parallel, cancel_at, _, runtime, deadline) = case;
    let runs = kinds.iter().map(|_| AtomicU32::new(0)).collect();
    let test = Arc::new(Test { runs, is_over: AtomicBool::new(false) });
    let limits =
        CallLimits { max_result_bytes: 1000, ..limits(*max_parallel, None, Some(Duration::from_millis(5))) };
    let tools = toolset(&test, limits, *runtime);
    let results = run(case, &test, &tools);
    let is_interrupted = cancel_at.is_some() || deadline.is_some();
    for (number, (result, (kind, is_async))) in results.iter().zip(kinds).enumerate() {
        let id = format!("call_{number}");
        let named = (result.index, result.message.tool_call_id.as_deref(), result.message.name.as_deref());
        assert_eq!(named, (number, Some(id.as_str()), Some(kind.name(*is_async))));
        assert!(result.message.content.text().len() < 1100, "bounded");
        let error = result.error.as_ref().map(ToolError::kind);
        let is_ended = matches!(error, Some(ToolErrorKind::Cancelled | ToolErrorKind::TimedOut));
        let is_graceful = *kind == UntilCancelled && error.is_none();
        let is_dropped = *runtime == Runtime::Unreliable && *is_async && result.attempts == 0;
        let is_expected = error == kind.error() || is_graceful || is_interrupted && is_ended || is_dropped;
        assert!(is_expected, "{kind:?}: {result:?}");
        assert!(
            result.attempts <= test.runs[number].load(Ordering::SeqCst).max(kind.max_runs()),
            "{result:?}"
        );
        if !is_interrupted && !is_dropped && error != Some(ToolErrorKind::TimedOut) {
            assert_eq!(result.attempts, kind.max_runs(), "{kind:?}: {result:?}");
        }
    }
    let watcher = Arc::downgrade(tools.watcher().abandoned());
    drop(tools);
    wait_until(|| watcher.strong_count() == 0); // The thread of the watcher has ended, and so have all runs.
    for (number, (kind, _)) in kinds.iter().enumerate() {
        let runs = test.runs[number].load(Ordering::SeqCst);
        assert!(runs <= kind.max_runs(), "call {number} of the kind {kind:?} ran {runs} times");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_call_has_one_result_within_its_attempts(case in case()) {
        check(&case);
    }
}
