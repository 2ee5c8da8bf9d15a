//! Requests that wait for a place in the batch.

use std::collections::VecDeque;

use crate::ids::SessionId;
use crate::scheduler::request::{EndedByCaller, Request, RequestLimits};

/// Waiting requests, by priority, then in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct WaitingQueue {
    requests: VecDeque<Request>,
}

impl WaitingQueue {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }

    pub fn push(&mut self, request: Request) {
        let RequestLimits { priority, continues, .. } = request.limits;
        let is_before = |waiting: &Request| {
            waiting.limits.priority > priority || (waiting.limits.priority == priority && !continues)
        };
        let index = self.requests.partition_point(is_before);
        self.requests.insert(index, request);
    }

    /// Takes the next request.
    pub fn pop(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Takes the request of `session`.
    pub fn take(&mut self, session: SessionId) -> Option<Request> {
        let index = self.requests.iter().position(|waiting| waiting.session == session)?;
        self.requests.remove(index)
    }

    /// Takes the requests ended by their callers.
    pub fn take_ended(&mut self) -> Vec<(Request, EndedByCaller)> {
        let mut ended = Vec::new();
        let mut index = 0;
        while let Some(waiting) = self.requests.get(index) {
            match waiting.ended_by_caller() {
                Some(by) => ended.extend(self.requests.remove(index).map(|request| (request, by))),
                None => index += 1,
            }
        }
        ended
    }
}
