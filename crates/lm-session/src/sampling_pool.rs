//! Threads that turn logits into tokens beside the engine's thread.
//!
//! Slow masks, completion searches, logits filters and constraints of one sequence do not delay the decode steps of the other
//! sequences. A panic in one of them is the error of its request.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use lm_model::{Logits, TokenId};

use crate::Result;
use crate::generating::{Generated, Generating};
use crate::panics::{caught, discard};
use crate::request::Command;

/// Maximum number of threads; jobs of further sequences are queued.
const MAX_THREADS: usize = 8;

/// A generation whose next token is being sampled.
#[derive(Debug)]
pub(crate) struct SamplingJob {
    /// Number of the request: [`crate::scheduler::Active::number`].
    pub request: u64,
    /// Dead when the request has ended: the job is then skipped.
    pub alive: Weak<()>,
    pub generating: Box<Generating>,
    /// All tokens of the session.
    pub ids: Vec<TokenId>,
    /// Logits of a step, whose `sequence` has a row for the last token and one for each draft token.
    pub logits: Arc<Logits>,
    pub sequence: usize,
    pub draft: Vec<TokenId>,
}

/// A generation with its sampled tokens and those forced after them.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub request: u64,
    /// All tokens of the session, with the new ones.
    pub ids: Vec<TokenId>,
    /// The new tokens, also those before an error.
    pub generated: Vec<Generated>,
    pub outcome: Result<Box<Generating>>,
}

/// Pool of sampling threads; they are started when the first job comes and end with the pool.
pub(crate) struct SamplingPool {
    results: Sender<Command>,
    running: Option<Running>,
}

struct Running {
    jobs: Sender<SamplingJob>,
    threads: Vec<JoinHandle<()>>,
}

thread_local! {
    /// True on the threads of an engine, which must not wait for their own end.
    static OF_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on the threads of an engine.
pub(crate) fn is_engine_thread() -> bool {
    OF_ENGINE.get()
}

/// Marks the current thread as one of an engine.
pub(crate) fn mark_engine_thread() {
    OF_ENGINE.set(true);
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
            Some(running) => running.jobs.send(job).map_err(|refused| Box::new(refused.0)),
            None => Err(Box::new(job)),
        }
    }
}

impl Running {
    /// Starts the threads; `None` when the system has none to give.
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

/// Samples the next token of `job`; a panic is its error.
pub(crate) fn sample(job: SamplingJob) -> Sampled {
    let SamplingJob { request, mut generating, mut ids, logits, sequence, draft, .. } = job;
    let mut generated = Vec::new();
    let rows = || logits.sequence(sequence);
    let outcome = match caught(|| generating.advance(&mut ids, rows(), &draft, &mut generated)) {
        Ok(()) => Ok(generating),
        Err(error) => {
            discard(generating);
            Err(error)
        }
    };
    Sampled { request, ids, generated, outcome }
}
