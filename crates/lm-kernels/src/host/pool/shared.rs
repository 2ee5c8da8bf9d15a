//! One parallel loop: the gate that workers enter by, their parts of the tasks, parking.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Iterations a thread spins, waiting for work or the end of a round, before it parks or yields. A few dozen
/// microseconds: longer than the gap between two kernels of a forward pass, too short to show up as CPU load.
const SPINS: usize = 2_000;

type Task<'a> = dyn Fn(usize) + Sync + 'a;
type Panic = Box<dyn Any + Send>;

/// State shared by the caller and the workers.
pub(super) struct Shared {
    /// Round number in the upper half; then a bit that the round is open; then the number of workers inside
    /// it.
    gate: AtomicU64,
    /// The loop body of the current round. Written by the caller while the gate is closed and no worker is
    /// inside.
    task: UnsafeCell<Option<&'static Task<'static>>>,
    /// Remaining tasks of each thread's part.
    parts: Box<[Part]>,
    panic: Mutex<Option<Panic>>,
    pub(super) parked: AtomicUsize,
    sleep_lock: Mutex<()>,
    wake: Condvar,
    pub(super) end: AtomicBool,
}

const OPEN: u64 = 1 << 31;
const ROUND: u64 = 1 << 32;

/// Tasks of one thread, on a cache line of its own: the next in the upper half, the end in the lower.
#[derive(Default)]
#[repr(align(128))]
struct Part(AtomicU64);

// SAFETY: all fields but `task` are `Sync`; `task` is written only by the one caller of `run_round`
// (`Pool::busy`) while the gate is closed and empty, and read only by workers that have entered through the
// gate since.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn new(threads: usize) -> Self {
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
    pub(super) fn run_round(&self, tasks: usize, threads: usize, task: &Task<'_>) -> Option<Panic> {
        for (thread, part) in self.parts[..threads].iter().enumerate() {
            part.fill(tasks * thread / threads..tasks * (thread + 1) / threads);
        }
        // SAFETY: only the lifetime is changed; the gate is closed and empty again before this function
        // returns, and no worker reads the task outside of it.
        let lasting = unsafe { std::mem::transmute::<&Task<'_>, &'static Task<'static>>(task) };
        // SAFETY: the gate is closed and empty and `Pool::busy` excludes other callers, so no one else reads
        // it.
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
    pub(super) fn worker_loop(&self, worker: usize) {
        let mut round = 0;
        while let Some(current) = self.next_round(round) {
            round = current;
            if self.enter(round) {
                // SAFETY: inside an open round it is the caller's task, which is alive until all workers have
                // left.
                if let Some(task) = unsafe { *self.task.get() } {
                    self.work(worker, task);
                }
                self.gate.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Waits for a round after `last`; `None` when the pool shuts down.
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
    pub(super) fn wake_parked(&self) {
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
