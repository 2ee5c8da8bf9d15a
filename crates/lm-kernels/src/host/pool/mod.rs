//! Thread pool for loops that take microseconds: spin, then park; static partition with work stealing.

mod shared;
#[cfg(test)]
mod tests;
mod turns;

use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use shared::Shared;
pub use turns::PoolTurn;
use turns::Turns;

use crate::{Error, Result};

static GLOBAL: OnceLock<Pool> = OnceLock::new();

/// A thread pool that runs one parallel loop at a time; the calling thread takes part.
///
/// Tasks are first split evenly, so that a thread processes the same part of the weights in every call; a thread that has
/// finished its part steals tasks from the others. The floating-point environment of the threads is not changed:
/// denormals are computed, not flushed, in all of them.
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

    /// Waits for a turn at the pool, first come, first served. Users that run many loops in a row, such as the forward passes of
    /// two models, take turns, so that each has all threads: without turns, the later one runs its loops on its own thread alone.
    ///
    /// A thread that holds a turn and asks for another one waits forever.
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

    /// Returns true if someone holds a turn or waits for one.
    pub fn has_turns(&self) -> bool {
        self.turns.any()
    }

    /// Number of threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Number of loops of more than one task so far, on whatever number of threads: each is a fork and a join where there
    /// are several.
    pub fn loops(&self) -> u64 {
        self.loops.load(Ordering::Relaxed)
    }

    /// Calls `task` once with each number below `tasks`, on all threads, and returns when all calls have finished.
    ///
    /// If the pool is busy, called from one of its own tasks or from another thread, it runs the loop on the calling
    /// thread alone instead of waiting.
    ///
    /// # Panics
    /// With the first panic of a task, after all running tasks have finished. Tasks not started by then may be
    /// skipped. With 2^32 tasks or more.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        if tasks > 1 {
            self.loops.fetch_add(1, Ordering::Relaxed);
        }
        if tasks <= 1 || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return (0..tasks).for_each(task);
        }
        assert!(u32::try_from(tasks).is_ok(), "{tasks} tasks are too many");
        let panic = self.shared.run_round(tasks, self.threads(), &task);
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
