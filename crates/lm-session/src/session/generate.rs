//! Generations of a session.

use lm_tokenizer::TokenId;

use crate::error::Result;
use crate::event::SessionEvent;
use crate::generate::{Clock, Generating, Guide, Matched, PromptRows, StopMatcher};
use crate::ids::AdapterId;
use crate::media::{Prompt, ResolvedPrompt};
use crate::metrics::PrefillStats;
use crate::params::GenerateParams;
use crate::record::{RecordedEnd, RequestRecord};
use crate::sampling::{Masked, Sampler, SamplerParams};
use crate::scheduler::{RequestLimits, Task};
use crate::session::{Generation, Session};
use crate::speculation::Drafter;

impl Session {
    /// Starts sampling tokens after those of the session. Pending tokens run first. A running generation of
    /// this session is cancelled.
    ///
    /// The engine generates even if the iterator is not read; dropping it ends the generation, and the
    /// session then holds the tokens that were read. Errors of [`Session::submit`] are the only item; later
    /// errors of the model are the last item.
    pub fn generate(&mut self, params: GenerateParams) -> Generation {
        let ids = self.tokens(); // Another thread may be reading an earlier generation: they grow.
        let start = self.resolve(Prompt::from(&ids)).and_then(|prompt| self.start(prompt, ids.len(), params));
        start.unwrap_or_else(|error| Generation::failed(self.tokens.clone(), error))
    }

    /// [`Session::sync`] and [`Session::generate`] as one request: replaces the tokens of this session by a
    /// prompt, keeping the longest common prefix, and samples the tokens after them. Returns at once; the
    /// prefill is reported in events.
    ///
    /// ```
    /// use lm_session::{GenerateParams, SessionConfig, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let mut session = engine.session(SessionConfig::default())?;
    /// let generation = session.submit(&engine.tokenizer().encode("Say hello.")?, GenerateParams::default())?;
    /// let canceller = generation.canceller(); // For another thread.
    /// assert_eq!(generation.into_text()?.0, "Hello!");
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Engine::session`](crate::Engine::session) for `params`,
    /// [`Error::EmptyPrompt`](crate::Error::EmptyPrompt),
    /// [`Error::PromptTooLong`](crate::Error::PromptTooLong),
    /// [`Error::UnknownMedia`](crate::Error::UnknownMedia),
    /// [`Error::BudgetTooSmall`](crate::Error::BudgetTooSmall) and
    /// [`Error::ConstraintFailed`](crate::Error::ConstraintFailed) for a constraint,
    /// [`Error::Busy`](crate::Error::Busy), [`Error::EngineStopped`](crate::Error::EngineStopped). The
    /// session is unchanged.
    pub fn submit<'a>(
        &mut self,
        prompt: impl Into<Prompt<'a>>,
        params: GenerateParams,
    ) -> Result<Generation> {
        let prompt = prompt.into();
        self.start(self.resolve(prompt)?, self.tokens.common(prompt.ids), params)
    }

    /// Starts a generation after a prompt whose first `common` tokens are those of the session.
    fn start(
        &mut self,
        prompt: ResolvedPrompt,
        common: usize,
        mut params: GenerateParams,
    ) -> Result<Generation> {
        let recording = match self.engine.recorder() {
            Some(recorder) => Some((recorder, self.request_record(&prompt.ids, &mut params)?)),
            None => None,
        };
        let ids = prompt.model_ids(|kind| self.engine.media_token(kind));
        let limits = RequestLimits {
            cancel: params.cancel.child(),
            deadline: params.deadline,
            priority: params.priority,
            continues: params.continued > 0,
        };
        let canceller = limits.cancel.clone();
        let prompt_logprobs = params.prompt_logprobs;
        let mut generating = Box::new(self.generating(&ids, params)?);
        let scored = &ids[..generating.prompt_tokens];
        let prompt_rows = prompt_logprobs.map(|top| Box::new(PromptRows::logprobs(scored, 0, top)));
        let output = &ids[generating.prompt_tokens..];
        let continued = self.continued(output, generating.stop.clone());
        generating.skip(output);
        let replies = self.run(prompt, common, Task::Generate(generating), prompt_rows, limits)?;
        self.prefilled = PrefillStats::default();
        let recording = recording.map(|(recorder, request)| recorder.begin(request));
        Ok(Generation::new(replies, self.tokens.clone(), canceller, continued, recording))
    }

    /// State of a generation after `ids`, whose last [`GenerateParams::continued`] tokens are already output.
    fn generating(&self, ids: &[TokenId], params: GenerateParams) -> Result<Generating> {
        let stop_ids = self.stop_ids();
        let max_output_tokens = params.max_output_tokens.or(self.config.max_output_tokens);
        let prompt_tokens = ids.len().saturating_sub(params.continued);
        let output = &ids[prompt_tokens..];
        let left = max_output_tokens.map(|max| max.saturating_sub(output.len()));
        let room = self.engine.context_tokens() - ids.len();
        let room = left.map_or(room, |left| left.min(room));
        let guide = params.constraint.map(|constraint| {
            let vocabulary = self.engine.guide_vocabulary(stop_ids.clone());
            Guide::new(constraint, vocabulary, output, room)
        });
        Ok(Generating {
            sampler: self.sampler(params.sampler.as_ref())?,
            guide: guide.transpose()?,
            decoder: self.engine.tokenizer().stream_decoder(),
            stop: StopMatcher::new(self.config.stop.iter().cloned().chain(params.stop).collect())?,
            stop_ids,
            max_output_tokens,
            context_tokens: self.engine.context_tokens(),
            prompt_tokens,
            continued_tokens: output.len(),
            forced_tokens: 0,
            logprobs: params.logprobs,
            drafter: Drafter::new(params.speculation.unwrap_or(self.engine.speculation())),
            masked: Masked::default(),
            clock: Clock::start(self.prefilled),
        })
    }

    /// Record of a request before it runs; draws its seed.
    fn request_record(&self, ids: &[TokenId], params: &mut GenerateParams) -> Result<RequestRecord> {
        let sampler = params.sampler.as_ref().unwrap_or(&self.config.sampler).seeded()?;
        params.sampler = Some(sampler.clone());
        let constraint = params.constraint.as_ref().map(|constraint| constraint.record());
        Ok(RequestRecord {
            prompt: ids.to_vec(),
            continued: params.continued,
            custom: constraint == Some(None) || !sampler.filters.is_empty(),
            sampler,
            max_output_tokens: params.max_output_tokens.or(self.config.max_output_tokens),
            stop: self.config.stop.iter().chain(&params.stop).cloned().collect(),
            stop_ids: self.config.stop_ids.clone(),
            adapter: self.config.adapter.map(|AdapterId(adapter)| adapter),
            constraint: constraint.flatten(),
            tokens: Vec::new(),
            end: RecordedEnd::Caller,
        })
    }

    /// Token events of the first tokens of an output.
    fn continued(&self, ids: &[TokenId], mut stop: StopMatcher) -> Vec<SessionEvent> {
        let mut decoder = self.engine.tokenizer().stream_decoder();
        let event = |&id: &TokenId| {
            let text = decoder.push(id);
            let Matched { text, added, .. } = stop.push(&text, decoder.added_len(id, &text));
            SessionEvent::Token { id, text, added, logprobs: None, steered: false }
        };
        ids.iter().map(event).collect()
    }

    fn sampler(&self, params: Option<&SamplerParams>) -> Result<Sampler> {
        let params = params.unwrap_or(&self.config.sampler);
        params.validate(self.engine.model_info().logits_width)?;
        Sampler::new(params, self.engine.tokenizer())
    }

    /// All tokens that end a generation, without duplicates.
    fn stop_ids(&self) -> Vec<TokenId> {
        let mut ids: Vec<TokenId> =
            self.config.stop_ids.iter().copied().chain(self.engine.end_ids()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
