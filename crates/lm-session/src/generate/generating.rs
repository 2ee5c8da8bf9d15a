//! State of one generation: sampler, text, stop rules and clock.

use std::ops::Range;
use std::time::{Duration, Instant};

use lm_model::SequenceLogits;
use lm_tokenizer::{StreamDecoder, TokenId};

use crate::error::{Error, Result};
use crate::event::{FinishReason, Finished};
use crate::generate::guide::{Guide, Step};
use crate::generate::stop::{Matched, StopMatcher};
use crate::metrics::{PrefillStats, Timing, Usage};
use crate::sampling::{History, LogSoftmax, Masked, Sampler, TokenLogprobs};
use crate::speculation::Drafter;

/// Turns rows of logits into tokens and text until a stop rule holds.
#[derive(Debug)]
pub(crate) struct Generating {
    pub sampler: Sampler,
    pub guide: Option<Guide>,
    pub decoder: StreamDecoder,
    pub stop: StopMatcher,
    pub stop_ids: Vec<TokenId>,
    pub max_output_tokens: Option<usize>,
    pub context_tokens: usize,
    pub prompt_tokens: usize,
    /// Number of first output tokens known at the start.
    pub continued_tokens: usize,
    /// Number of tokens that were forced by the constraint, not sampled.
    pub forced_tokens: usize,
    /// Number of most probable tokens to report with each output token; `None`: no log probabilities.
    pub logprobs: Option<usize>,
    /// `None`: no speculation.
    pub drafter: Option<Drafter>,
    /// Effect of the guide's masks.
    pub masked: Masked,
    pub clock: Clock,
}

/// An output token with its text, and the finish reason or the error if the generation ends with it.
#[derive(Debug)]
pub(crate) struct Generated {
    pub id: TokenId,
    pub text: String,
    pub added: Vec<Range<usize>>,
    pub logprobs: Option<TokenLogprobs>,
    /// True from the first token on that steering replaced.
    pub steered: bool,
    pub finish: Option<Result<FinishReason>>,
}

impl Generating {
    /// Takes the tokens that a constraint forces before sampling, and appends them to `ids`.
    pub fn begin(&mut self, ids: &mut Vec<TokenId>) -> Vec<Generated> {
        let first = self.guide.as_mut().map(Guide::begin).unwrap_or_default();
        self.forced_tokens += first.len();
        self.take(ids, &first, None)
    }

    /// Returns true if the next token depends only on the highest logit of the whole row: no filter, no
    /// random number, no constraint, no log probabilities.
    pub fn is_argmax(&self) -> bool {
        self.guide.is_none() && self.logprobs.is_none() && self.sampler.is_argmax()
    }

    /// Replays tokens whose events were sent by an earlier generation, to restore the state of the decoder
    /// and the stop rules.
    pub fn skip(&mut self, ids: &[TokenId]) {
        for &id in ids {
            let text = self.decoder.push(id);
            self.stop.push(&text, self.decoder.added_len(id, &text));
        }
    }

    /// Draft tokens that pay in a step where a row costs `row_cost` of the output of a plain step.
    pub fn draft(&self, row_cost: f64) -> &[TokenId] {
        self.drafter.as_ref().map_or(&[], |drafter| drafter.draft(row_cost))
    }

    /// Samples the token after `ids` from the first row of `logits`, and appends it and the tokens forced
    /// after it to `ids` and to `generated`. Continues with the rows of the `draft` tokens while they equal
    /// the sampled tokens.
    ///
    /// # Errors
    /// The errors of the sampler and the constraint; the tokens before the error are appended.
    pub fn advance(
        &mut self,
        ids: &mut Vec<TokenId>,
        logits: SequenceLogits<'_>,
        draft: &[TokenId],
        generated: &mut Vec<Generated>,
    ) -> Result<()> {
        self.clock.logits();
        let before = ids.len();
        let mut ended = false;
        while !ended && draft.starts_with(&ids[before..]) {
            let row = logits.row(ids.len() - before);
            let (next, softmax) = self.next(ids, row)?;
            self.forced_tokens += next.len() - 1;
            let sampled = softmax.zip(next.first()).map(|(softmax, &id)| softmax.of(row, id));
            generated.extend(self.take(ids, &next, sampled));
            ended = generated.last().is_some_and(|token| token.finish.is_some());
        }
        let limit = self.remaining_tokens(ids.len()).saturating_sub(1);
        if let Some(drafter) = &mut self.drafter {
            drafter.record(draft.len(), accepted(draft, &ids[before..]));
            if !ended {
                drafter.propose(ids, limit, &self.stop_ids);
            }
        }
        Ok(())
    }

    /// Returns the sampled token and the tokens forced after it, and its distribution if log
    /// probabilities are requested.
    fn next(&mut self, ids: &[TokenId], row: &[f32]) -> Result<(Vec<TokenId>, Option<LogSoftmax>)> {
        let (prompt, generated) = ids.split_at(self.prompt_tokens);
        let history = History { prompt, generated };
        let remaining_tokens = self.remaining_tokens(ids.len());
        let Some(guide) = &mut self.guide else {
            let sampled = self.sampler.sample(row, None, &history)?;
            return Ok((vec![sampled], self.logprobs.map(|top| LogSoftmax::new(row, None, top))));
        };
        self.masked.record(row, guide.mask()?);
        loop {
            let (sampled, ended) = sample(&mut self.sampler, guide, row, &history)
                .map_err(|error| guide.refusal(row, generated).unwrap_or(error))?;
            self.masked.ended += usize::from(ended);
            let mask = guide.mask()?;
            let softmax = self.logprobs.map(|top| LogSoftmax::new(row, Some(mask), top));
            if let Step::Tokens(next) = guide.step(sampled, remaining_tokens)? {
                return Ok((next, softmax));
            }
        }
    }

    /// Appends `next`, up to and including the token that ends the generation. `sampled` belongs to the first
    /// token; tokens without it are forced.
    fn take(
        &mut self,
        ids: &mut Vec<TokenId>,
        next: &[TokenId],
        mut sampled: Option<TokenLogprobs>,
    ) -> Vec<Generated> {
        let mut generated: Vec<Generated> = Vec::with_capacity(next.len());
        for (index, &id) in next.iter().enumerate() {
            self.clock.token();
            ids.push(id);
            let complete = index + 1 == next.len() && self.guide.as_mut().is_some_and(Guide::is_complete);
            let (Matched { text, added, .. }, finish) = self.text(id, ids.len(), complete);
            let ends = finish.is_some();
            let finish = finish.map(|reason| self.check_cut_off(reason, ids.len()));
            let forced = |top| TokenLogprobs::forced(id, top);
            let logprobs = sampled.take().or_else(|| self.logprobs.map(forced));
            let steered = self.guide.as_ref().and_then(Guide::steered);
            let steered = steered.is_some_and(|steered| ids.len() - self.prompt_tokens > steered.from);
            generated.push(Generated { id, text, added, logprobs, steered, finish });
            if ends {
                break;
            }
        }
        generated
    }

    /// Returns an error if the tokens ran out in the middle of a constrained text.
    fn check_cut_off(&mut self, reason: FinishReason, len: usize) -> Result<FinishReason> {
        let out_of_tokens = matches!(reason, FinishReason::MaxOutputTokens | FinishReason::ContextFull);
        let cut_off = out_of_tokens && self.guide.as_mut().is_some_and(Guide::is_cut_off);
        if cut_off {
            return Err(Error::TextCutOff { output_tokens: len - self.prompt_tokens });
        }
        Ok(reason)
    }

    /// Number of tokens that may still follow a session of `len` tokens.
    fn remaining_tokens(&self, len: usize) -> usize {
        let output = self.max_output_tokens.map(|max| max.saturating_sub(len - self.prompt_tokens));
        output.unwrap_or(usize::MAX).min(self.context_tokens.saturating_sub(len))
    }

    /// Returns the limit that a session of `len` tokens has reached, if any.
    pub fn limit(&self, len: usize) -> Option<FinishReason> {
        if self.max_output_tokens.is_some_and(|max| len - self.prompt_tokens >= max) {
            Some(FinishReason::MaxOutputTokens)
        } else if len >= self.context_tokens {
            Some(FinishReason::ContextFull)
        } else {
            None
        }
    }

    /// Summarises the generation. `prefill` holds the tokens that the request itself ran before its first
    /// token.
    pub fn finished(&self, reason: FinishReason, len: usize, prefill: &PrefillStats) -> Finished {
        let (drafted_tokens, accepted_tokens) = self.drafter.as_ref().map_or((0, 0), Drafter::totals);
        let cached = prefill.cached_tokens.saturating_sub(self.clock.earlier.prefilled_tokens);
        let usage = Usage {
            prompt_tokens: self.prompt_tokens,
            cached_tokens: cached.min(self.prompt_tokens),
            output_tokens: len - self.prompt_tokens,
            continued_tokens: self.continued_tokens,
            forced_tokens: self.forced_tokens,
            drafted_tokens,
            accepted_tokens,
        };
        let timing = self.clock.timing(prefill.prefilled_tokens);
        let steered = self.guide.as_ref().and_then(Guide::steered);
        let masked = self.guide.is_some().then_some(self.masked);
        Finished { reason, usage, timing, seed: self.sampler.seed(), steered, masked }
    }

    /// Returns the text that token `id` makes final, and the finish reason if the generation ends with it.
    /// `complete`: the constraint allows no further token, so that only an end token is missing.
    fn text(&mut self, id: TokenId, len: usize, complete: bool) -> (Matched, Option<FinishReason>) {
        if self.stop_ids.contains(&id) {
            return self.last_text(Matched::default(), FinishReason::EndToken);
        }
        let text = self.decoder.push(id);
        let mut matched = self.stop.push(&text, self.decoder.added_len(id, &text));
        if let Some(stop) = matched.stop.take() {
            return (matched, Some(FinishReason::StopString(stop)));
        }
        match self.limit(len) {
            reason if complete && (reason.is_some() || self.stop_ids.is_empty()) => {
                self.last_text(matched, FinishReason::EndToken)
            }
            Some(reason) => self.last_text(matched, reason),
            None => (matched, None),
        }
    }

    /// Appends the held-back text to `matched` at the end of the generation.
    fn last_text(&mut self, mut matched: Matched, reason: FinishReason) -> (Matched, Option<FinishReason>) {
        let rest = self.decoder.finish();
        let mut last = self.stop.push(&rest, 0);
        let stop = last.stop.take();
        matched.append(last);
        if let Some(stop) = stop {
            return (matched, Some(FinishReason::StopString(stop)));
        }
        matched.append(self.stop.finish());
        (matched, Some(reason))
    }
}

/// Samples a token that the guide allows, and returns true with it if it ends a complete text in place of an
/// excluded one.
///
/// Where a text is complete, a further part (another call, more digits) is sampled from the whole
/// distribution: if the model prefers a token that the mask excludes, the text ends there. Under the mask
/// alone, the further part would be all that is left, and would be taken again and again.
fn sample(
    sampler: &mut Sampler,
    guide: &mut Guide,
    row: &[f32],
    history: &History<'_>,
) -> Result<(TokenId, bool)> {
    let Some(ends) = guide.ends_if_complete()? else {
        return Ok((sampler.sample(row, Some(guide.mask()?), history)?, false));
    };
    let preferred = sampler.sample(row, None, history)?;
    if guide.mask()?.allows(preferred) {
        return Ok((preferred, false));
    }
    // The same text in shorter tokens: a line break of two, a digit with a full stop.
    if !guide.allows_start_of(preferred)?
        // A filter may exclude the end tokens.
        && let Ok(end) = sampler.sample(row, Some(&ends), history)
    {
        return Ok((end, true));
    }
    Ok((sampler.sample(row, Some(guide.mask()?), history)?, false))
}

/// Number of draft tokens that equal the first sampled tokens.
pub(crate) fn accepted(draft: &[TokenId], tokens: &[TokenId]) -> usize {
    draft.iter().zip(tokens).take_while(|(drafted, token)| drafted == token).count()
}

/// Timestamps of one generation.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    /// Prefills since the previous generation.
    earlier: PrefillStats,
    first_logits: Option<Instant>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
    tokens: usize,
}

impl Clock {
    pub fn start(earlier: PrefillStats) -> Self {
        Self {
            started: Instant::now(),
            earlier,
            first_logits: None,
            first_token: None,
            last_token: None,
            tokens: 0,
        }
    }

    fn logits(&mut self) {
        self.first_logits.get_or_insert_with(Instant::now);
    }

    /// Records a token, unless a constraint forced it before the first logits.
    fn token(&mut self) {
        if self.first_logits.is_none() {
            return;
        }
        let now = Instant::now();
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.tokens += 1;
    }

    fn timing(&self, prefilled_tokens: usize) -> Timing {
        let since_start = |at: Instant| self.earlier.elapsed + (at - self.started);
        let decode = match (self.first_token, self.last_token) {
            (Some(first), Some(last)) => last - first,
            _ => Duration::ZERO,
        };
        Timing {
            ttft: self.first_token.map(since_start),
            prefill: since_start(self.first_logits.unwrap_or_else(Instant::now)),
            decode,
            prefilled_tokens: self.earlier.prefilled_tokens + prefilled_tokens,
            decoded_tokens: self.tokens.saturating_sub(1),
        }
    }
}
