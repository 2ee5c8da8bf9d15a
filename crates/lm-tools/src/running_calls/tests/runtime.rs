use super::{Custom, call};
use crate::{CallContext, CancelHandle, ToolOutput, Toolset, Value};
use futures_util::future::{Either, select};
use serde_json::json;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Runs on a runtime that has one thread.
fn on_one_thread(run: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(run);
}

fn spawning(tools: Toolset) -> Toolset {
    let handle = tokio::runtime::Handle::current();
    tools.with_spawner(move |future| {
        handle.spawn(future);
    })
}

#[test]
fn blocking_tool_uses_no_runtime_thread() {
    on_one_thread(async {
        let (send, received) = channel();
        let received = Mutex::new(received);
        let run = move |_, _: &_| {
            let value: i64 = received.lock().expect("one call").recv().expect("a task of the runtime sends");
            ToolOutput::from(Ok(value.into()))
        };
        let tools = spawning(Toolset::new().with(Custom::new("wait", run)).expect("one tool"));
        let mut running = tools.start(vec![call("wait", json!({}))], &CancelHandle::new(), None);
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            send.send(7).expect("the tool waits");
        });
        assert_eq!(running.recv().await.expect("a result").content.text(), "7");
        assert!(running.recv().await.is_none());
    });
}

#[test]
fn futures_always_run_on_the_runtime() {
    on_one_thread(async {
        for is_async in [true, false] {
            let run = |_, _: &_| {
                ToolOutput::pending(async {
                    tokio::time::sleep(Duration::from_millis(1)).await; // Panics outside of the runtime.
                    Ok(json!("slept"))
                })
            };
            let tools = Toolset::new().with(Custom { is_async, ..Custom::new("sleep", run) });
            let tools = spawning(tools.expect("one tool"));
            let mut running = tools.start(vec![call("sleep", json!({})); 9], &CancelHandle::new(), None);
            let mut results = 0;
            while let Some(result) = running.recv().await {
                assert_eq!(result.content.text(), "slept");
                results += 1;
            }
            assert_eq!(results, 9);
        }
    });
}

#[test]
fn abandoned_future_is_dropped_on_the_runtime() {
    struct Sends(std::sync::mpsc::Sender<()>);
    impl Drop for Sends {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    on_one_thread(async {
        for is_async in [true, false] {
            let (dropped, is_dropped) = channel();
            let dropped = Mutex::new(dropped);
            let was_called = Arc::new(AtomicBool::new(false));
            let calls = was_called.clone();
            let run = move |_, _: &_| {
                calls.store(true, Ordering::SeqCst);
                let sends = Sends(dropped.lock().expect("no panic").clone());
                ToolOutput::pending(async move {
                    let _sends = sends;
                    std::future::pending().await
                })
            };
            let timeout = Some(Duration::from_millis(200));
            let tools = Toolset::new().with(Custom { is_async, timeout, ..Custom::new("never", run) });
            let tools = spawning(tools.expect("one tool"));
            // On a busy machine the time may be over before the tool is called.
            while !was_called.load(Ordering::SeqCst) {
                let mut running = tools.start(vec![call("never", json!({}))], &CancelHandle::new(), None);
                let text = running.recv().await.expect("a result").content.text();
                assert!(text.contains("no result after"), "{text}");
            }
            while tools.watcher().abandoned().load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            while is_dropped.try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
}

#[test]
fn async_tool_sees_the_cancel_in_all_tasks() {
    on_one_thread(async {
        let run = |_, context: &CallContext| {
            let (context, other) = (context.clone(), context.clone());
            ToolOutput::pending(async move {
                let other = tokio::spawn(async move { other.cancelled().await });
                let never = std::future::pending::<()>();
                let seen = match select(pin!(context.cancelled()), pin!(never)).await {
                    Either::Left(_) => context.is_cancelled(),
                    Either::Right(_) => false,
                };
                Ok(Value::from(seen && other.await.is_ok()))
            })
        };
        let tools = Toolset::new().with(Custom { is_async: true, ..Custom::new("watch", run) });
        let tools = spawning(tools.expect("one tool")).with_limits(super::limits(8, None, None));
        let cancel = CancelHandle::new();
        let mut running = tools.start(vec![call("watch", json!({}))], &cancel, None);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        assert_eq!(running.recv().await.expect("a result").content.text(), "true");
    });
}
