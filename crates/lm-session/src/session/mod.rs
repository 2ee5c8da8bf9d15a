//! Session: one sequence of tokens and its KV cache.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::event::SessionEvent;
use crate::generate::{Clock, Generating, Guide, Matched, PromptRows, StopMatcher};
use crate::ids::{AdapterId, SessionId};
use crate::media::{Media, Prompt, ResolvedPrompt};
use crate::media_kind::MediaKind;
use crate::metrics::PrefillStats;
use crate::params::{GenerateParams, SessionConfig};
use crate::record::{RecordedEnd, RequestRecord};
use crate::sampling::{Sampler, SamplerParams};
use crate::scheduler::{Command, Reply, Request, RequestLimits, Task};
use crate::session::token_log::TokenLog;
use crate::speculation::Drafter;

mod cache;
mod embedding;
mod generation;
mod replay;
mod saved;
mod scoring;
mod token_log;

pub use embedding::EmbedParams;
pub use generation::{Generation, GenerationStream};
pub use replay::Replayed;
pub use saved::SavedSession;
pub use scoring::TextScore;

/// A sequence of tokens that grows by prompts and by generations.
///
/// A session stores its tokens; the engine keeps their keys and values as long as the KV pool has room, also while the session is
/// idle. Tokens evicted for another session are recomputed. Dropping the session releases its pages.
///
/// ```
/// use lm_session::{CancelHandle, GenerateParams, SessionConfig, SessionEvent, testing};
///
/// let engine = testing::scripted_engine(["Hello!"]);
/// let mut session = engine.session(SessionConfig::default())?;
/// let prompt = engine.tokenizer().encode("Say hello.")?;
/// session.sync(&prompt, &CancelHandle::new())?;
/// for event in session.generate(GenerateParams::default()) {
///     match event? {
///         SessionEvent::Token { text, .. } => print!("{text}"),
///         SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
///         SessionEvent::Finished(finished) => println!(" {:?}", finished.reason),
///     }
/// }
/// // Only the tokens after the common prefix are run.
/// let stats = session.sync(&[&prompt[..], &prompt[..]].concat(), &CancelHandle::new())?;
/// assert_eq!(stats.cached_tokens, prompt.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    engine: Engine,
    id: SessionId,
    config: SessionConfig,
    tokens: TokenLog,
    /// Adapter of the last request.
    adapter: Option<AdapterId>,
    /// Statistics of the prefills since the last generation.
    prefilled: PrefillStats,
}

impl Engine {
    /// Opens an empty session. It takes no pages of the KV pool yet.
    ///
    /// # Errors
    /// [`Error::InvalidSampler`] and [`Error::EmptyStopString`] for an invalid config; [`Error::UnknownAdapter`].
    pub fn session(&self, config: SessionConfig) -> Result<Session> {
        Session::new(self.clone(), config)
    }
}

impl Session {
    pub(crate) fn new(engine: Engine, config: SessionConfig) -> Result<Self> {
        config.sampler.validate(engine.model_info().logits_width)?;
        StopMatcher::new(config.stop.clone())?;
        config.adapter.map(|adapter| engine.adapter_registry().get(adapter)).transpose()?;
        let id = engine.next_session_id();
        let tokens = TokenLog::new(engine.clone(), id, ResolvedPrompt::default());
        let adapter = config.adapter;
        Ok(Self { engine, id, config, tokens, adapter, prefilled: PrefillStats::default() })
    }

    /// Tokens of this session: all tokens prefilled or yielded by generations, including the end token. All but the last token
    /// of a generation have been run; that one runs with the next call. Rows of media have ids that no vocabulary has
    /// ([`Media::pieces`]).
    pub fn tokens(&self) -> Vec<TokenId> {
        self.tokens.tokens()
    }

    /// Media whose rows are among the tokens, in order.
    pub fn media(&self) -> Vec<Arc<Media>> {
        self.tokens.media()
    }

    /// The engine that serves this session.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The config of this session.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Appends a prompt and runs all tokens that have not been run yet, including the last one.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`] when the session would still be empty, [`Error::PromptTooLong`] when it would exceed the
    /// context, [`Error::UnknownMedia`]: they leave it unchanged. On other errors, the tokens that were run are kept: see
    /// [`Session::tokens`].
    pub fn prefill<'a>(&mut self, prompt: impl Into<Prompt<'a>>) -> Result<PrefillStats> {
        let Prompt { ids, media } = prompt.into();
        let before = self.tokens();
        let common = before.len();
        let ids = [before, ids.to_vec()].concat();
        self.append(common, self.resolve(Prompt { ids: &ids, media })?, &CancelHandle::new())
    }

    /// Makes the tokens of this session those of a prompt: keeps the longest common prefix, drops the rest, runs the new tokens.
    /// If there are no new tokens, nothing is run, except the last token if its logits are not stored.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownMedia`] and [`Error::Busy`] leave the session unchanged. After
    /// [`Error::Cancelled`] and all others it holds the common prefix and those of the new tokens that were run.
    pub fn sync<'a>(&mut self, prompt: impl Into<Prompt<'a>>, cancel: &CancelHandle) -> Result<PrefillStats> {
        let prompt = prompt.into();
        self.append(self.tokens.common(prompt.ids), self.resolve(prompt)?, cancel)
    }

    /// Truncates the session to the largest resumable position ≤ `len`, and returns that position.
    ///
    /// The caller prefills from there; the call waits for the engine's current step. The position is `len` itself for a model
    /// that keeps all keys and values, unless the pool was too small for them. A model with states goes back to a snapshot, one
    /// with windows to where the pages of the window are cached. No position is inside the rows of a medium. If `len` is at least the number of tokens, nothing is dropped.
    /// [`Session::sync`] does the same for callers that have the whole prompt.
    pub fn rewind(&mut self, len: usize) -> usize {
        let before = self.tokens.len();
        self.tokens = self.tokens.truncate(len);
        let len = self.tokens.len();
        let (reached, answer) = mpsc::channel();
        drop(self.engine.send(Command::Rewind { session: self.id, len, reached }));
        if len < before {
            // A stopped engine has nothing cached; the next call returns the error.
            self.tokens.keep(answer.recv().unwrap_or(0));
        }
        self.tokens.len()
    }

    /// Opens a session with the same config and tokens. It shares the pages of the cache; a page is copied when one of the two
    /// writes to it (copy-on-write).
    ///
    /// # Errors
    /// [`Error::EngineStopped`].
    pub fn fork(&self) -> Result<Self> {
        let engine = self.engine.clone();
        let id = engine.next_session_id();
        engine.send(Command::Fork { from: self.id, to: id })?;
        let tokens = TokenLog::new(engine.clone(), id, self.tokens.resolved());
        let (config, adapter) = (self.config.clone(), self.adapter);
        Ok(Self { engine, id, config, tokens, adapter, prefilled: PrefillStats::default() })
    }

    /// Starts sampling tokens after those of the session. Tokens that have not been run yet run first. A running generation of
    /// this session is cancelled.
    ///
    /// The engine generates whether or not the iterator is read; dropping it ends the generation, and the session then holds
    /// the tokens that were read. The errors of [`Session::submit`] come as the only item; later errors of the model come as
    /// the last item.
    pub fn generate(&mut self, params: GenerateParams) -> Generation {
        let ids = self.tokens(); // Another thread may be reading an earlier generation: they grow.
        let start = self.resolve(Prompt::from(&ids)).and_then(|prompt| self.start(prompt, ids.len(), params));
        start.unwrap_or_else(|error| Generation::failed(self.tokens.clone(), error))
    }

    /// [`Session::sync`] and [`Session::generate`] as one request: makes the tokens of this session those of a prompt, keeping the
    /// longest common prefix, and samples the tokens after them. Returns at once; the prefill is reported in events.
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
    /// Those of [`Engine::session`] for `params`, [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownMedia`], [`Error::BudgetTooSmall`]
    /// and [`Error::ConstraintFailed`] for a constraint, [`Error::Busy`], [`Error::EngineStopped`]. The session is unchanged.
    pub fn submit<'a>(
        &mut self,
        prompt: impl Into<Prompt<'a>>,
        params: GenerateParams,
    ) -> Result<Generation> {
        let prompt = prompt.into();
        self.start(self.resolve(prompt)?, self.tokens.common(prompt.ids), params)
    }

    /// Starts a generation after a prompt, the first `common` tokens of which are those of the session.
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

    /// State of a generation after `ids`, the last [`GenerateParams::continued`] of which are already output.
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
            SessionEvent::Token { id, text, added, logprobs: None }
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

    /// Finds the media of a prompt: those given with it, and those of the session.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownMedia`].
    pub(crate) fn resolve(&self, prompt: Prompt<'_>) -> Result<ResolvedPrompt> {
        let Prompt { ids, media } = prompt;
        self.check_len(ids.len())?;
        if self.engine.media_tokens().is_empty() {
            return Ok(ResolvedPrompt { ids: ids.to_vec(), spans: Vec::new() }); // Each id is a token, or the model refuses it.
        }
        ResolvedPrompt::new(ids.to_vec(), media.iter().chain(&self.media()))
    }

    pub(crate) fn check_len(&self, prompt_tokens: usize) -> Result<()> {
        let context_tokens = self.engine.context_tokens();
        match prompt_tokens {
            0 => Err(Error::EmptyPrompt),
            len if len > context_tokens => Err(Error::PromptTooLong { prompt_tokens, context_tokens }),
            _ => Ok(()),
        }
    }

    /// Number of leading tokens that `ids` has as well.
    pub(crate) fn common(&self, ids: &[TokenId]) -> usize {
        self.tokens.common(ids)
    }

    /// Runs a prompt, the first `common` tokens of which are those of the session.
    fn append(
        &mut self,
        common: usize,
        prompt: ResolvedPrompt,
        cancel: &CancelHandle,
    ) -> Result<PrefillStats> {
        let started = Instant::now();
        let limits = RequestLimits { cancel: cancel.child(), ..RequestLimits::default() };
        let (error, cached_tokens) =
            match self.run(prompt, common, Task::Prefill, None, limits)?.recv_blocking() {
                Ok(Reply::Prefilled { cached_tokens, prefilled_tokens }) => {
                    let stats = PrefillStats { cached_tokens, prefilled_tokens, elapsed: started.elapsed() };
                    self.prefilled.prefilled_tokens += stats.prefilled_tokens;
                    self.prefilled.elapsed += stats.elapsed;
                    return Ok(stats);
                }
                Ok(Reply::Failed { error, cached_tokens }) => (error, cached_tokens),
                // Events belong to generations; a missing reply means that the worker is gone.
                Ok(Reply::Event(_) | Reply::Prompt(_)) | Err(_) => (Error::EngineStopped, 0),
            };
        self.tokens.keep(cached_tokens.max(common));
        Err(error)
    }

    /// Submits a request for a prompt, the first `common` tokens of which are those of earlier requests, and makes them the tokens of this
    /// session. A request that is refused changes nothing.
    pub(crate) fn run(
        &mut self,
        prompt: ResolvedPrompt,
        common: usize,
        task: Task,
        prompt_rows: Option<Box<PromptRows>>,
        limits: RequestLimits,
    ) -> Result<async_channel::Receiver<Reply>> {
        let (replies, answers) = async_channel::unbounded();
        let (session, adapter) = (self.id, self.adapter_for(&prompt));
        let request = Request {
            session,
            adapter,
            low_ranks: None,
            ids: prompt.model_ids(|kind| self.engine.media_token(kind)),
            media: prompt.spans.clone(),
            matching: common,
            task,
            prompt_rows,
            limits,
            waiting: None,
            replies,
        };
        self.tokens = self.tokens.submit(prompt, request)?;
        self.adapter = adapter;
        Ok(answers)
    }

    /// Adapter with which a prompt runs: the session's own, or that of sounds if there are any.
    fn adapter_for(&self, prompt: &ResolvedPrompt) -> Option<AdapterId> {
        let hears = || prompt.spans.iter().any(|span| span.media.kind() == MediaKind::Sound);
        self.config.adapter.or_else(|| self.engine.sound_adapter().filter(|_| hears()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A stopped engine has nothing to release.
        drop(self.engine.send(Command::Close { session: self.id }));
    }
}
