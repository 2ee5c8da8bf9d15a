use super::{CallEvent, Custom, call, events, last, limits, texts, wait_until};
use crate::{
    CallLimits, CancelHandle, Retry, RetryPolicy, ToolError, ToolErrorKind, ToolOutput, Toolset, Value, tool,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Fails.
#[tool]
fn blocking() -> Result<i64, ToolError> {
    Err(busy(Retry::Always))
}

/// Fails.
#[tool]
async fn asynchronous() -> Result<i64, ToolError> {
    Err(busy(Retry::Always))
}

#[test]
fn functions_that_return_tool_error_keep_its_details() {
    let limits = CallLimits { retries: quickly(1), ..CallLimits::default() };
    let tools = Toolset::new().with(blocking::tool()).and_then(|tools| tools.with(asynchronous::tool()));
    let tools = tools.expect("two tools").with_limits(limits);
    for name in ["blocking", "asynchronous"] {
        let events = events(&tools, vec![call(name, json!({}))]);
        assert_eq!((events.len(), last(&events).attempts), (2, 2), "{name}");
        assert_eq!(last(&events).error, Some(busy(Retry::Always)), "{name}");
    }
}

/// A policy without delays to speak of.
fn quickly(max_retries: u32) -> RetryPolicy {
    RetryPolicy { max_retries, backoff: Duration::from_millis(1), max_backoff: Duration::from_millis(3) }
}

/// A tool `try` that fails as often, then returns the number of its runs.
fn failing(error: ToolError, failures: usize) -> (Arc<AtomicUsize>, impl Fn() -> Result<Value, ToolError>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let run = move || match counted.fetch_add(1, Ordering::SeqCst) + 1 {
        run if run <= failures => Err(error.clone()),
        run => Ok(run.into()),
    };
    (runs, run)
}

fn busy(retry: Retry) -> ToolError {
    ToolError::failed("10.0.0.7 is busy").with_retry(retry).with_model_text("busy")
}

#[test]
fn retry_needs_error_tool_and_policy_consent() {
    let cases = [
        (Retry::Never, true, 3, 1),
        (Retry::IfIdempotent, false, 3, 1),
        (Retry::IfIdempotent, true, 3, 4),
        (Retry::Always, false, 2, 3),
        (Retry::Always, true, 0, 1),
    ];
    for (retry, is_idempotent, max_retries, attempts) in cases {
        for is_async in [false, true] {
            let (runs, run) = failing(busy(retry), usize::MAX);
            let run = move |_, _: &_| match (is_async, run()) {
                (true, result) => ToolOutput::pending(async { result }),
                (false, result) => result.into(),
            };
            let retries = Some(quickly(max_retries));
            let tool = Custom { is_async, is_idempotent, retries, ..Custom::new("try", run) };
            let tools = Toolset::new().with(tool).expect("one tool");
            let spawned = tools.clone().with_spawner(|future| {
                std::thread::spawn(|| futures_executor::block_on(future));
            });
            for tools in [tools, spawned] {
                runs.store(0, Ordering::SeqCst);
                let events = events(&tools, vec![call("try", json!({}))]);
                let case = format!("{retry:?}, {is_idempotent}, {max_retries}, {is_async}");
                assert_eq!(runs.load(Ordering::SeqCst), attempts, "{case}");
                assert_eq!(
                    events.len(),
                    attempts,
                    "{case}: a retry before each further attempt, and the result"
                );
                for (number, event) in (1..).zip(&events[..attempts - 1]) {
                    let delay = quickly(max_retries).delay(number);
                    let expected = CallEvent::Retry { index: 0, attempt: number, error: busy(retry), delay };
                    assert_eq!(event, &expected, "{case}");
                }
                let result = last(&events);
                assert_eq!((result.attempts as usize, result.error.as_ref()), (attempts, Some(&busy(retry))));
                let text = result.message.content.text();
                assert!(text.contains("busy") && !text.contains("10.0.0.7"), "{text}");
                assert_eq!(text.contains(&format!("({attempts} attempts)")), attempts > 1, "{text}");
            }
        }
    }
}

#[test]
fn first_success_is_the_result() {
    let (runs, run) = failing(busy(Retry::Always), 2);
    let tools = Toolset::new().with(Custom::new("try", move |_, _| run().into())).expect("one tool");
    let tools = tools.with_limits(CallLimits { retries: quickly(9), ..limits(8, None, None) });
    let events = events(&tools, vec![call("try", json!({}))]);
    let result = last(&events);
    assert_eq!((events.len(), result.attempts, &result.error), (3, 3, &None));
    assert_eq!((result.message.content.text(), runs.load(Ordering::SeqCst)), ("3".to_owned(), 3));
}

#[test]
fn panic_is_not_retried() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let run = move |_, _: &_| -> ToolOutput {
        counted.fetch_add(1, Ordering::SeqCst);
        panic!("no luck")
    };
    let tool = Custom { is_idempotent: true, retries: Some(quickly(3)), ..Custom::new("try", run) };
    let events = events(&Toolset::new().with(tool).expect("one tool"), vec![call("try", json!({}))]);
    assert_eq!((events.len(), runs.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(last(&events).error.as_ref().map(ToolError::kind), Some(ToolErrorKind::Panicked));
}

#[test]
fn delay_beyond_the_time_limit_is_skipped() {
    let hour = Duration::from_secs(3600);
    for backoff in [hour, Duration::MAX] {
        let (runs, run) = failing(busy(Retry::Always), usize::MAX);
        let retries = Some(RetryPolicy { max_retries: 5, backoff, max_backoff: backoff });
        let timeout = (backoff == hour).then_some(hour / 2);
        let tool = Custom { retries, timeout, ..Custom::new("try", move |_, _| run().into()) };
        let texts = texts(&Toolset::new().with(tool).expect("one tool"), vec![call("try", json!({}))]);
        assert!(texts[0].contains("busy") && runs.load(Ordering::SeqCst) == 1, "{texts:?}");
    }
}

#[test]
fn cancel_ends_the_retry_delay() {
    for is_async in [false, true] {
        let (runs, run) = failing(busy(Retry::Always), usize::MAX);
        let run = move |_, _: &_| ToolOutput::from(run());
        let hour = Duration::from_secs(3600);
        let retries = Some(RetryPolicy { max_retries: 5, backoff: hour, max_backoff: hour });
        let tools = Toolset::new().with(Custom { is_async, retries, ..Custom::new("try", run) });
        let tools = tools.expect("one tool").with_limits(limits(1, None, None)).with_spawner(|future| {
            std::thread::spawn(|| futures_executor::block_on(future));
        });
        let cancel = CancelHandle::new();
        let mut running = tools.start(vec![call("try", json!({}))], &cancel, None);
        assert!(matches!(running.next_event(), Some(CallEvent::Retry { attempt: 1, .. })));
        cancel.cancel();
        let Some(CallEvent::Finished(result)) = running.next_event() else { panic!("no result") };
        assert_eq!((result.attempts, result.error), (1, Some(busy(Retry::Always))));
        assert_eq!((running.next_event(), runs.load(Ordering::SeqCst)), (None, 1));
    }
}

#[test]
fn abandoned_call_is_not_retried() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let run = move |_, _: &_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let _ = released.lock().expect("one call").recv();
        ToolOutput::from(Err(busy(Retry::Always)))
    };
    let tools = Toolset::new().with(Custom { retries: Some(quickly(5)), ..Custom::new("try", run) });
    let tools = tools.expect("one tool").with_limits(limits(1, None, Some(Duration::ZERO)));
    let cancel = CancelHandle::new();
    let mut running = tools.start(vec![call("try", json!({}))], &cancel, None);
    wait_until(|| runs.load(Ordering::SeqCst) == 1);
    cancel.cancel();
    assert_eq!(running.by_ref().count(), 1);
    drop(release);
    wait_until(|| tools.watcher().abandoned().load(Ordering::SeqCst) == 0);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
