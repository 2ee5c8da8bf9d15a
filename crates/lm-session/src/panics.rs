//! Panics of models and constraints as errors of their requests.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use crate::error::{Error, Result};

/// Runs `work`; a panic becomes [`Error::WorkerPanicked`].
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Error::WorkerPanicked { message: panic_message(&*panic) }))
}

/// Drops a value of a caller, such as a constraint; catches a panic in its `Drop`.
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        tracing::error!(message = panic_message(&*panic), "a panic while a request was dropped");
    }
}

/// Wraps a task's waker, which runs on the thread that wakes it; catches its panics.
pub(crate) fn caught_waker(waker: &Waker) -> Waker {
    Arc::new(CaughtWaker(waker.clone())).into()
}

/// Awaits a future, catching the panics of its task's waker: they would unwind through a channel that counts
/// its woken tasks, and another task would wait forever.
pub async fn caught_wakes<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let waker = caught_waker(context.waker());
        future.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}

struct CaughtWaker(Waker);

impl Wake for CaughtWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.0.wake_by_ref())) {
            tracing::error!(message = panic_message(&*panic), "a panic while a task was woken");
        }
    }
}

/// Message of a panic, if it is text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
