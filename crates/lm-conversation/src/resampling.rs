//! Rejection sampling of calls and answers that violate keywords without a grammar (`not`, `if`,
//! `dependentRequired`, …).
//!
//! The events of such a call are held back until it is complete. When it is rejected, the reply is resampled
//! with another seed from the last token whose events were sent. So the caller sees one reply, and each of
//! its calls is valid.

use std::mem;

use lm_session::{Finished, GenerateParams, Generation, PrefillProgress, SamplerParams, Session};
use lm_template::Message;

use crate::error::{Error, Result};
use crate::event::ConversationEvent;
use crate::reply_checks::ReplyChecks;
use crate::reply_reader::{Piece, ReplyReader};

/// Maximum number of times that a reply is resampled before its turn fails.
const MAX_REJECTED: usize = 16;
/// Number of attempts that change only the seed.
const SAME_FILTERS: usize = 4;
/// Seed increment between two attempts: the golden ratio in 64 bits, far from typical user seeds.
pub(crate) const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A reply under rejection sampling.
#[derive(Debug)]
pub(crate) struct Resampling {
    checks: ReplyChecks,
    /// The parameters of the first attempt, with the constraint at its start.
    params: GenerateParams,
    /// Prefill of the prompt, by the first attempt.
    prefill: PrefillProgress,
    /// The sampler of the first attempt.
    sampler: SamplerParams,
    /// Number of tokens of the session before the reply.
    prompt_tokens: usize,
    /// Text pieces, one for each token of the reply.
    pieces: Vec<Piece>,
    /// Number of pieces up to the last one whose events were sent.
    sent: usize,
    /// Unsent events.
    held: Vec<ConversationEvent>,
    /// True if a validated call or answer has started.
    open: bool,
    /// True if a complete call was sent.
    has_call: bool,
    rejected: usize,
}

impl Resampling {
    /// Creates the state for a reply to a prompt of `prompt_tokens` tokens, generated with `params`;
    /// `sampler` is the session's. Draws the seed if it is unset.
    ///
    /// # Errors
    /// When no seed can be drawn.
    pub(crate) fn new(
        checks: ReplyChecks,
        params: &mut GenerateParams,
        sampler: &SamplerParams,
        prompt_tokens: usize,
    ) -> Result<Self> {
        let sampler = params.sampler.as_ref().unwrap_or(sampler).seeded()?;
        params.sampler = Some(sampler.clone());
        // The first attempt reports them.
        let params = GenerateParams { prompt_logprobs: None, ..params.clone() };
        let prefill = PrefillProgress { cached_tokens: prompt_tokens, prefilled_tokens: 0, prompt_tokens };
        let (pieces, held) = (Vec::new(), Vec::new());
        let (sent, open, has_call, rejected) = (0, false, false, 0);
        Ok(Self {
            checks,
            params,
            prefill,
            sampler,
            prompt_tokens,
            pieces,
            sent,
            held,
            open,
            has_call,
            rejected,
        })
    }

    /// Takes the known start of the reply; an earlier turn sent its events.
    pub(crate) fn resume(&mut self, pieces: Vec<Piece>) {
        (self.sent, self.pieces) = (pieces.len(), pieces);
    }

    /// Records a step of the prefill; returns false for later attempts.
    pub(crate) fn note_prefill(&mut self, progress: PrefillProgress) -> bool {
        if self.rejected == 0 {
            self.prefill = progress;
        }
        self.rejected == 0
    }

    /// Corrects the usage of the last attempt, which found the prompt in the cache (the first one may have
    /// run it), and reports the seed of the first one, from which the other seeds are derived.
    pub(crate) fn correct(&self, finish: &mut Finished) {
        if self.rejected > 0 {
            finish.seed = self.sampler.seed;
            finish.usage.cached_tokens = self.prefill.cached_tokens.min(finish.usage.prompt_tokens);
            finish.timing.prefilled_tokens = self.prefill.prefilled_tokens;
        }
    }

    /// Number of rejected attempts.
    pub(crate) fn rejected(&self) -> usize {
        self.rejected
    }

    /// Takes a piece and its events; returns the events that can be sent.
    ///
    /// # Errors
    /// [`Error::InvalidCall`].
    pub(crate) fn push(
        &mut self,
        piece: Piece,
        events: Vec<ConversationEvent>,
    ) -> Result<Vec<ConversationEvent>> {
        self.pieces.push(piece);
        // A token that only has log probabilities may be the beginning of markup.
        let quiet = events.iter().all(|event| matches!(event, ConversationEvent::Logprobs(_)));
        self.hold(events)?;
        if quiet || self.open {
            return Ok(Vec::new());
        }
        self.sent = self.pieces.len();
        self.has_call |= self.held.iter().any(|event| matches!(event, ConversationEvent::ToolCall(_)));
        Ok(mem::take(&mut self.held))
    }

    /// Takes the last events and the complete message; returns the held events. A reply that ends in a call
    /// that was cut off has no answer.
    ///
    /// # Errors
    /// [`Error::InvalidCall`], [`Error::InvalidAnswer`].
    pub(crate) fn finish(
        &mut self,
        events: Vec<ConversationEvent>,
        message: &Message,
        has_cut_call: bool,
    ) -> Result<Vec<ConversationEvent>> {
        self.hold(events)?;
        if message.tool_calls.is_empty() && !has_cut_call {
            self.checks.answer(&message.content.text())?;
        }
        Ok(mem::take(&mut self.held))
    }

    /// Holds events back, and validates the calls among them.
    fn hold(&mut self, events: Vec<ConversationEvent>) -> Result<()> {
        for event in events {
            match &event {
                ConversationEvent::Text(_) => self.open |= self.checks.checks_answer(),
                ConversationEvent::ToolCallStarted { name, .. } => {
                    let checked = |name: &String| self.checks.checks_calls_of(name);
                    self.open |= name.as_ref().is_none_or(checked);
                }
                ConversationEvent::ToolCall(call) => {
                    self.checks.call(call)?;
                    self.open = false;
                }
                _ => {}
            }
            self.held.push(event);
        }
        Ok(())
    }

    /// Restarts the reply from the last token whose events were sent. Returns the new attempt, and a reader
    /// that has read up to that token. After [`MAX_REJECTED`] attempts a reply with a complete call ends
    /// before the next one, if the constraint allows it.
    ///
    /// # Errors
    /// `invalid`, the defect of the last attempt, when the attempts are used up; errors of the session.
    pub(crate) fn resample(
        &mut self,
        session: &mut Session,
        reader: &ReplyReader,
        invalid: Error,
    ) -> Result<(Generation, ReplyReader)> {
        let enough = self.rejected == MAX_REJECTED;
        if self.rejected > MAX_REJECTED || (enough && !self.has_call) {
            return Err(invalid);
        }
        self.rejected += 1;
        self.pieces.truncate(self.sent);
        self.held.clear();
        self.open = false;
        let mut kept = session.tokens();
        kept.truncate(self.prompt_tokens + self.sent);
        let mut params =
            GenerateParams { sampler: Some(self.sampler()), continued: self.sent, ..self.params.clone() };
        if enough {
            params.max_output_tokens = Some(self.sent);
        }
        let generation = session.submit(&kept, params).map_err(|error| match error {
            lm_session::Error::BudgetTooSmall { .. } => invalid,
            error => error.into(),
        })?;
        let mut reader = reader.restarted();
        let mut already_sent = Vec::new();
        self.pieces.iter().try_for_each(|piece| reader.push(piece, &mut already_sent))?;
        Ok((generation, reader))
    }

    /// Sampler of the next attempt: another seed, and temperature 1 if the first attempt was greedy, which
    /// would only repeat itself. Later attempts raise the temperature and do not truncate the distribution: a
    /// model that is sure of an invalid text would write it again.
    fn sampler(&self) -> SamplerParams {
        let temperature = if self.sampler.is_greedy() { 1.0 } else { self.sampler.temperature };
        let first = self.sampler.seed.unwrap_or_default();
        let seed = Some(first.wrapping_add(SEED_STEP.wrapping_mul(self.rejected as u64)));
        let reseeded = SamplerParams { temperature, seed, ..self.sampler.clone() };
        match self.rejected.saturating_sub(SAME_FILTERS) {
            0 => reseeded,
            hotter => {
                let temperature = temperature * (1.0 + hotter as f32 / 4.0);
                SamplerParams {
                    temperature,
                    top_k: 0,
                    top_p: 1.0,
                    min_p: 0.0,
                    typical_p: 1.0,
                    top_n_sigma: 0.0,
                    ..reseeded
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use lm_processors::{ToolSpec, UnenforcedKeyword};
    use lm_template::{ToolCall, Value};
    use serde_json::json;

    use super::*;

    /// State of a reply whose calls of `read` need an even `n`.
    fn resampling() -> Resampling {
        let even = json!({"properties": {"n": {"multipleOf": 2}}});
        let tool = ToolSpec::from_json(json!({"name": "read", "parameters": even})).expect("a tool");
        let unenforced = UnenforcedKeyword {
            tool: Some("read".to_owned()),
            path: "#".to_owned(),
            keyword: "multipleOf".to_owned(),
        };
        let checks =
            ReplyChecks::new(&[unenforced], &[tool], None).expect("a schema").expect("it is unenforced");
        Resampling {
            checks,
            params: GenerateParams::default(),
            prefill: PrefillProgress::default(),
            sampler: SamplerParams::default(),
            prompt_tokens: 0,
            pieces: Vec::new(),
            sent: 0,
            held: Vec::new(),
            open: false,
            has_call: false,
            rejected: 0,
        }
    }

    fn push(resampling: &mut Resampling, events: Vec<ConversationEvent>) -> Result<usize> {
        let piece = Piece { text: String::new(), added: Vec::new(), steered: false };
        resampling.push(piece, events).map(|sent| sent.len())
    }

    fn started(name: Option<&str>) -> ConversationEvent {
        ConversationEvent::ToolCallStarted { index: 0, name: name.map(str::to_owned), id: None }
    }

    fn call(n: i32) -> ConversationEvent {
        let Value::Object(arguments) = json!({"n": n}) else { unreachable!("an object") };
        ConversationEvent::ToolCall(ToolCall::new("read", arguments))
    }

    #[test]
    fn validated_call_events_wait_for_validity() {
        for name in [Some("read"), None] {
            let mut reply = resampling();
            assert_eq!(push(&mut reply, vec![ConversationEvent::Text("a".to_owned())]).expect("text"), 1);
            assert_eq!(push(&mut reply, vec![started(name)]).expect("a call begins"), 0);
            assert_eq!((push(&mut reply, vec![]).expect("nothing"), reply.sent), (0, 1));
            assert_eq!(push(&mut reply, vec![call(2)]).expect("it is even"), 2);
            assert_eq!((reply.sent, reply.has_call, reply.open), (4, true, false));
            assert_eq!(push(&mut reply, vec![started(Some("other"))]).expect("not validated"), 1);
            push(&mut reply, vec![started(Some("read"))]).expect("a call begins");
            assert!(matches!(push(&mut reply, vec![call(3)]), Err(Error::InvalidCall { .. })));
            assert_eq!(reply.sent, 5);
        }
    }

    #[test]
    fn attempts_change_seed_and_raise_temperature() {
        let mut reply = resampling();
        let samplers: Vec<SamplerParams> = (1..=MAX_REJECTED)
            .map(|rejected| {
                reply.rejected = rejected;
                reply.sampler()
            })
            .collect();
        let seeds: HashSet<u64> = samplers.iter().filter_map(|sampler| sampler.seed).collect();
        assert_eq!(seeds.len(), MAX_REJECTED);
        assert!(samplers.iter().all(|sampler| sampler.temperature >= 1.0));
        assert!(samplers.windows(2).all(|pair| pair[0].temperature <= pair[1].temperature));
        assert_eq!(samplers[0].temperature, 1.0);
    }
}
