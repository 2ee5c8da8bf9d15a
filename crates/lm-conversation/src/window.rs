//! Sliding window of a reply that exceeds the context: sinks, and the most recent part of the reply.

use lm_session::{Finished, GenerateParams, Generation, Session, TokenId, Tokenizer};

use crate::error::Result;
use crate::event::ScoredToken;
use crate::overflow::ContextShift;
use crate::reply_reader::Piece;
use crate::resampling::SEED_STEP;
use crate::turn_prompt::{SinkPrompt, TurnPrompt};

/// Maximum number of bytes of a character in UTF-8 after the first one.
const MAX_CONTINUATION: usize = 3;

/// State of the window of one reply.
#[derive(Debug)]
pub(crate) struct Window {
    sinks: SinkPrompt,
    context_tokens: usize,
    /// Parameters of the first generation, with the limit of the whole reply, and the constraint after the
    /// dropped tokens.
    params: GenerateParams,
    /// Tokens before the reply in the running generation.
    prompt_tokens: usize,
    /// Tokens of the session: the generation's prompt, and the tokens read.
    len: usize,
    /// Tokens of the reply dropped so far.
    reply_tokens: usize,
    shifts: u64,
    /// Sums of the generations that reached the end of the context.
    earlier: Option<Finished>,
    /// The token at the end of the context, until it is known whether the reply ends with it.
    pub(crate) held: Option<(Piece, Option<ScoredToken>)>,
}

impl Window {
    /// Creates the window of a reply to a prompt, generated with `params`, whose seed is drawn if unset.
    ///
    /// # Errors
    /// When no seed can be drawn.
    pub(crate) fn new(
        sinks: SinkPrompt,
        turn_prompt: &TurnPrompt,
        params: &mut GenerateParams,
        session: &Session,
    ) -> Result<Self> {
        let config = session.config();
        let sampler = params.sampler.as_ref().unwrap_or(&config.sampler).seeded()?;
        params.sampler = Some(sampler);
        params.max_output_tokens = params.max_output_tokens.or(config.max_output_tokens);
        Ok(Self {
            sinks,
            context_tokens: session.engine().context_tokens(),
            params: GenerateParams { prompt_logprobs: None, ..params.clone() },
            prompt_tokens: turn_prompt.ids.len(),
            len: turn_prompt.ids.len(),
            reply_tokens: 0,
            shifts: 0,
            earlier: None,
            held: None,
        })
    }

    /// Returns true before the first shift.
    pub(crate) fn is_first(&self) -> bool {
        self.shifts == 0
    }

    /// Number of omitted history messages.
    pub(crate) fn dropped(&self) -> usize {
        self.sinks.dropped
    }

    /// Counts a read token; returns true if it fills the context.
    pub(crate) fn count(&mut self) -> bool {
        self.len += 1;
        self.len >= self.context_tokens
    }

    /// Drops earlier turns and the oldest tokens of the reply, and continues after the rest. `None` if the
    /// sinks take more than half of the context. The last token is sampled again: its text includes text that
    /// the end of the generation made final.
    ///
    /// # Errors
    /// Same errors as [`Session::submit`] and of the constraint.
    pub(crate) fn shift(
        &mut self,
        session: &mut Session,
        tokenizer: &Tokenizer,
        finish: &Finished,
    ) -> Result<Option<(Generation, ContextShift)>> {
        let sinks = &self.sinks.ids;
        if sinks.len() > self.context_tokens / 2 {
            return Ok(None);
        }
        let mut ids = session.tokens();
        ids.pop();
        let reply = &ids[self.prompt_tokens..];
        let kept = kept(reply, self.context_tokens * 3 / 4 - sinks.len(), tokenizer);
        let shift = ContextShift {
            turns: std::mem::take(&mut self.sinks.turns),
            reply_tokens: reply.len() - kept.len(),
            sink_tokens: sinks.len(),
            window_tokens: kept.len(),
        };
        if let Some(constraint) = &mut self.params.constraint {
            reply[..shift.reply_tokens].iter().try_for_each(|&id| constraint.commit(id))?;
        }
        self.shifts += 1;
        self.reply_tokens += shift.reply_tokens;
        let mut params = GenerateParams { continued: kept.len(), ..self.params.clone() };
        params.max_output_tokens = params.max_output_tokens.map(|max| max.saturating_sub(self.reply_tokens));
        if let Some(seed) = params.sampler.as_mut().and_then(|sampler| sampler.seed.as_mut()) {
            *seed = seed.wrapping_add(SEED_STEP.wrapping_mul(self.shifts));
        }
        let ids = [sinks, kept].concat();
        let mut generation = session.submit(&ids, params)?;
        generation.take_continued(); // Their events were sent.
        (self.prompt_tokens, self.len, self.held) = (sinks.len(), ids.len(), None);
        self.earlier = Some(self.sum(finish.clone()));
        Ok(Some((generation, shift)))
    }

    /// Adds the generations before the last one to its counts; prompt and seed come from the first.
    pub(crate) fn correct(&self, finish: &mut Finished) {
        *finish = self.sum(finish.clone());
        finish.usage.output_tokens += self.reply_tokens;
    }

    fn sum(&self, last: Finished) -> Finished {
        let Some(earlier) = &self.earlier else { return last };
        let (mut usage, mut timing) = (last.usage, last.timing);
        (usage.prompt_tokens, usage.cached_tokens) =
            (earlier.usage.prompt_tokens, earlier.usage.cached_tokens);
        usage.drafted_tokens += earlier.usage.drafted_tokens;
        usage.accepted_tokens += earlier.usage.accepted_tokens;
        timing.ttft = earlier.timing.ttft;
        timing.decode += earlier.timing.decode + timing.prefill;
        timing.prefill = earlier.timing.prefill;
        timing.prefilled_tokens += earlier.timing.prefilled_tokens;
        timing.decoded_tokens += earlier.timing.decoded_tokens;
        Finished { usage, timing, seed: earlier.seed, ..last }
    }
}

/// Returns the last tokens of a reply, at most `most`, from the start of a character.
fn kept<'a>(reply: &'a [TokenId], most: usize, tokenizer: &Tokenizer) -> &'a [TokenId] {
    let kept = &reply[reply.len().saturating_sub(most)..];
    let in_character =
        |id: &&TokenId| tokenizer.token_bytes(**id).first().is_some_and(|byte| byte >> 6 == 0b10);
    let rest = kept.iter().take(MAX_CONTINUATION).take_while(in_character).count();
    if kept.len() == reply.len() { kept } else { &kept[rest..] }
}
