//! Threads that turn logits into tokens beside the engine's thread.
//!
//! Slow masks, completion searches, logits filters and constraints of one sequence do not delay the decode
//! steps of the other sequences. A panic in one of them becomes the error of its request.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::panics::discard;
use crate::scheduler::engine_thread::mark_engine_thread;
use crate::scheduler::request::Command;
use crate::scheduler::sampling_job::{SamplingJob, sample};

/// Maximum number of threads; jobs of further sequences are queued.
const MAX_THREADS: usize = 8;

/// Pool of sampling threads; they start with the first job and end with the pool.
pub(crate) struct SamplingPool {
    results: Sender<Command>,
    running: Option<Running>,
}

struct Running {
    jobs: Sender<SamplingJob>,
    threads: Vec<JoinHandle<()>>,
}

impl SamplingPool {
    /// Creates a pool that answers with [`Command::Sampled`].
    pub fn new(results: Sender<Command>) -> Self {
        Self { results, running: None }
    }

    /// Hands `job` to a thread of the pool.
    ///
    /// # Errors
    /// Gives the job back when no thread can be started.
    pub fn send(&mut self, job: SamplingJob) -> std::result::Result<(), Box<SamplingJob>> {
        if self.running.is_none() {
            self.running = Running::start(&self.results);
        }
        match &self.running {
            Some(running) => running.jobs.send(job).map_err(|rejected| Box::new(rejected.0)),
            None => Err(Box::new(job)),
        }
    }
}

impl Running {
    /// Starts the threads; `None` if the system cannot.
    fn start(results: &Sender<Command>) -> Option<Self> {
        let (jobs, received) = channel();
        let received = Arc::new(Mutex::new(received));
        let count = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
        let start = |index: usize| {
            let (received, results) = (received.clone(), results.clone());
            let name = format!("lm-sampling-{index}");
            thread::Builder::new().name(name).spawn(move || serve(&received, &results)).ok()
        };
        let threads: Vec<_> = (0..count).map_while(start).collect();
        (!threads.is_empty()).then_some(Self { jobs, threads })
    }
}

impl Drop for SamplingPool {
    fn drop(&mut self) {
        let Some(Running { jobs, threads }) = self.running.take() else { return };
        drop(jobs); // Ends the threads after the jobs of requests that are alive.
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Runs jobs until the pool is dropped.
fn serve(jobs: &Mutex<Receiver<SamplingJob>>, results: &Sender<Command>) {
    mark_engine_thread();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if job.alive.strong_count() == 0 {
            discard(job.generating);
            continue;
        }
        let _ = results.send(Command::Sampled(Box::new(sample(job)))); // The engine may have ended.
    }
}
