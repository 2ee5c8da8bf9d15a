use super::{Custom, Panicking, call, events, last, limits, texts, wait_until};
use crate::{CallContext, CancelHandle, ToolErrorKind, ToolOutput, Toolset, Value};
use serde_json::json;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

fn panicking() -> Waker {
    std::sync::Arc::new(Panicking).into()
}

/// A waker that notes that it was called, and panics.
#[derive(Default)]
struct WokenAndPanics(AtomicBool);

impl Wake for WokenAndPanics {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        panic!("a bug");
    }
}

/// An asynchronous tool that is ready at its second poll.
fn twice() -> Toolset {
    let run = |_, _: &_| {
        ToolOutput::pending(async {
            let mut is_second = false;
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                match std::mem::replace(&mut is_second, true) {
                    true => std::task::Poll::Ready(Ok(json!("ready"))),
                    false => std::task::Poll::Pending,
                }
            })
            .await
        })
    };
    Toolset::new().with(Custom { is_async: true, ..Custom::new("twice", run) }).expect("one tool")
}

#[test]
fn spawner_can_run_the_future_inline() {
    let tools = twice().with_spawner(futures_executor::block_on);
    assert_eq!(texts(&tools, vec![call("twice", json!({})); 20]), ["ready"; 20]);
}

#[test]
fn future_dropped_by_its_spawner_has_a_result() {
    let first_poll = |mut future: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    };
    let panics = move |future| {
        first_poll(future);
        panic!("no runtime")
    };
    for tools in [twice().with_spawner(first_poll), twice().with_spawner(panics)] {
        let events = events(&tools, vec![call("twice", json!({})); 2]);
        assert_eq!(events.len(), 2);
        let result = last(&events);
        assert_eq!(
            (result.attempts, result.error.as_ref().map(crate::ToolError::kind)),
            (1, Some(ToolErrorKind::Cancelled))
        );
        let text = result.message.content.text();
        assert!(text.contains("ended without a result; it may have taken effect"), "{text}");
    }
}

#[test]
fn runtime_shutdown_during_a_blocking_tool_yields_a_result() {
    let run = |_, _: &_| ToolOutput::pending(std::future::pending());
    for tools in [Toolset::new().with_spawner(drop), Toolset::new().with_spawner(|_| panic!("no runtime"))] {
        let tools = tools.with(Custom::new("later", run)).expect("one tool");
        let texts = texts(&tools, vec![call("later", json!({})); 2]);
        assert!(texts.iter().all(|text| text.contains("\"error\"")), "{texts:?}");
    }
}

#[test]
fn panicking_waker_loses_no_result() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let run = move |_, _: &_| {
        let _ = released.lock().expect("one call at a time").recv();
        ToolOutput::from(Ok(json!("ready")))
    };
    let tools = Toolset::new().with(Custom::new("wait", run)).expect("one tool");
    let mut running = tools.with_limits(limits(1, None, None)).start(
        vec![call("wait", json!({})); 3],
        &CancelHandle::new(),
        None,
    );
    {
        let mut waiting = pin!(running.recv());
        let woken = Arc::new(WokenAndPanics::default());
        let waker = woken.clone().into();
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(release);
        wait_until(|| woken.0.load(Ordering::SeqCst));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    assert_eq!(running.count(), 2);
}

#[test]
fn panicking_cancel_waker_keeps_the_limits() {
    let run = |_, context: &CallContext| {
        let context = context.clone();
        ToolOutput::pending(async move {
            let mut cancelled = pin!(context.cancelled());
            let waker = panicking();
            assert!(cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            std::future::pending().await
        })
    };
    let timeout = Some(Duration::from_millis(100));
    let tool = Custom { is_async: true, timeout, ..Custom::new("never", run) };
    let tools = Toolset::new().with(tool).expect("one tool");
    for _ in 0..2 {
        let texts = texts(&tools, vec![call("never", json!({}))]);
        assert!(texts[0].contains("no result after"), "{texts:?}");
        wait_until(|| tools.watcher().abandoned().load(std::sync::atomic::Ordering::SeqCst) == 0);
    }
}

/// A panic's payload, or a value of a future, that panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("again");
        }
    }
}

#[test]
fn panics_during_drop_leave_one_result() {
    let payload = |_, _: &_| -> ToolOutput { std::panic::panic_any(Bomb) };
    let future = |_, _: &_| ToolOutput::Pending(Box::pin(KeepsBomb { _bomb: Bomb }));
    let tools = Toolset::new().with(Custom::new("payload", payload)).expect("one tool");
    let tools = tools.with(Custom { is_async: true, ..Custom::new("future", future) }).expect("two tools");
    let calls = vec![call("payload", json!({})), call("future", json!({}))];
    let texts = texts(&tools, calls);
    assert!(texts[0].contains("\"error\""), "{texts:?}");
    assert_eq!(texts[1], "ready");
}

struct KeepsBomb {
    _bomb: Bomb,
}

impl Future for KeepsBomb {
    type Output = Result<Value, crate::ToolError>;

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> std::task::Poll<Self::Output> {
        std::task::Poll::Ready(Ok(json!("ready")))
    }
}

#[test]
fn overly_deep_late_result_is_harmless() {
    let (started, is_started) = channel();
    let started = Mutex::new(started);
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let run = move |_, _: &_| {
        let _ = started.lock().expect("no panic").send(());
        let _ = released.lock().expect("one call at a time").recv();
        ToolOutput::from(Ok((0..100_000).fold(Value::Null, |value, _| Value::Array(vec![value]))))
    };
    let tools = Toolset::new().with(Custom::new("deep", run)).expect("one tool");
    let tools = tools.with_limits(limits(1, None, Some(Duration::ZERO)));
    let cancel = CancelHandle::new();
    let mut running = tools.start(vec![call("deep", json!({}))], &cancel, None);
    is_started.recv().expect("the tool runs");
    cancel.cancel();
    assert!(running.next().expect("a result").content.text().contains("the turn was ended"));
    drop(release);
    wait_until(|| tools.watcher().abandoned().load(std::sync::atomic::Ordering::SeqCst) == 0);
    assert!(texts(&tools, vec![call("deep", json!({}))])[0].contains("deeper than 128 levels"));
}
