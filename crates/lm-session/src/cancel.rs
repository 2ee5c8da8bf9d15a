//! Cancellation of requests from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle that cancels a request, or a group of requests; clones share it.
///
/// A request takes a [`child`](Self::child) of its handle: cancelling the handle cancels all its requests,
/// and cancelling one request leaves the others. A cancelled handle stays cancelled. The request ends within
/// one step of the engine.
///
/// ```
/// use lm_session::CancelHandle;
///
/// let group = CancelHandle::new();
/// let (one, other) = (group.child(), group.child());
/// one.cancel();
/// assert!(one.is_cancelled() && !other.is_cancelled());
/// group.cancel();
/// assert!(other.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelHandle {
    node: Arc<Node>,
}

#[derive(Debug, Default)]
struct Node {
    cancelled: AtomicBool,
    parent: Option<CancelHandle>,
}

impl CancelHandle {
    /// Creates a handle that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a handle that is cancelled with this one, and that can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { node: Arc::new(Node { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }) }
    }

    /// Cancels the requests of this handle and of its children.
    pub fn cancel(&self) {
        self.node.cancelled.store(true, Ordering::Release);
    }

    /// Returns true if this handle or one of its ancestors was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let ancestors = std::iter::successors(Some(self), |handle| handle.node.parent.as_ref());
        ancestors.into_iter().any(|handle| handle.node.cancelled.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_is_cancelled_with_any_ancestor() {
        for cancelled in 0..4 {
            let root = CancelHandle::new();
            let child = root.child();
            let grandchild = child.child();
            let family = [root, child, grandchild.clone(), grandchild.child()];
            family[cancelled].cancel();
            for (generation, handle) in family.iter().enumerate() {
                assert_eq!(handle.is_cancelled(), generation >= cancelled, "{generation} after {cancelled}");
            }
        }
    }
}
