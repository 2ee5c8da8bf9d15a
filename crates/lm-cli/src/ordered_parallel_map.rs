//! Concurrent processing of items, with the answers in the order of the items.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use lm_session::CancelHandle;

/// Polling interval of the cancel handle.
const POLL: Duration = Duration::from_millis(50);

/// Answer to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<A> {
    Finished(A),
    /// Answer for an item whose work had not ended at the cancellation.
    Unfinished(A),
}

/// Runs `work` on the items concurrently on `workers` threads, and passes the answers to `take` in the order
/// of the items. A worker draws the next item when it is free.
///
/// When `cancel` is set, the answers so far are passed at once, and that of `unfinished` for every other item
/// that was drawn; the threads are left to end with the program.
///
/// # Errors
/// The first error of `take`, after which no further item is drawn.
pub fn ordered_parallel_map<T: Send + 'static, A: Send + 'static>(
    items: impl Iterator<Item = T> + Send + 'static,
    workers: NonZeroUsize,
    unfinished: fn(&T) -> A,
    work: impl Fn(T) -> A + Send + Sync + 'static,
    cancel: &CancelHandle,
    mut take: impl FnMut(Answer<A>) -> Result<()>,
) -> Result<()> {
    let shared = Arc::new((Mutex::new(items.enumerate()), work));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..workers.get() {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        thread::spawn(move || {
            let (items, work) = &*shared;
            // The lock is held until the item is announced, so that no later one is announced before it.
            let draw = || {
                let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
                let (index, item) = items.next()?;
                sender.send((index, Answer::Unfinished(unfinished(&item)))).ok().map(|()| (index, item))
            };
            while let Some((index, item)) = draw() {
                if sender.send((index, Answer::Finished(work(item)))).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let (mut next, mut answers) = (0, BTreeMap::new());
    while !cancel.is_cancelled() {
        match receiver.recv_timeout(POLL) {
            Ok((index, answer)) => drop(answers.insert(index, answer)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        while let Some(Answer::Finished(_)) = answers.get(&next) {
            answers.remove(&next).map_or(Ok(()), &mut take)?;
            next += 1;
        }
    }
    answers.extend(receiver.try_iter());
    answers.into_values().try_for_each(take)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: NonZeroUsize = NonZeroUsize::new(3).expect("is not zero");

    /// Work on 0 that ends after that on 1 has started.
    fn crossing() -> impl Fn(usize) -> usize + Send + Sync {
        let (first_may_end, second_has_started) = mpsc::channel();
        let (first_may_end, second_has_started) = (Mutex::new(first_may_end), Mutex::new(second_has_started));
        move |item| {
            match item {
                0 => second_has_started.lock().expect("no panic").recv().expect("the second one begins"),
                1 => first_may_end.lock().expect("no panic").send(()).expect("the first one waits"),
                _ => {}
            }
            item * 10
        }
    }

    #[test]
    fn answers_keep_input_order() {
        let mut answers = Vec::new();
        ordered_parallel_map(
            0..6,
            THREE,
            |_| 0,
            crossing(),
            &CancelHandle::new(),
            |answer| {
                answers.push(answer);
                Ok(())
            },
        )
        .expect("all are taken");
        assert_eq!(answers, [0, 10, 20, 30, 40, 50].map(Answer::Finished));
    }

    #[test]
    fn rejected_answer_ends_the_map() {
        let without_end = std::iter::repeat(1);
        let gone = |_| anyhow::bail!("the reader is gone");
        assert!(
            ordered_parallel_map(without_end, THREE, |_| 0, |item| item, &CancelHandle::new(), gone).is_err()
        );
    }

    #[test]
    fn finished_answers_are_delivered_after_cancel() {
        let cancel = CancelHandle::new();
        let canceller = cancel.clone();
        let (_alive, never) = mpsc::channel::<()>();
        let never = Mutex::new(never);
        // Items 0 and 2 never end; item 3 is drawn after 1 has ended.
        let work = move |item: usize| {
            match item {
                0 | 2 => drop(never.lock().expect("no panic").recv()),
                3 => canceller.cancel(),
                _ => {}
            }
            item * 10
        };
        let mut answers = Vec::new();
        ordered_parallel_map(
            0..4,
            THREE,
            |item| *item,
            work,
            &cancel,
            |answer| {
                answers.push(answer);
                Ok(())
            },
        )
        .expect("all are taken");
        use Answer::{Finished, Unfinished};
        assert_eq!(answers[..3], [Unfinished(0), Finished(10), Unfinished(2)]);
        assert!([Unfinished(3), Finished(30)].contains(&answers[3]), "{answers:?}");
    }
}
