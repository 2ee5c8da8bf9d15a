//! Concurrent processing of items, with the answers in the order of the items.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::Result;

/// Runs `work` on the items concurrently on `workers` threads, and passes the answers to `take` in the order of the items. A worker
/// draws the next item when it is free.
///
/// # Errors
/// The first error of `take`, after which no further item is drawn.
pub fn ordered_parallel_map<T: Send, A: Send>(
    items: impl Iterator<Item = T> + Send,
    workers: NonZeroUsize,
    work: impl Fn(T) -> A + Sync,
    mut take: impl FnMut(A) -> Result<()>,
) -> Result<()> {
    let items = Mutex::new(items.enumerate());
    let (answered, answers) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers.get() {
            let (items, work, answered) = (&items, &work, answered.clone());
            scope.spawn(move || {
                // Poisoning is ignored: the scope propagates a worker's panic.
                let draw = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some((index, item)) = draw() {
                    if answered.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(answered);
        let (mut next, mut early) = (0, BTreeMap::new());
        for (index, answer) in answers {
            early.insert(index, answer);
            while let Some(answer) = early.remove(&next) {
                take(answer)?;
                next += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: NonZeroUsize = NonZeroUsize::new(3).expect("is not zero");

    #[test]
    fn answers_come_in_order_whichever_is_first() {
        let (first_may_end, second_has_begun) = mpsc::channel();
        let (first_may_end, second_has_begun) = (Mutex::new(first_may_end), Mutex::new(second_has_begun));
        let work = |item: usize| {
            match item {
                0 => second_has_begun.lock().expect("no panic").recv().expect("the second one begins"),
                1 => first_may_end.lock().expect("no panic").send(()).expect("the first one waits"),
                _ => {}
            }
            item * 10
        };
        let mut answers = Vec::new();
        ordered_parallel_map(0..6, THREE, work, |answer| {
            answers.push(answer);
            Ok(())
        })
        .expect("all are taken");
        assert_eq!(answers, [0, 10, 20, 30, 40, 50]);
    }

    #[test]
    fn an_answer_that_cannot_be_taken_ends_it() {
        let without_end = std::iter::repeat(1);
        assert!(
            ordered_parallel_map(without_end, THREE, |item| item, |_| anyhow::bail!("the reader is gone"))
                .is_err()
        );
    }
}
