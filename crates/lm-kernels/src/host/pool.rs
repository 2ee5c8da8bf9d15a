//! Thread pool for loops that take microseconds: spin, then park; static partition with work stealing.

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use crate::{Error, Result};

/// Iterations a thread spins, waiting for work or the end of a round, before it parks or yields. A few dozen
/// microseconds: longer than the gap between two kernels of a forward pass, too short to show up as CPU load.
const SPINS: usize = 2_000;

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
        Self { shared, busy: AtomicBool::new(false), workers }
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

    /// Number of threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
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

type Task<'a> = dyn Fn(usize) + Sync + 'a;
type Panic = Box<dyn Any + Send>;

/// State shared by the caller and the workers.
struct Shared {
    /// Round number in the upper half; then a bit that the round is open; then the number of workers inside it.
    gate: AtomicU64,
    /// The loop body of the current round. Written by the caller while the gate is closed and no worker is inside.
    task: UnsafeCell<Option<&'static Task<'static>>>,
    /// Remaining tasks of each thread's part.
    parts: Box<[Part]>,
    panic: Mutex<Option<Panic>>,
    parked: AtomicUsize,
    sleep_lock: Mutex<()>,
    wake: Condvar,
    end: AtomicBool,
}

const OPEN: u64 = 1 << 31;
const ROUND: u64 = 1 << 32;

/// Tasks of one thread, on a cache line of its own: the next in the upper half, the end in the lower.
#[derive(Default)]
#[repr(align(128))]
struct Part(AtomicU64);

// SAFETY: all fields but `task` are `Sync`; `task` is written only by the one caller of `run_round` (`Pool::busy`) while
// the gate is closed and empty, and read only by workers that have entered through the gate since.
unsafe impl Sync for Shared {}
impl Shared {
    fn new(threads: usize) -> Self {
        Self {
            gate: AtomicU64::new(0),
            task: UnsafeCell::new(None),
            parts: (0..threads).map(|_| Part::default()).collect(),
            panic: Mutex::new(None),
            parked: AtomicUsize::new(0),
            sleep_lock: Mutex::new(()),
            wake: Condvar::new(),
            end: AtomicBool::new(false),
        }
    }

    /// Runs one round on the caller's side. Returns the first panic of a task.
    fn run_round(&self, tasks: usize, threads: usize, task: &Task<'_>) -> Option<Panic> {
        for (thread, part) in self.parts[..threads].iter().enumerate() {
            part.fill(tasks * thread / threads..tasks * (thread + 1) / threads);
        }
        // SAFETY: only the lifetime is changed; the gate is closed and empty again before this function returns,
        // and no worker reads the task outside of it.
        let lasting = unsafe { std::mem::transmute::<&Task<'_>, &'static Task<'static>>(task) };
        // SAFETY: the gate is closed and empty and `Pool::busy` excludes other callers, so no one else reads it.
        unsafe { *self.task.get() = Some(lasting) };
        self.gate.fetch_add(ROUND | OPEN, Ordering::SeqCst);
        self.wake_parked();
        self.work(0, task);
        self.gate.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0;
        while self.gate.load(Ordering::Acquire) & (OPEN - 1) != 0 {
            spins += 1;
            // A worker may have been descheduled in the middle of a task.
            if spins < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
        }
        lock(&self.panic).take()
    }

    /// Worker loop: one iteration is one round.
    fn worker_loop(&self, worker: usize) {
        let mut round = 0;
        while let Some(current) = self.next_round(round) {
            round = current;
            if self.enter(round) {
                // SAFETY: inside an open round it is the caller's task, which is alive until all workers have left.
                if let Some(task) = unsafe { *self.task.get() } {
                    self.work(worker, task);
                }
                self.gate.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Waits for a round other than `last`; `None` when the pool shuts down.
    fn next_round(&self, last: u64) -> Option<u64> {
        let news = || {
            let round = self.gate.load(Ordering::SeqCst) / ROUND;
            (round != last || self.end.load(Ordering::SeqCst)).then_some(round)
        };
        let mut spins = 0;
        let mut round = news();
        while round.is_none() && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
            round = news();
        }
        if round.is_none() {
            let mut guard = lock(&self.sleep_lock);
            self.parked.fetch_add(1, Ordering::SeqCst);
            round = news();
            while round.is_none() {
                guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
                round = news();
            }
            self.parked.fetch_sub(1, Ordering::SeqCst);
        }
        round.filter(|_| !self.end.load(Ordering::SeqCst))
    }

    /// Wakes parked workers. The new round is stored before `parked` is read, and workers check again after
    /// incrementing `parked`: one side sees the other.
    fn wake_parked(&self) {
        if self.parked.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.sleep_lock));
            self.wake.notify_all();
        }
    }

    /// Enters `round`, unless it is closed.
    fn enter(&self, round: u64) -> bool {
        let open = |gate: u64| (gate / ROUND == round && gate & OPEN != 0).then_some(gate + 1);
        self.gate.fetch_update(Ordering::AcqRel, Ordering::Acquire, open).is_ok()
    }

    /// Runs the thread's own part, then steals from the others. Panics of tasks are stored, not propagated.
    fn work(&self, thread: usize, task: &Task<'_>) {
        let result = catch_unwind(AssertUnwindSafe(|| {
            while let Some(index) = self.parts[thread].take_first() {
                task(index);
            }
            let (before, from) = self.parts.split_at(thread);
            for part in from.iter().chain(before) {
                while let Some(index) = part.take_last() {
                    task(index);
                }
            }
        }));
        if let Err(panic) = result {
            self.parts.iter().for_each(Part::cancel);
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

impl Part {
    fn fill(&self, tasks: Range<usize>) {
        self.0.store((tasks.start as u64) << 32 | tasks.end as u64, Ordering::Relaxed);
    }

    /// Takes the owner's next task: in order, for sequential memory access.
    fn take_first(&self) -> Option<usize> {
        self.take(|Range { start, end }| (start, start + 1..end))
    }

    /// Steals a task from the end, far from the owner's position.
    fn take_last(&self) -> Option<usize> {
        self.take(|Range { start, end }| (end - 1, start..end - 1))
    }

    fn take(&self, split: impl Fn(Range<u64>) -> (u64, Range<u64>)) -> Option<usize> {
        let tasks = |part: u64| part >> 32..part & u64::from(u32::MAX);
        let rest = |part| {
            let tasks = tasks(part);
            (!tasks.is_empty()).then(|| split(tasks).1).map(|rest| rest.start << 32 | rest.end)
        };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
        Some(split(tasks(before)).0 as usize)
    }

    fn cancel(&self) {
        self.fill(0..0);
    }
}

/// No task runs under these locks, so a poisoned lock protects consistent data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pool: &Pool, tasks: usize) -> Vec<usize> {
        let hits: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        pool.run(tasks, |i| {
            hits[i].fetch_add(1, Ordering::Relaxed);
        });
        hits.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_task_runs_once_whatever_the_threads() {
        for threads in [0, 1, 2, 3, 8] {
            let pool = Pool::new(threads);
            assert_eq!(pool.threads(), threads.max(1));
            for round in 0..200 {
                let tasks = round % 23;
                assert_eq!(counts(&pool, tasks), vec![1; tasks], "{threads} threads, {tasks} tasks");
            }
        }
    }

    #[test]
    fn sleeping_workers_wake_up() {
        let pool = Pool::new(4);
        while pool.shared.parked.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
        // A barrier of all four threads: it ends only if the three parked workers wake.
        let arrived = AtomicUsize::new(0);
        pool.run(4, |_| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 4 {
                thread::yield_now();
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(3);
        for bad in 0..12 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(12, |i| assert_ne!(i, bad, "task {bad} fails"));
            }));
            let message = caught.unwrap_err();
            let message = message.downcast_ref::<String>().expect("a formatted message");
            assert!(message.contains("fails"), "{message}");
            assert_eq!(counts(&pool, 40), vec![1; 40]);
        }
    }

    #[test]
    fn a_loop_inside_a_task_runs_there() {
        let pool = Pool::new(2);
        let sum = AtomicUsize::new(0);
        pool.run(4, |_| {
            let outer = thread::current().id();
            pool.run(8, |i| {
                assert_eq!(thread::current().id(), outer);
                sum.fetch_add(i, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 4 * 28);
    }

    #[test]
    fn callers_on_two_threads_do_not_disturb_each_other() {
        let pool = Pool::new(2);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..300).for_each(|_| assert_eq!(counts(&pool, 17), vec![1; 17])));
            }
        });
    }

    #[test]
    fn a_thread_steals_what_another_leaves() {
        let pool = Pool::new(2);
        let done = AtomicUsize::new(0);
        // Task 0 blocks its thread until the other one has done all the rest, that thread's own part included.
        pool.run(10, |i| {
            if i == 0 {
                while done.load(Ordering::SeqCst) < 9 {
                    thread::yield_now();
                }
            } else {
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
        assert_eq!(done.into_inner(), 9);
    }

    #[test]
    fn the_global_pool_is_sized_once() {
        Pool::set_global_threads(2).unwrap();
        assert_eq!(Pool::global().threads(), 2);
        Pool::set_global_threads(2).unwrap();
        let late = Pool::set_global_threads(3).unwrap_err();
        assert!(matches!(late, Error::PoolStarted { threads: 2, requested: 3 }));
    }
}
