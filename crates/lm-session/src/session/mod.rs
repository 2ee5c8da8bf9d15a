//! Session: one sequence of tokens and its KV cache.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::generate::{PromptRows, StopMatcher};
use crate::ids::{AdapterId, SessionId};
use crate::media::{Media, Prompt, ResolvedPrompt};
use crate::media_kind::MediaKind;
use crate::metrics::PrefillStats;
use crate::params::SessionConfig;
use crate::scheduler::{Command, Reply, Request, RequestLimits, Task};
use crate::session::token_log::TokenLog;

mod cache;
mod classification;
mod embed_input;
mod embedding;
mod generate;
mod generation;
mod next_logits;
mod prompts;
mod replay;
mod saved;
mod scoring;
mod token_log;

pub use embed_input::EmbedInput;
pub use embedding::EmbedParams;
pub use generation::{Generation, GenerationStream};
pub use replay::Replayed;
pub use saved::SavedSession;
pub use scoring::TextScore;

/// A sequence of tokens that grows by prompts and by generations.
///
/// A session stores its tokens; the engine keeps their keys and values as long as the KV pool has room, also
/// while the session is idle. Tokens evicted for another session are recomputed. Dropping the session
/// releases its pages.
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
    /// [`Error::InvalidSampler`] and [`Error::EmptyStopString`] for an invalid config;
    /// [`Error::UnknownAdapter`].
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

    /// Tokens of this session: all tokens prefilled or yielded by generations, including the end token. All
    /// except the last token of a generation have run; that one runs with the next call. Rows of media have
    /// ids outside every vocabulary ([`Media::pieces`]).
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

    /// Appends a prompt and runs all pending tokens, including the last one.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`] when the session would still be empty, [`Error::PromptTooLong`] when it would
    /// exceed the context, [`Error::UnknownMedia`]: they leave it unchanged. On other errors, the processed
    /// tokens are kept: see [`Session::tokens`].
    pub fn prefill<'a>(&mut self, prompt: impl Into<Prompt<'a>>) -> Result<PrefillStats> {
        let Prompt { ids, media } = prompt.into();
        let before = self.tokens();
        let common = before.len();
        let ids = [before, ids.to_vec()].concat();
        self.append(common, self.resolve(Prompt { ids: &ids, media })?, &CancelHandle::new())
    }

    /// Replaces the tokens of this session by a prompt: keeps the longest common prefix, drops the rest, runs
    /// the new tokens. Without new tokens, only the last token runs, if its logits are not stored.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownMedia`] and [`Error::Busy`] leave
    /// the session unchanged. After [`Error::Cancelled`] and all others it holds the common prefix and the
    /// processed new tokens.
    pub fn sync<'a>(&mut self, prompt: impl Into<Prompt<'a>>, cancel: &CancelHandle) -> Result<PrefillStats> {
        let prompt = prompt.into();
        self.append(self.tokens.common(prompt.ids), self.resolve(prompt)?, cancel)
    }

    /// Truncates the session to the largest resumable position ≤ `len`, and returns that position.
    ///
    /// The caller prefills from there; the call waits for the engine's current step. The position is `len`
    /// itself for a model that keeps all keys and values, unless the pool was too small for them. A model
    /// with states goes back to a snapshot, one with windows to where the pages of the window are cached. The
    /// position is never inside the rows of a media item. If `len` is at least the number of tokens, all
    /// tokens are kept. [`Session::sync`] does the same for callers that have the whole prompt.
    pub fn rewind(&mut self, len: usize) -> usize {
        let before = self.tokens.len();
        self.tokens = self.tokens.truncate(len);
        let len = self.tokens.len();
        let (reached, answer) = mpsc::channel();
        drop(self.engine.send(Command::Rewind { session: self.id, len, reached }));
        if len < before {
            // A stopped engine has no cache; the next call returns the error.
            self.tokens.keep(answer.recv().unwrap_or(0));
        }
        self.tokens.len()
    }

    /// Opens a session with the same config and tokens. It shares the pages of the cache; a page is copied
    /// when one of the two sessions writes to it (copy-on-write).
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

    /// Finds the media of a prompt, in the prompt and in the session.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownMedia`].
    pub(crate) fn resolve(&self, prompt: Prompt<'_>) -> Result<ResolvedPrompt> {
        let Prompt { ids, media } = prompt;
        self.check_len(ids.len())?;
        if self.engine.media_tokens().is_empty() {
            return Ok(ResolvedPrompt { ids: ids.to_vec(), spans: Vec::new() }); // Each id is a token, or the model rejects it.
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

    /// Number of leading tokens in common with `ids`.
    pub(crate) fn common(&self, ids: &[TokenId]) -> usize {
        self.tokens.common(ids)
    }

    /// Runs a prompt whose first `common` tokens are those of the session.
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
                // Events belong to generations; a missing reply means that the worker has ended.
                Ok(Reply::Event(_) | Reply::Prompt(_)) | Err(_) => (Error::EngineStopped, 0),
            };
        self.tokens.keep(cached_tokens.max(common));
        Err(error)
    }

    /// Submits a request for a prompt whose first `common` tokens are those of earlier requests, and sets
    /// them as the tokens of this session. A rejected request has no effect.
    pub(crate) fn run(
        &mut self,
        prompt: ResolvedPrompt,
        common: usize,
        task: Task,
        prompt_rows: Option<Box<PromptRows>>,
        limits: RequestLimits,
    ) -> Result<async_channel::Receiver<Reply>> {
        self.engine.check_task(prompt_rows.as_deref())?;
        let direction = self.engine.model_info().direction;
        let prompt_rows = prompt_rows.map(|rows| Box::new(rows.for_direction(direction)));
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

    /// Adapter of a prompt: the session's own, or the audio adapter if the prompt has audio.
    fn adapter_for(&self, prompt: &ResolvedPrompt) -> Option<AdapterId> {
        let has_audio = || prompt.spans.iter().any(|span| span.media.kind() == MediaKind::Audio);
        self.config.adapter.or_else(|| self.engine.audio_adapter().filter(|_| has_audio()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A stopped engine has no pages to release.
        drop(self.engine.send(Command::Close { session: self.id }));
    }
}
