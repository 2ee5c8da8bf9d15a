//! Tokens of a session, shared with the generation that appends to them.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lm_tokenizer::TokenId;

use crate::engine::Engine;
use crate::error::Result;
use crate::ids::SessionId;
use crate::media::{Media, MediaSpan, ResolvedPrompt, whole_spans};
use crate::scheduler::{Command, Request};

/// A writer to the tokens of a session. Only the newest writer may append: an older one belongs to an ended
/// generation.
#[derive(Clone, Debug)]
pub(crate) struct TokenLog {
    shared: Arc<Shared>,
    writer: u64,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    session: SessionId,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    tokens: Vec<TokenId>,
    /// Rows of media among the tokens, except in a restored session before its media are given.
    media: Vec<MediaSpan>,
    /// The newest writer.
    writer: u64,
}

impl Log {
    fn truncate(&mut self, len: usize) {
        let len = whole_spans(&self.media, len);
        self.tokens.truncate(len);
        self.media.retain(|span| span.end() <= len);
    }
}

impl TokenLog {
    pub fn new(engine: Engine, session: SessionId, prompt: ResolvedPrompt) -> Self {
        let ResolvedPrompt { ids: tokens, spans: media } = prompt;
        let log = Mutex::new(Log { tokens, media, writer: 0 });
        Self { shared: Arc::new(Shared { engine, session, log }), writer: 0 }
    }

    /// The tokens so far.
    pub fn tokens(&self) -> Vec<TokenId> {
        self.log().tokens.clone()
    }

    /// The tokens so far, and the rows of media among them.
    pub fn resolved(&self) -> ResolvedPrompt {
        let log = self.log();
        ResolvedPrompt { ids: log.tokens.clone(), spans: log.media.clone() }
    }

    /// Media of the tokens.
    pub fn media(&self) -> Vec<Arc<Media>> {
        self.log().media.iter().map(|span| span.media.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.log().tokens.len()
    }

    /// Replaces the tokens, and returns the only writer that may append.
    pub fn replace(&self, prompt: ResolvedPrompt) -> Self {
        self.replace_in(&mut self.log(), prompt)
    }

    fn replace_in(&self, log: &mut Log, prompt: ResolvedPrompt) -> Self {
        (log.tokens, log.media) = (prompt.ids, prompt.spans);
        log.writer += 1;
        Self { shared: self.shared.clone(), writer: log.writer }
    }

    /// Truncates the tokens to the largest number ≤ `len` that does not split a piece of a media item, and
    /// returns the only writer that may append.
    pub fn truncate(&self, len: usize) -> Self {
        let mut log = self.log();
        log.truncate(len);
        log.writer += 1;
        Self { shared: self.shared.clone(), writer: log.writer }
    }

    /// Submits a request for `prompt`, and sets it as the tokens. Returns the only writer that may append.
    /// Commands of older writers reach the engine before the request, or not at all.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`]; the tokens are unchanged.
    pub fn submit(&self, prompt: ResolvedPrompt, request: Request) -> Result<Self> {
        let mut log = self.log();
        self.shared.engine.submit(request)?;
        Ok(self.replace_in(&mut log, prompt))
    }

    /// Number of leading tokens in common with `ids`.
    pub fn common(&self, ids: &[TokenId]) -> usize {
        self.log().tokens.iter().zip(ids).take_while(|(ours, theirs)| ours == theirs).count()
    }

    /// Appends a token; returns false if this writer was replaced.
    pub fn push(&self, id: TokenId) -> bool {
        let mut log = self.log();
        let current = log.writer == self.writer;
        if current {
            log.tokens.push(id);
        }
        current
    }

    /// [`TokenLog::truncate`] without a new writer, unless this one was replaced.
    pub fn keep(&self, len: usize) {
        let mut log = self.log();
        if log.writer == self.writer {
            log.truncate(len);
        }
    }

    /// Ends the engine's request and truncates its cache to the tokens read, unless this writer was replaced:
    /// its request has then ended.
    pub fn abandon(&self) {
        let log = self.log();
        if log.writer == self.writer {
            let (reached, _) = mpsc::channel();
            let Shared { engine, session, .. } = &*self.shared;
            // A stopped engine has no request to end.
            drop(engine.send(Command::Rewind { session: *session, len: log.tokens.len(), reached }));
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
