//! Session: one sequence of tokens and its KV cache.

use std::sync::mpsc;
use std::time::Instant;

use lm_model::AdapterId;
use lm_tokenizer::TokenId;

use crate::generating::{Clock, Generating};
use crate::guide::Guide;
use crate::request::{Command, Reply, Request, SessionId, Task};
use crate::sampling::Sampler;
use crate::stop::StopMatcher;
use crate::{
    CancelHandle, Constraint, Engine, Error, GenerateParams, Generation, PrefillStats, Result, SamplerParams,
    SessionConfig, SessionEvent,
};

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
    tokens: Vec<TokenId>,
    /// Statistics of the prefills since the last generation.
    prefilled: PrefillStats,
    /// Events of the running generation.
    running: Option<mpsc::Receiver<Reply>>,
}

impl Session {
    pub(crate) fn new(engine: Engine, config: SessionConfig) -> Result<Self> {
        config.sampler.validate(engine.model_info().logits_width)?;
        StopMatcher::new(config.stop.clone())?;
        let loaded = engine.model_info().adapters.len();
        if let Some(AdapterId(adapter)) = config.adapter.filter(|adapter| adapter.0 as usize >= loaded) {
            return Err(Error::UnknownAdapter { adapter, loaded });
        }
        let id = engine.next_session_id();
        let (tokens, prefilled) = (Vec::new(), PrefillStats::default());
        Ok(Self { engine, id, config, tokens, prefilled, running: None })
    }

    /// Tokens of this session: all tokens prefilled or yielded by generations, including the end token. All but the last token
    /// of a generation have been run; that one runs with the next call.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The engine that serves this session.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The config of this session.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Appends `ids` and runs all tokens that have not been run yet, including the last one.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`] when the session would still be empty, [`Error::PromptTooLong`] when it would exceed the
    /// context: both leave it unchanged. On other errors, the tokens that were run are kept: see [`Session::tokens`].
    pub fn prefill(&mut self, ids: &[TokenId]) -> Result<PrefillStats> {
        self.check_len(self.tokens.len() + ids.len())?;
        self.append(ids, &CancelHandle::new())
    }

    /// Makes the tokens of this session equal to `ids`: keeps the longest common prefix, drops the rest, runs the new tokens.
    /// If there are no new tokens, nothing is run, except the last token if its logits are not stored.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`] and [`Error::PromptTooLong`] leave the session unchanged. After [`Error::Cancelled`] and all
    /// others it holds the common prefix and those of the new tokens that were run.
    pub fn sync(&mut self, ids: &[TokenId], cancel: &CancelHandle) -> Result<PrefillStats> {
        self.check_len(ids.len())?;
        let common = self.tokens.iter().zip(ids).take_while(|(ours, theirs)| ours == theirs).count();
        self.tokens.truncate(common);
        self.append(&ids[common..], cancel)
    }

    /// Truncates the session to the largest resumable position ≤ `len`, and returns that position.
    ///
    /// The caller prefills from there; the call waits for the engine's current step. The position is `len` itself for a model
    /// that keeps all keys and values, unless the pool was too small for them. A model with states goes back to a snapshot, one
    /// with windows to where the pages of the window are cached. If `len` is at least the number of tokens, nothing is dropped.
    /// [`Session::sync`] does the same for callers that have the whole prompt.
    pub fn rewind(&mut self, len: usize) -> usize {
        let forgets = len < self.tokens.len();
        let reached = self.stop(len);
        if forgets {
            // A stopped engine has nothing cached; the next call returns the error.
            self.tokens.truncate(reached.recv().unwrap_or(0));
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
        let (config, tokens) = (self.config.clone(), self.tokens.clone());
        Ok(Self { engine, id, config, tokens, prefilled: PrefillStats::default(), running: None })
    }

    /// Starts sampling tokens after those of the session. Tokens that have not been run yet run first.
    ///
    /// The engine generates whether or not the iterator is read; dropping it ends the generation, and the session then holds
    /// the tokens that were read. The errors of [`Session::begin`] come as the only item; later errors of the model come as the
    /// last item.
    pub fn generate(&mut self, params: GenerateParams) -> Generation<'_> {
        let failed = self.begin(params).err();
        Generation::new(self, failed)
    }

    /// [`Session::generate`] without the borrow: the events come from [`Session::next_event`]. Every other call that changes
    /// the tokens ends the generation.
    ///
    /// # Errors
    /// Those of [`Engine::session`] for `params`, [`Error::EmptyPrompt`], [`Error::BudgetTooSmall`] and
    /// [`Error::ConstraintFailed`] for a constraint, [`Error::EngineStopped`].
    pub fn begin(&mut self, params: GenerateParams) -> Result<()> {
        self.abort();
        self.running = Some(self.start(params)?);
        Ok(())
    }

    /// Waits for the next event of the running generation; the last one is [`SessionEvent::Finished`] or an error. Returns
    /// `None` when there is no generation.
    pub fn next_event(&mut self) -> Option<Result<SessionEvent>> {
        let replies = self.running.take()?;
        Some(match replies.recv() {
            Ok(Reply::Event(SessionEvent::Token { id, text, added, logprobs })) => {
                self.tokens.push(id);
                self.running = Some(replies);
                Ok(SessionEvent::Token { id, text, added, logprobs })
            }
            Ok(Reply::Event(finished)) => Ok(finished),
            Ok(Reply::Failed { error, .. }) => Err(error),
            Ok(Reply::Prefilled { .. }) | Err(mpsc::RecvError) => Err(Error::EngineStopped),
        })
    }

    /// Ends the running generation, if there is one; the session keeps the tokens that were read.
    pub fn abort(&mut self) {
        if self.running.is_some() {
            self.stop(usize::MAX);
        }
    }

    /// Ends the running generation and truncates the cache to `len`, or to the end of the tokens; the receiver gets the
    /// position reached.
    fn stop(&mut self, len: usize) -> mpsc::Receiver<usize> {
        self.running = None;
        let (reached, answer) = mpsc::channel();
        let len = len.min(self.tokens.len());
        drop(self.engine.send(Command::Rewind { session: self.id, len, reached }));
        answer
    }

    fn start(&mut self, params: GenerateParams) -> Result<mpsc::Receiver<Reply>> {
        self.check_len(self.tokens.len())?;
        let GenerateParams { sampler, max_output_tokens, stop, constraint, cancel, continued, logprobs } =
            params;
        let stop_ids = self.stop_ids();
        let max_output_tokens = max_output_tokens.or(self.config.max_output_tokens);
        let prompt_tokens = self.tokens.len().saturating_sub(continued);
        let left = max_output_tokens.map(|max| max.saturating_sub(self.tokens.len() - prompt_tokens));
        let guide = constraint.map(|constraint| self.guide(constraint, &stop_ids, prompt_tokens, left));
        let mut generating = Generating {
            sampler: self.sampler(sampler.as_ref())?,
            guide: guide.transpose()?,
            decoder: self.engine.tokenizer().stream_decoder(),
            stop: StopMatcher::new(self.config.stop.iter().cloned().chain(stop).collect())?,
            stop_ids,
            max_output_tokens,
            context_tokens: self.engine.context_tokens(),
            prompt_tokens,
            forced_tokens: 0,
            logprobs,
            clock: Clock::start(std::mem::take(&mut self.prefilled)),
        };
        generating.skip(&self.tokens[prompt_tokens..]);
        self.run(self.tokens.len(), Task::Generate(Box::new(generating)), cancel)
    }

    fn sampler(&self, params: Option<&SamplerParams>) -> Result<Sampler> {
        let params = params.unwrap_or(&self.config.sampler);
        params.validate(self.engine.model_info().logits_width)?;
        Ok(Sampler::new(params))
    }

    fn guide(
        &self,
        constraint: Box<dyn Constraint>,
        stop_ids: &[TokenId],
        prompt_tokens: usize,
        output_left: Option<usize>,
    ) -> Result<Guide> {
        let room = self.engine.context_tokens() - self.tokens.len();
        let room = output_left.map_or(room, |left| left.min(room));
        let vocabulary = self.engine.guide_vocabulary(stop_ids.to_vec());
        Guide::new(constraint, vocabulary, &self.tokens[prompt_tokens..], room)
    }

    /// All tokens that end a generation, without duplicates.
    fn stop_ids(&self) -> Vec<TokenId> {
        let mut ids: Vec<TokenId> =
            self.config.stop_ids.iter().copied().chain(self.engine.end_ids()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn check_len(&self, prompt_tokens: usize) -> Result<()> {
        let context_tokens = self.engine.context_tokens();
        match prompt_tokens {
            0 => Err(Error::EmptyPrompt),
            len if len > context_tokens => Err(Error::PromptTooLong { prompt_tokens, context_tokens }),
            _ => Ok(()),
        }
    }

    fn append(&mut self, ids: &[TokenId], cancel: &CancelHandle) -> Result<PrefillStats> {
        let started = Instant::now();
        self.running = None; // The engine ends it when it receives the request.
        let before = self.tokens.len();
        self.tokens.extend_from_slice(ids);
        let reply = self.run(before, Task::Prefill, cancel.clone()).map(|replies| replies.recv());
        let (error, cached_tokens) = match reply {
            Ok(Ok(Reply::Prefilled { cached_tokens, prefilled_tokens })) => {
                let stats = PrefillStats { cached_tokens, prefilled_tokens, elapsed: started.elapsed() };
                self.prefilled.prefilled_tokens += stats.prefilled_tokens;
                self.prefilled.elapsed += stats.elapsed;
                return Ok(stats);
            }
            Ok(Ok(Reply::Failed { error, cached_tokens })) => (error, cached_tokens),
            // Token events belong to generations; a missing reply means that the worker is gone.
            Ok(Ok(Reply::Event(_)) | Err(mpsc::RecvError)) => (Error::EngineStopped, 0),
            Err(error) => (error, 0),
        };
        self.tokens.truncate(cached_tokens.max(before));
        Err(error)
    }

    /// Sends a request for all tokens, the first `matching` of which are those of earlier requests.
    fn run(&self, matching: usize, task: Task, cancel: CancelHandle) -> Result<mpsc::Receiver<Reply>> {
        let (replies, answers) = mpsc::channel();
        let ids = self.tokens.clone();
        let (session, adapter) = (self.id, self.config.adapter);
        self.engine.send(Command::Run(Request { session, adapter, ids, matching, task, cancel, replies }))?;
        Ok(answers)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A stopped engine has nothing to release.
        drop(self.engine.send(Command::Close { session: self.id }));
    }
}
