//! Copies of a session's KV pages.

use std::sync::mpsc;

use lm_tokenizer::TokenId;

use super::Session;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ids::AdapterId;
use crate::media::{ResolvedPrompt, is_virtual};
use crate::metrics::PrefillStats;
use crate::saved::{CacheSave, SavedCache, SavedPages};
use crate::scheduler::Command;

impl Session {
    /// Copies the KV pages of the cached tokens to host memory if they take at most `max_bytes`, for
    /// [`Session::restore_cache`]. The worker makes the copy between two steps.
    ///
    /// ```
    /// use lm_session::{CacheSave, SessionConfig, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let mut session = engine.session(SessionConfig::default())?;
    /// session.prefill(&[1, 2, 3])?;
    /// let CacheSave::Saved(cache) = session.save_cache(1 << 20)? else { panic!("three tokens are small") };
    /// drop(session); // Or the end of the program.
    ///
    /// let mut session = engine.session(SessionConfig::default())?;
    /// assert!(session.restore_cache(&cache)?);
    /// assert_eq!(session.prefill(&[4])?.prefilled_tokens, 1);
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EngineStopped`].
    pub fn save_cache(&self, max_bytes: usize) -> Result<CacheSave> {
        self.save_cache_to(usize::MAX, max_bytes)
    }

    /// [`Session::save_cache`] of the first `len` tokens.
    pub(crate) fn save_cache_to(&self, len: usize, max_bytes: usize) -> Result<CacheSave> {
        let (saved, answer) = mpsc::channel();
        let mut tokens = self.tokens();
        tokens.truncate(len);
        self.engine.send(Command::SaveCache { session: self.id, len: tokens.len(), max_bytes, saved })?;
        Ok(match answer.recv().map_err(|_| Error::EngineStopped)? {
            SavedPages::Saved { tokens: cached, pages } => {
                tokens.truncate(cached);
                let fingerprint = self.engine.fingerprint().to_owned();
                let adapter = self.engine.adapter_checksum(self.adapter)?;
                CacheSave::Saved(SavedCache { fingerprint, adapter, tokens, pages: pages.into() })
            }
            SavedPages::TooLarge { bytes } => CacheSave::TooLarge { bytes },
            SavedPages::NothingCached => CacheSave::NothingCached,
            SavedPages::NotInHostMemory => CacheSave::NotInHostMemory,
        })
    }

    /// Replaces the tokens of this session by those of `cache`, with its KV pages: only later tokens have to
    /// run. If rows of media are among them, the next call gives the media again
    /// ([`Prompt::media`](crate::Prompt::media)). Other sessions find the pages as well
    /// ([`crate::PrefixCache`]), so their source must be trusted. Returns false, and leaves the session
    /// empty, if the pool has no room for the pages, or the model is unloaded.
    ///
    /// # Errors
    /// [`Error::ForeignCache`], [`Error::ForeignAdapter`], [`Error::AdapterUnloaded`], [`Error::SavedPages`],
    /// [`Error::SavedToken`], [`Error::EmptyPrompt`] and [`Error::PromptTooLong`]; the session is then
    /// unchanged. [`Error::EngineStopped`].
    pub fn restore_cache(&mut self, cache: &SavedCache) -> Result<bool> {
        let SavedCache { fingerprint, adapter, tokens, pages } = cache;
        self.engine.check_fingerprint(fingerprint)?;
        let adapter = self.adapter_of_saved(*adapter)?;
        self.check_saved(tokens)?;
        let (restored, answer) = mpsc::channel();
        self.engine.send(Command::RestoreCache {
            session: self.id,
            adapter,
            ids: tokens.clone(),
            pages: pages.clone(),
            restored,
        })?;
        let restored = answer.recv().map_err(|_| Error::EngineStopped)??;
        let ids = if restored { tokens.clone() } else { Vec::new() };
        self.tokens = self.tokens.replace(ResolvedPrompt { ids, spans: Vec::new() });
        (self.adapter, self.prefilled) = (adapter, PrefillStats::default());
        Ok(restored)
    }

    /// Sets the tokens of this new session to those of a saved one, with the KV pages of the first tokens.
    pub(crate) fn restore_tokens(&mut self, tokens: &[TokenId], cache: Option<&SavedCache>) -> Result<()> {
        if !tokens.is_empty() {
            self.check_saved(tokens)?;
        }
        if let Some(cache) = cache {
            self.restore_cache(cache)?;
            // Pages of other tokens are useless.
            self.rewind(self.common(tokens));
        }
        self.tokens = self.tokens.replace(ResolvedPrompt { ids: tokens.to_vec(), spans: Vec::new() });
        Ok(())
    }

    /// Checks that saved tokens fit the context and the vocabulary.
    fn check_saved(&self, ids: &[TokenId]) -> Result<()> {
        self.check_len(ids.len())?;
        let tokens = self.engine.model_info().logits_width;
        let media = !self.engine.media_tokens().is_empty();
        match ids.iter().find(|&&token| token as usize >= tokens && !(media && is_virtual(token))) {
            Some(&token) => Err(Error::SavedToken { token, tokens }),
            None => Ok(()),
        }
    }

    /// Adapter of saved pages: the session's own, or the audio adapter.
    fn adapter_of_saved(&self, checksum: Option<u32>) -> Result<Option<AdapterId>> {
        let own = self.config.adapter;
        let expected = self.engine.adapter_checksum(own)?;
        let of_audio = self.engine.audio_adapter().filter(|_| own.is_none());
        match checksum == expected {
            true => Ok(own),
            false if of_audio.is_some() && self.engine.adapter_checksum(of_audio)? == checksum => {
                Ok(of_audio)
            }
            false => Err(Error::ForeignAdapter { expected, found: checksum }),
        }
    }
}

impl Engine {
    /// [`crate::AdapterInfo::checksum`] of an adapter.
    pub(crate) fn adapter_checksum(&self, adapter: Option<AdapterId>) -> Result<Option<u32>> {
        let adapter = adapter.map(|adapter| self.adapter_registry().get(adapter));
        Ok(adapter.transpose()?.map(|adapter| adapter.info().checksum))
    }
}
