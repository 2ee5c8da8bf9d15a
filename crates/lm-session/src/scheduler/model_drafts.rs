//! Drafts of a draft model, for several sequences in one batch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use lm_model::{Batch, CausalLm, LogitRows, Logits, SequenceInput, TokenId};

use crate::cache::KvCaches;
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::panics::caught;
use crate::params::PrefixCache;
use crate::sampling::argmax;
use crate::speculation::DraftModel;

/// Weight of the newest step in the moving average of its duration.
const NEWEST: f64 = 0.3;

/// A sequence to draft tokens for.
#[derive(Debug)]
pub(crate) struct DraftRequest<'a> {
    pub session: SessionId,
    /// Tokens of the sequence.
    pub ids: &'a [TokenId],
    /// Maximum number of tokens to draft.
    pub limit: usize,
    /// Tokens before which a draft ends.
    pub stop_ids: &'a [TokenId],
}

/// Draft model with a KV pool of its own: its greedy continuations are the drafts.
pub(crate) struct ModelDrafts {
    model: Arc<dyn CausalLm>,
    caches: KvCaches,
    /// Tokens with cached rows by session, and drafts after them.
    cached: HashMap<SessionId, Vec<TokenId>>,
    /// Common vocabulary width of both models.
    width: usize,
    /// Seconds of a step with one row per sequence.
    step: Option<f64>,
}

/// Draft of one sequence in progress.
struct Drafting<'a> {
    request: &'a DraftRequest<'a>,
    /// Tokens of the sequence and its draft.
    ids: Vec<TokenId>,
    done: bool,
}

impl Drafting<'_> {
    fn draft(&self) -> &[TokenId] {
        &self.ids[self.request.ids.len()..]
    }

    fn push(&mut self, id: TokenId) {
        self.done = self.request.stop_ids.contains(&id);
        if !self.done {
            self.ids.push(id);
            self.done = self.draft().len() == self.request.limit;
        }
    }
}

impl ModelDrafts {
    /// Creates the pool with as many pages as that of the target model, which has `width` logits.
    ///
    /// # Errors
    /// [`Error::DraftStates`](crate::Error::DraftStates) for a model whose rows cannot be dropped again;
    /// [`Error::Model`](crate::Error::Model) when the device cannot hold the pool.
    pub fn new(
        draft: &DraftModel,
        num_pages: usize,
        prefix_cache: PrefixCache,
        width: usize,
    ) -> Result<Self> {
        let model = draft.model.clone();
        let caches = KvCaches::new(model.new_cache(num_pages)?, prefix_cache);
        if !caches.can_roll_back() {
            return Err(Error::DraftStates { name: draft.name().to_owned() });
        }
        let width = model.info().logits_width.min(width);
        Ok(Self { model, caches, cached: HashMap::new(), width, step: None })
    }

    /// Seconds of a step that drafts one token for each sequence; `None` before the first.
    pub fn step_seconds(&self) -> Option<f64> {
        self.step
    }

    /// Drafts tokens for all `requests`, each up to its limit. At most `max_rows` missing rows run: a
    /// sequence that lacks more has no draft yet, nor has one without free pages.
    ///
    /// # Errors
    /// Errors and panics of the model. The caches are empty then.
    pub fn draft(&mut self, requests: &[DraftRequest<'_>], max_rows: usize) -> Result<Vec<Vec<TokenId>>> {
        let mut all: Vec<Drafting<'_>> = requests
            .iter()
            .map(|request| Drafting { request, ids: request.ids.to_vec(), done: !self.begin(request) })
            .collect();
        let mut left = max_rows;
        let outcome = loop {
            let plan = self.plan(&mut all, &mut left);
            if plan.is_empty() {
                break Ok(());
            }
            if let Err(error) = self.step(&mut all, &plan) {
                break Err(error);
            }
        };
        if let Err(error) = outcome {
            self.clear();
            return Err(error);
        }
        for drafting in &all {
            self.caches.mark_idle(drafting.request.session);
        }
        let drafts = all.into_iter().map(|drafting| {
            let draft = drafting.draft().to_vec();
            self.cached.insert(drafting.request.session, drafting.ids);
            draft
        });
        Ok(drafts.collect())
    }

    /// Drops the cache of `session`.
    pub fn close(&mut self, session: SessionId) {
        self.caches.close(session);
        self.cached.remove(&session);
    }

    /// Moves the cache of a session to its common prefix with the request. Returns false if the context is
    /// too short.
    fn begin(&mut self, request: &DraftRequest<'_>) -> bool {
        let DraftRequest { session, ids, limit, .. } = *request;
        if ids.len() + limit > self.model.info().context_len {
            return false;
        }
        let cached = self.cached.get(&session).map_or(&[][..], Vec::as_slice);
        let matching = cached.iter().zip(ids).take_while(|(a, b)| a == b).count();
        self.caches.begin(session, None);
        // The last token runs in any case: its row has the logits of the first draft token.
        self.caches.resume(session, &ids[..ids.len() - 1], matching);
        true
    }

    /// Rows of the next step: the index of each sequence that is not done, with the number of its rows.
    fn plan(&mut self, all: &mut [Drafting<'_>], left: &mut usize) -> Vec<(usize, usize)> {
        let mut plan = Vec::new();
        for (index, drafting) in all.iter_mut().enumerate().filter(|(_, drafting)| !drafting.done) {
            let session = drafting.request.session;
            let pending = drafting.ids.len() - self.caches.len(session);
            let rows = if pending == 1 { 1 } else { pending.min(*left) };
            *left -= if pending == 1 { 0 } else { rows };
            while self.caches.shortage(session, rows).is_some() && self.caches.evict_idle() {}
            if rows == 0 || self.caches.shortage(session, rows).is_some() {
                drafting.done = true;
            } else {
                self.caches.reserve(session, rows);
                plan.push((index, rows));
            }
        }
        plan
    }

    fn step(&mut self, all: &mut [Drafting<'_>], plan: &[(usize, usize)]) -> Result<()> {
        let sequence = |&(index, rows): &(usize, usize)| {
            let Drafting { request, ids, .. } = &all[index];
            let cached_len = self.caches.len(request.session);
            let end = cached_len + rows;
            let mut input = SequenceInput::ids(&ids[cached_len..end], cached_len, []);
            input.final_len = request.ids.len().max(end);
            input.block_tables = self.caches.block_tables(request.session, rows);
            input.logits = LogitRows::Rows(if end == ids.len() { vec![rows - 1] } else { Vec::new() });
            input
        };
        let batch = Batch { sequences: plan.iter().map(sequence).collect() };
        let started = Instant::now();
        let (model, pool) = (&self.model, self.caches.pool());
        let logits = caught(|| Ok(model.forward(&batch, pool)?))?;
        if plan.iter().all(|&(_, rows)| rows == 1) {
            let seconds = started.elapsed().as_secs_f64();
            self.step = Some(self.step.map_or(seconds, |mean| mean + NEWEST * (seconds - mean)));
        }
        for (sequence, &(index, rows)) in plan.iter().enumerate() {
            let drafting = &mut all[index];
            self.caches.commit_rows(drafting.request.session, &drafting.ids, rows);
            if self.caches.len(drafting.request.session) == drafting.ids.len() {
                drafting.take(&logits, sequence, self.width);
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        let sessions: Vec<SessionId> = self.cached.keys().copied().collect();
        sessions.into_iter().for_each(|session| self.close(session));
    }
}

impl Drafting<'_> {
    /// Appends the most probable token of a sequence's only row of logits.
    fn take(&mut self, logits: &Logits, sequence: usize, width: usize) {
        match argmax(&logits.sequence(sequence).row(0)[..width]) {
            Some(id) => self.push(id as TokenId),
            None => self.done = true,
        }
    }
}
