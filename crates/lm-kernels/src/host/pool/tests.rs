//! Loops, panics, nesting and work stealing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;

use super::*;

fn counts(pool: &Pool, tasks: usize) -> Vec<usize> {
    let hits: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(tasks, |i| {
        hits[i].fetch_add(1, Ordering::Relaxed);
    });
    hits.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn every_task_runs_once_for_any_thread_count() {
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
fn pool_survives_a_panic_passed_to_the_caller() {
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
fn nested_loop_runs_inside_its_task() {
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
fn callers_on_two_threads_are_independent() {
    let pool = Pool::new(2);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..300).for_each(|_| assert_eq!(counts(&pool, 17), vec![1; 17])));
        }
    });
}

#[test]
fn idle_thread_steals_tasks() {
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
fn global_pool_is_sized_once() {
    Pool::set_global_threads(2).unwrap();
    assert_eq!(Pool::global().threads(), 2);
    Pool::set_global_threads(2).unwrap();
    let late = Pool::set_global_threads(3).unwrap_err();
    assert!(matches!(late, Error::PoolStarted { threads: 2, requested: 3 }));
}

/// The turn requested in the first task precedes the last task.
#[test]
fn background_loop_yields_to_others() {
    for threads in [1, 2] {
        let pool = Pool::new(threads);
        let (ran, at_turn) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let (ask, asked) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let turn = pool.background_turn();
            pool.run(10, |_| {}); // Later loops of a turn are interrupted, too.
            scope.spawn(|| {
                ask.send(()).expect("the loop waits");
                let _turn = pool.turn();
                at_turn.store(ran.load(Ordering::SeqCst), Ordering::SeqCst);
                assert_eq!(counts(&pool, 100), vec![1; 100]);
            });
            asked.recv().expect("the thread has started");
            let tasks = 100;
            pool.run(tasks, |_| {
                // The other thread has ample time to request a turn: this is far longer than a part.
                thread::sleep(QUANTUM);
                ran.fetch_add(1, Ordering::SeqCst);
            });
            assert_eq!(ran.load(Ordering::SeqCst), tasks);
            let before = at_turn.load(Ordering::SeqCst);
            assert!(before < tasks, "{threads} threads: the other turn came after {before} tasks");
            drop(turn);
        });
        assert!(!pool.has_turns());
    }
}

#[test]
fn background_tasks_run_once() {
    for threads in [1, 2, 3] {
        let pool = Pool::new(threads);
        let _turn = pool.background_turn();
        for tasks in [0, 1, 7, 8, 9, 12, 13, 100, 1000] {
            assert_eq!(counts(&pool, tasks), vec![1; tasks], "{threads} threads, {tasks} tasks");
        }
    }
}

#[test]
fn loops_of_one_task_are_not_counted() {
    for threads in [1, 2] {
        let pool = Pool::new(threads);
        let loops = [0, 1, 2, 7].map(|tasks| {
            pool.run(tasks, |_| {});
            pool.loops()
        });
        assert_eq!(loops, [0, 0, 1, 2]);
    }
}

/// Covers the moment at which the worker stops spinning and parks. Both threads meet in each loop, so that
/// every loop needs the worker.
#[test]
fn parking_worker_sees_every_loop() {
    let (done, ended) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let pool = Pool::new(2);
        for wait in (0..5_000).cycle().take(10_000) {
            (0..wait).for_each(|_| std::hint::spin_loop());
            let arrived = AtomicUsize::new(0);
            pool.run(2, |_| {
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
            });
        }
        done.send(())
    });
    assert!(ended.recv_timeout(Duration::from_secs(120)).is_ok(), "the worker sleeps");
}
