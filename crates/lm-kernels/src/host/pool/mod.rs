//! Thread pool for loops that take microseconds: spin, then park; static partition with work stealing.

mod shared;
#[cfg(test)]
mod tests;
mod turns;

use std::fmt;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use shared::Shared;
pub use turns::PoolTurn;
use turns::Turns;

use crate::error::{Error, Result};

static GLOBAL: OnceLock<Pool> = OnceLock::new();

/// Time after which a loop of a background turn yields to others: about a decode step of a small model.
const QUANTUM: Duration = Duration::from_millis(5);

/// A thread pool that runs one parallel loop at a time; the calling thread takes part.
///
/// Tasks are first split evenly, so that a thread processes the same part of the weights in every call; a
/// thread that has finished its part steals tasks from the others. The floating-point environment of the
/// threads is not changed: denormals are computed, not flushed, in all of them.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let pool = lm_kernels::Pool::new(2);
/// let sum = AtomicUsize::new(0);
/// pool.run(10, |i| { sum.fetch_add(i, Ordering::Relaxed); });
/// assert_eq!(sum.into_inner(), 45);
/// ```
pub struct Pool {
    shared: Arc<Shared>,
    /// Set while a loop is running.
    busy: AtomicBool,
    loops: AtomicU64,
    turns: Turns,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Creates a pool of `threads`, the calling thread included; 0 counts as 1.
    ///
    /// If the operating system grants fewer threads, the pool has only those; see [`Pool::threads`].
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::new(threads.max(1)));
        let workers = (1..threads)
            .map_while(|worker| {
                let shared = Arc::clone(&shared);
                thread::Builder::new()
                    .name(format!("lm-pool-{worker}"))
                    .spawn(move || shared.worker_loop(worker))
                    .ok()
            })
            .collect();
        let (busy, loops) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { shared, busy, loops, turns: Turns::default(), workers }
    }

    /// Returns the default pool of the kernels, started on first use.
    ///
    /// It has as many threads as the process may use (cgroup limits and affinity included) unless
    /// [`Pool::set_global_threads`] was called before.
    pub fn global() -> &'static Pool {
        GLOBAL.get_or_init(|| Pool::new(thread::available_parallelism().map_or(1, usize::from)))
    }

    /// Starts the global pool with this many threads.
    ///
    /// # Errors
    /// [`Error::PoolStarted`] when it is already running with another number.
    pub fn set_global_threads(threads: usize) -> Result<()> {
        let pool = GLOBAL.get_or_init(|| Pool::new(threads));
        match pool.threads() {
            started if started == threads.max(1) => Ok(()),
            started => Err(Error::PoolStarted { threads: started, requested: threads }),
        }
    }

    /// Waits for a turn at the pool, in order of arrival. Users that run many loops in a row, such as the
    /// forward passes of two models, take turns, so that each has all threads: without turns, the later one
    /// runs its loops on its own thread alone.
    ///
    /// A thread that holds a turn and requests another one waits forever.
    ///
    /// ```
    /// let pool = lm_kernels::Pool::new(2);
    /// let turn = pool.turn();
    /// assert!(pool.has_turns());
    /// drop(turn);
    /// assert!(!pool.has_turns());
    /// ```
    pub fn turn(&self) -> PoolTurn<'_> {
        self.turns.wait()
    }

    /// Waits for a turn as [`Pool::turn`] does, for work that may be interrupted, such as the encoding of an
    /// image: a loop of this thread that takes longer than some milliseconds is run in parts, and waiting
    /// threads get their turns between the parts.
    ///
    /// ```
    /// let pool = lm_kernels::Pool::new(2);
    /// let turn = pool.background_turn();
    /// pool.run(10_000, |_| {});
    /// drop(turn);
    /// assert!(!pool.has_turns());
    /// ```
    pub fn background_turn(&self) -> PoolTurn<'_> {
        self.turns.wait_in_background()
    }

    /// Returns true if a thread holds a turn or waits for one.
    pub fn has_turns(&self) -> bool {
        self.turns.any()
    }

    /// Number of threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Number of loops of more than one task so far, on whatever number of threads: each is a fork and a join
    /// where there are several.
    pub fn loops(&self) -> u64 {
        self.loops.load(Ordering::Relaxed)
    }

    /// Calls `task` once with each number below `tasks`, on all threads, and returns when all calls have
    /// finished.
    ///
    /// If the pool is busy, called from one of its own tasks or from another thread, it runs the loop on the
    /// calling thread alone instead of waiting.
    ///
    /// # Panics
    /// With the first panic of a task, after all running tasks have finished. Tasks not started by then may
    /// be skipped. With 2^32 tasks or more.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        if tasks > 1 {
            self.loops.fetch_add(1, Ordering::Relaxed);
        }
        assert!(u32::try_from(tasks).is_ok(), "{tasks} tasks are too many");
        if !self.turns.in_background(|| self.run_in_parts(tasks, &task)) {
            self.run_part(0..tasks, &task);
        }
    }

    /// Runs the tasks in parts that take about [`QUANTUM`] each.
    fn run_in_parts(&self, tasks: usize, task: &(impl Fn(usize) + Sync)) {
        let (mut next, mut part) = (0, self.threads());
        while next < tasks {
            let (began, end) = (Instant::now(), tasks.min(next + part));
            self.run_part(next..end, task);
            next = end;
            part = match began.elapsed() {
                short if short < QUANTUM / 8 => part * 4,
                short if short < QUANTUM / 2 => part * 2,
                long if long > QUANTUM => (part / 2).max(self.threads()),
                _ => part,
            };
            self.turns.pass();
        }
    }

    fn run_part(&self, tasks: Range<usize>, task: &(impl Fn(usize) + Sync)) {
        if tasks.len() <= 1 || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return tasks.for_each(task);
        }
        let panic = self.shared.run_round(tasks.len(), self.threads(), &|index| task(tasks.start + index));
        self.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::SeqCst);
        self.shared.wake_parked();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its tasks; there is nothing left to report.
            drop(worker.join());
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}
