//! Updates of running calls for their reader: each result, and a bounded number of reports.

use super::content;
use super::event::{CallEvent, CallResult};
use async_channel::{Receiver, Sender};
use lm_template::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of unread reports of a call.
const MAX_REPORTS: usize = 32;
/// Maximum number of unread reports of all calls of a reply.
const MAX_ALL_REPORTS: usize = 1024;
/// Maximum bytes of a report.
const MAX_REPORT_BYTES: usize = 4096;

/// Update for the reader of calls.
#[derive(Debug)]
pub(crate) enum Update {
    Finished(Box<CallResult>),
    /// Reports are available.
    Reports,
}

/// Updates that running calls send to their reader.
#[derive(Debug)]
pub(crate) struct Updates {
    sender: Sender<Update>,
    reports: Mutex<Reports>,
}

#[derive(Debug, Default)]
struct Reports {
    /// Reports in the order of time, with the numbers of their calls.
    queue: VecDeque<(usize, CallEvent)>,
    /// Calls, by number, that may report.
    open: Vec<bool>,
    /// The reader is notified of the reports.
    is_announced: bool,
}

impl Updates {
    /// Creates the updates of as many calls.
    pub fn new(calls: usize) -> (Arc<Self>, Receiver<Update>) {
        let (sender, receiver) = async_channel::unbounded();
        let reports = Mutex::new(Reports { open: vec![true; calls], ..Reports::default() });
        (Arc::new(Self { sender, reports }), receiver)
    }

    /// Sends a call's result.
    pub fn finish(&self, result: CallResult) {
        let _ = self.sender.try_send(Update::Finished(Box::new(result))); // An error: the receiver is gone.
    }

    /// Adds a report, in place of an older one at the limit.
    pub fn report(&self, index: usize, event: CallEvent) {
        let mut reports = self.reports();
        if !reports.open.get(index).is_some_and(|&is_open| is_open) {
            return;
        }
        if reports.queue.iter().filter(|(of, _)| *of == index).count() >= MAX_REPORTS {
            reports.remove_of(index);
        } else if reports.queue.len() >= MAX_ALL_REPORTS {
            reports.queue.pop_front();
        }
        reports.queue.push_back((index, event));
        let is_announced = std::mem::replace(&mut reports.is_announced, true);
        drop(reports);
        if !is_announced {
            let _ = self.sender.try_send(Update::Reports);
        }
    }

    /// Takes the oldest report, of one call or of all.
    pub fn next_report(&self, index: Option<usize>) -> Option<CallEvent> {
        let mut reports = self.reports();
        match index {
            Some(index) => reports.remove_of(index),
            None => reports.queue.pop_front().map(|(_, event)| event),
        }
    }

    /// Announces later reports again.
    pub fn read(&self) {
        self.reports().is_announced = false;
    }

    /// Rejects further reports of a finished call.
    pub fn close(&self, index: usize) {
        if let Some(is_open) = self.reports().open.get_mut(index) {
            *is_open = false;
        }
    }

    /// Rejects further reports and drops the unread ones.
    pub fn close_all(&self) {
        *self.reports() = Reports::default();
    }

    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reports {
    fn remove_of(&mut self, index: usize) -> Option<CallEvent> {
        let at = self.queue.iter().position(|(of, _)| *of == index)?;
        self.queue.remove(at).map(|(_, event)| event)
    }
}

/// Reports of one call.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    index: usize,
    updates: Arc<Updates>,
}

impl Reporter {
    pub(crate) fn new(index: usize, updates: Arc<Updates>) -> Self {
        Self { index, updates }
    }

    /// Reports progress; a value that is nested too deep is dropped.
    pub fn progress(&self, progress: Value) {
        let index = self.index;
        if let Some(progress) = content::report(progress, MAX_REPORT_BYTES) {
            self.updates.report(index, CallEvent::Progress { index, progress });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_reports_are_bounded_per_call_and_in_total() {
        let (updates, received) = Updates::new(100);
        for index in 0..100 {
            let reporter = Reporter::new(index, updates.clone());
            (0..100).for_each(|number| reporter.progress(number.into()));
        }
        assert_eq!(received.len(), 1, "the reader is notified once");
        updates.close(99);
        Reporter::new(99, updates.clone()).progress("late".into());
        Reporter::new(100, updates.clone()).progress("of no call".into());
        let reports: Vec<_> = std::iter::from_fn(|| updates.next_report(None)).collect();
        assert_eq!(reports.len(), MAX_ALL_REPORTS);
        let of_last =
            (100 - MAX_REPORTS..100).map(|number| CallEvent::Progress { index: 99, progress: number.into() });
        assert_eq!(reports[MAX_ALL_REPORTS - MAX_REPORTS..], of_last.collect::<Vec<_>>());
        updates.close_all();
        Reporter::new(0, updates.clone()).progress("too late".into());
        assert_eq!(updates.next_report(None), None);
    }
}
