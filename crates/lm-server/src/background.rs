//! Responses that run in the background, and the events of those that are streamed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::sse::Event;
use futures_util::stream::{self, Stream};
use lm_api::CancelHandle;
use tokio::sync::watch;

/// Maximum size of a response's kept events, in bytes. The oldest ones are dropped first.
const MAX_EVENT_BYTES: usize = 4 << 20;
/// Maximum number of ended responses whose events are kept.
const MAX_ENDED: usize = 64;

/// Responses in the background, by id.
#[derive(Debug, Default)]
pub(crate) struct Background(Mutex<Responses>);

#[derive(Debug, Default)]
struct Responses {
    running: HashMap<String, CancelHandle>,
    events: HashMap<String, Arc<EventLog>>,
    /// Ids of ended responses with events, the oldest first.
    ended: VecDeque<String>,
}

impl Background {
    /// Adds a response that runs; `events` is the log of a streamed one.
    pub fn add(&self, id: &str, cancel: CancelHandle, events: Option<Arc<EventLog>>) {
        let mut responses = self.lock();
        responses.running.insert(id.to_owned(), cancel);
        responses.events.extend(events.map(|events| (id.to_owned(), events)));
    }

    /// Takes the handle of a response that has ended or is to end; `None` if it was taken before. Its events
    /// stay until those of 64 others have ended after it.
    pub fn take(&self, id: &str) -> Option<CancelHandle> {
        let mut responses = self.lock();
        let handle = responses.running.remove(id)?;
        if responses.events.contains_key(id) {
            responses.ended.push_back(id.to_owned());
        }
        if responses.ended.len() > MAX_ENDED
            && let Some(oldest) = responses.ended.pop_front()
        {
            responses.events.remove(&oldest);
        }
        Some(handle)
    }

    /// Returns the events of a streamed response.
    pub fn events(&self, id: &str) -> Option<Arc<EventLog>> {
        self.lock().events.get(id).cloned()
    }

    /// Removes the events of a deleted response.
    pub fn forget(&self, id: &str) {
        let mut responses = self.lock();
        responses.events.remove(id);
        responses.ended.retain(|ended| ended != id);
    }

    fn lock(&self) -> MutexGuard<'_, Responses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events of a response, numbered from 0, for any number of readers: the last 4 MiB of them.
#[derive(Debug)]
pub(crate) struct EventLog {
    kept: Mutex<Kept>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Number of the first kept event.
    first: usize,
    /// Events with their sizes.
    events: VecDeque<(Event, usize)>,
    bytes: usize,
    is_ended: bool,
}

impl EventLog {
    /// Creates an empty log.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), changed: watch::Sender::new(()) })
    }

    /// Adds an event of `bytes`.
    pub fn push(&self, event: Event, bytes: usize) {
        let mut kept = self.lock();
        kept.events.push_back((event, bytes));
        kept.bytes += bytes;
        while kept.bytes > MAX_EVENT_BYTES && kept.events.len() > 1 {
            let dropped = kept.events.pop_front();
            kept.bytes -= dropped.map_or(0, |(_, bytes)| bytes);
            kept.first += 1;
        }
        drop(kept);
        self.changed.send_replace(());
    }

    /// Ends the log: readers get no further event.
    pub fn end(&self) {
        self.lock().is_ended = true;
        self.changed.send_replace(());
    }

    /// Number of the next event.
    pub fn next_number(&self) -> usize {
        let kept = self.lock();
        kept.first + kept.events.len()
    }

    /// Number of the first kept event.
    pub fn first(&self) -> usize {
        self.lock().first
    }

    /// Streams the events from number `next` on, also those to come. It ends early for a reader that is so
    /// slow that its next event was dropped.
    pub fn follow(self: Arc<Self>, next: usize) -> impl Stream<Item = Event> + Send + 'static {
        let changes = self.changed.subscribe();
        stream::unfold((self, changes, next), async |(log, mut changes, next)| {
            loop {
                match log.next(next) {
                    Next::Event(event) => return Some((event, (log, changes, next + 1))),
                    Next::End => return None,
                    Next::Wait => changes.changed().await.ok()?,
                }
            }
        })
    }

    fn next(&self, number: usize) -> Next {
        let kept = self.lock();
        let index = number.checked_sub(kept.first);
        match index.map(|index| kept.events.get(index)) {
            Some(Some((event, _))) => Next::Event(event.clone()),
            Some(None) if !kept.is_ended => Next::Wait,
            _ => Next::End,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of a reader.
enum Next {
    Event(Event),
    Wait,
    End,
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    fn log_of(sizes: &[usize]) -> Arc<EventLog> {
        let log = EventLog::new();
        sizes.iter().for_each(|bytes| log.push(Event::default().data("x"), *bytes));
        log
    }

    #[tokio::test]
    async fn readers_follow_to_the_end() {
        let log = log_of(&[1, 1]);
        let reader = tokio::spawn(log.clone().follow(1).count());
        tokio::task::yield_now().await;
        log.push(Event::default().data("y"), 1);
        log.end();
        assert_eq!(reader.await.expect("it ends"), 2);
        assert_eq!(log.clone().follow(0).count().await, 3);
        assert_eq!(log.follow(9).count().await, 0, "after the last event");
    }

    #[tokio::test]
    async fn oldest_events_are_dropped() {
        let log = log_of(&[MAX_EVENT_BYTES / 2; 5]);
        log.end();
        assert_eq!(log.first(), 3);
        assert_eq!(log.clone().follow(3).count().await, 2);
        assert_eq!(log.follow(0).count().await, 0, "what is gone is not skipped");
    }

    #[test]
    fn events_of_the_last_ended_responses_are_kept() {
        let background = Background::default();
        for number in 0..=MAX_ENDED {
            let id = number.to_string();
            background.add(&id, CancelHandle::new(), Some(EventLog::new()));
            assert!(background.take(&id).is_some() && background.take(&id).is_none());
        }
        assert!(background.events("0").is_none() && background.events("1").is_some());
        background.forget("1");
        assert!(background.events("1").is_none());
        background.add("next", CancelHandle::new(), Some(EventLog::new()));
        assert!(background.take("next").is_some());
        background.add("plain", CancelHandle::new(), None);
        assert!(background.take("plain").is_some() && background.events("2").is_some());
    }
}
