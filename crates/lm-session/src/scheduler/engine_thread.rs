//! Mark of the threads of an engine.

use std::cell::Cell;

thread_local! {
    /// True on the threads of an engine, which must not wait for their own end.
    static OF_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on the threads of an engine.
pub(crate) fn is_engine_thread() -> bool {
    OF_ENGINE.get()
}

/// Marks the current thread as one of an engine.
pub(crate) fn mark_engine_thread() {
    OF_ENGINE.set(true);
}
