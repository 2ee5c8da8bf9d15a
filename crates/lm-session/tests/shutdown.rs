//! End of an engine. One test: it counts the threads of its process.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]
#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use lm_session::{EngineSettings, Error};
use support::{endless, generate, random_engine};

/// Names of this process's threads that belong to an engine; the kernels' pool belongs to the process.
fn engine_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let of_engine = |name: &String| ["lm-engine", "lm-sampling"].iter().any(|kind| name.starts_with(kind));
    names.map(|name| name.trim().to_owned()).filter(of_engine).collect()
}

/// Waits until no thread of an engine is listed. A joined thread is listed until the system has removed it,
/// and a list read while a thread ends may lack others; a thread of the kernels' pool has the name of the
/// thread that starts it until it runs.
fn wait_for_the_end_of_threads() {
    let until = Instant::now() + Duration::from_secs(60);
    let mut empty = 0;
    while empty < 3 {
        let threads = engine_threads();
        assert!(threads.is_empty() || Instant::now() < until, "{threads:?}");
        empty = if threads.is_empty() { empty + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn shutdown_and_last_handle_end_threads() {
    for explicit in [true, false] {
        let engine = random_engine(EngineSettings::default());
        let mut session = endless(&engine);
        session.prefill(&[1, 2, 3]).unwrap();
        // The bias of its logits is added on the sampling threads.
        assert_eq!(generate(&mut session, 5).unwrap().len(), 5);
        let threads = engine_threads();
        assert!(threads.iter().any(|name| name.starts_with("lm-sampling")), "{threads:?}");
        if explicit {
            engine.shutdown();
            wait_for_the_end_of_threads();
            assert!(matches!(session.prefill(&[4]), Err(Error::EngineStopped)));
            assert!(matches!(engine.cache_stats(), Err(Error::EngineStopped)));
        }
        drop((engine, session));
        wait_for_the_end_of_threads();
    }
}
