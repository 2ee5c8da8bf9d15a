//! Sampling of one token, as a job for a thread.

use std::sync::{Arc, Weak};

use lm_model::{Logits, TokenId};

use crate::error::Result;
use crate::generate::{Generated, Generating};
use crate::panics::{caught, discard};

/// A generation whose next token is being sampled.
#[derive(Debug)]
pub(crate) struct SamplingJob {
    /// Number of the request: [`crate::scheduler::Active::number`].
    pub request: u64,
    /// Dropped when the request has ended: the job is then skipped.
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

/// Samples the next token of `job`; a panic becomes its error.
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
