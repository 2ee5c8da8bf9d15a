//! Turns at a pool, in order of arrival.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Ticket lock: turns are served in order of request.
#[derive(Default)]
pub(super) struct Turns {
    tickets: Mutex<Tickets>,
    next: Condvar,
}

#[derive(Default)]
struct Tickets {
    /// Number of requested turns.
    asked: u64,
    /// Number of turns that have ended.
    ended: u64,
}

thread_local! {
    /// True while this thread holds a turn of [`Pool::background_turn`](super::Pool::background_turn).
    static IN_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// A turn at a [`Pool`](super::Pool); it ends when it is dropped.
#[must_use = "the turn ends when it is dropped"]
pub struct PoolTurn<'a> {
    turns: &'a Turns,
    background: bool,
    /// Not `Send`: it marks the loops of the thread that took it.
    on_this_thread: PhantomData<*const ()>,
}

impl Turns {
    pub(super) fn wait(&self) -> PoolTurn<'_> {
        self.queue(self.lock());
        PoolTurn { turns: self, background: false, on_this_thread: PhantomData }
    }

    pub(super) fn wait_in_background(&self) -> PoolTurn<'_> {
        self.queue(self.lock());
        IN_BACKGROUND.set(true);
        PoolTurn { turns: self, background: true, on_this_thread: PhantomData }
    }

    /// Requests a turn and waits for it.
    fn queue(&self, mut tickets: MutexGuard<'_, Tickets>) {
        let own = tickets.asked;
        tickets.asked += 1;
        while tickets.ended != own {
            tickets = self.next.wait(tickets).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Calls `work`, a loop that may [`pass`](Turns::pass), and returns true if this thread holds a turn in
    /// the background. Loops in the tasks of `work` are not interrupted.
    pub(super) fn in_background(&self, work: impl FnOnce()) -> bool {
        let in_background = IN_BACKGROUND.take();
        if in_background {
            work();
            IN_BACKGROUND.set(true);
        }
        in_background
    }

    /// Lets waiting threads go first. The calling thread holds a turn before and afterwards.
    pub(super) fn pass(&self) {
        let mut tickets = self.lock();
        if tickets.asked > tickets.ended + 1 {
            tickets.ended += 1;
            self.next.notify_all();
            self.queue(tickets);
        }
    }

    pub(super) fn any(&self) -> bool {
        let tickets = self.lock();
        tickets.asked != tickets.ended
    }

    fn lock(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PoolTurn<'_> {
    fn drop(&mut self) {
        if self.background {
            IN_BACKGROUND.set(false);
        }
        self.turns.lock().ended += 1;
        self.turns.next.notify_all();
    }
}

impl fmt::Debug for PoolTurn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolTurn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn turns_are_served_in_order_of_request() {
        let turns = Turns::default();
        let first = turns.wait();
        let (report, served) = channel();
        thread::scope(|scope| {
            for number in 1..=4 {
                let (turns, report) = (&turns, report.clone());
                scope.spawn(move || {
                    let _turn = turns.wait();
                    report.send(number).expect("the test waits");
                });
                // Each thread has asked before the next one starts.
                while turns.lock().asked != number + 1 {
                    thread::yield_now();
                }
            }
            assert!(turns.any());
            assert!(served.try_recv().is_err(), "the first turn has not ended");
            drop(first);
        });
        assert_eq!(served.try_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(!turns.any());
    }

    #[test]
    fn turn_ends_with_a_panic() {
        let turns = Turns::default();
        for wait in [Turns::wait, Turns::wait_in_background] {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _turn = wait(&turns);
                panic!("in a turn");
            }));
            assert!(panicked.is_err() && !turns.any());
            assert!(!turns.in_background(|| panic!("no turn is held")));
            drop(wait(&turns));
        }
    }

    /// All who wait wake up for a pass, and then wait again in any order.
    #[test]
    fn pass_serves_every_waiter() {
        let (done, served) = channel();
        thread::spawn(move || {
            for _ in 0..200 {
                let turns = Turns::default();
                thread::scope(|scope| {
                    let turn = turns.wait();
                    for number in 1..=8 {
                        let turns = &turns;
                        scope.spawn(move || drop(turns.wait()));
                        while turns.lock().asked != number + 1 {
                            thread::yield_now();
                        }
                    }
                    turns.pass();
                    drop(turn);
                });
                assert!(!turns.any());
            }
            done.send(())
        });
        let in_time = served.recv_timeout(std::time::Duration::from_secs(120));
        assert!(in_time.is_ok(), "someone still waits for a turn");
    }
}
