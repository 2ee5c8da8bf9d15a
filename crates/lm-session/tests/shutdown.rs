//! End of an engine. One test: it counts the threads of its process.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]
#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use lm_session::{EngineSettings, Error, GenerateParams, SamplerParams};
use support::{endless, random_engine};

/// Names of this process's threads that belong to an engine. The kernels' pool is the process's.
fn engine_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let of_engine = |name: &String| ["lm-engine", "lm-sampling"].iter().any(|kind| name.starts_with(kind));
    names.map(|name| name.trim().to_owned()).filter(of_engine).collect()
}

#[test]
fn threads_are_gone_after_a_shutdown_and_after_the_last_handle() {
    for explicit in [true, false] {
        let engine = random_engine(EngineSettings::default());
        let mut session = endless(&engine);
        session.prefill(&[1, 2, 3]).unwrap();
        let sampler = Some(SamplerParams { temperature: 1.0, ..SamplerParams::default() });
        let params = GenerateParams { sampler, max_output_tokens: Some(5), ..GenerateParams::default() };
        assert_eq!(support::ids(session.generate(params)).unwrap().len(), 5);
        assert!(
            engine_threads().iter().any(|name| name.starts_with("lm-sampling")),
            "{:?}",
            engine_threads()
        );
        if explicit {
            engine.shutdown();
            assert!(matches!(session.prefill(&[4]), Err(Error::EngineStopped)));
            assert!(matches!(engine.cache_stats(), Err(Error::EngineStopped)));
        }
        drop((engine, session));
        // A thread that was joined is listed until the system has taken it apart.
        let until = Instant::now() + Duration::from_secs(10);
        while !engine_threads().is_empty() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(engine_threads(), [""; 0]);
    }
}
