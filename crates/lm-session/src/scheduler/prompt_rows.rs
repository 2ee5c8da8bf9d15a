//! Rows of prompts that are read for their outputs.

use std::ops::Range;

use lm_model::{Batch, Embeddings, LogitRows, Logits};

use super::{ScheduledRows, Scheduler};
use crate::error::Result;
use crate::scheduler::request::Reply;

impl Scheduler {
    /// Rows of a request in a step whose hidden states are read, counted from its first row.
    pub(super) fn rows_to_read(&self, scheduled: &ScheduledRows) -> Range<usize> {
        let request = &self.active[scheduled.active].request;
        let cached_len = self.caches.len(request.session);
        let rows = |rows: &crate::generate::PromptRows| rows.rows(cached_len, cached_len + scheduled.rows);
        request.prompt_rows.as_deref().map_or(0..0, rows)
    }

    /// Runs the model: returns the logits of the rows to sample from, and reads the rows of prompts, whose
    /// logits are never all in memory together.
    pub(super) fn run_model(&mut self, plan: &[ScheduledRows], batch: &Batch) -> Result<Logits> {
        let model = self.model.clone();
        let reads: Vec<Range<usize>> = plan.iter().map(|scheduled| self.rows_to_read(scheduled)).collect();
        if reads.iter().all(Range::is_empty) {
            return Ok(model.forward(batch, self.caches.pool())?);
        }
        let Embeddings { values, hidden_size } = model.hidden(batch, self.caches.pool())?;
        let (mut rest, mut sampled, mut counts) = (&values[..], Vec::new(), Vec::new());
        for ((scheduled, read), input) in plan.iter().zip(reads).zip(&batch.sequences) {
            let LogitRows::Rows(rows) = &input.logits else { continue };
            let (own, others) = rest.split_at(rows.len() * hidden_size);
            let (read, own) = own.split_at(read.len() * hidden_size);
            let request = &mut self.active[scheduled.active].request;
            if let Some(reader) = &mut request.prompt_rows {
                let rows = Embeddings { values: read.to_vec(), hidden_size };
                reader.read(&*model, &rows, &request.ids)?;
            }
            sampled.extend_from_slice(own);
            counts.push(own.len() / hidden_size);
            rest = others;
        }
        let logits = model.head(Embeddings { values: sampled, hidden_size })?;
        let width = logits.width();
        let rows = logits.sequence(0).rows().flatten().copied().collect();
        Ok(Logits::new(rows, width, counts))
    }

    /// Sends the output of a request's prompt when all its rows have been read. Returns true if this ends the
    /// request: an embedding, a generation of no tokens, or a failure.
    pub(super) fn send_prompt_output(&mut self, index: usize) -> bool {
        let active = &mut self.active[index];
        let Some(rows) = active.request.prompt_rows.take_if(|rows| rows.is_complete()) else { return false };
        let (is_pooled, output) = (rows.is_pooled(), rows.finish(&*self.model));
        let active = &self.active[index];
        match output {
            Ok(output) => active.request.reply(Reply::Prompt(output)),
            Err(error) => {
                self.fail(index, error);
                return true;
            }
        }
        match active.limit() {
            Some(reason) => self.finish(index, reason),
            None if is_pooled => self.end_prefill(index),
            None => return false,
        }
        true
    }
}
