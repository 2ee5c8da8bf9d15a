//! Memory of an idle engine: its model is released on request or after a time.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::Engine;
use crate::error::{Error, Result};
use crate::scheduler::Command;

impl Engine {
    /// Releases the weights and the KV pool if no request runs or waits. The sessions stay valid: their next
    /// request loads the model again and prefills the contents of the pool. Returns true if they are
    /// released; an engine of [`Engine::new`] keeps them, as it has no model files. See also
    /// [`crate::EngineSettings::keep_alive`] and [`crate::Models`].
    ///
    /// ```
    /// use lm_session::{Engine, EngineSettings, LoadOptions, ModelFolder, SessionConfig};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/llama-tiny");
    /// let (folder, settings) = (ModelFolder::open(path)?, EngineSettings::default());
    /// let engine = Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {})?;
    /// let mut session = engine.session(SessionConfig::default())?;
    /// session.prefill(&[1, 2, 3])?;
    /// assert!(engine.unload()?);
    /// assert_eq!(session.prefill(&[4])?.prefilled_tokens, 4);
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EngineStopped`].
    pub fn unload(&self) -> Result<bool> {
        self.begin_unload()?.recv().map_err(|_| Error::EngineStopped)
    }

    /// Replaces [`crate::EngineSettings::keep_alive`]: an idle model is released after this time; `None`
    /// keeps it. With [`Duration::ZERO`] it is released when the last request has ended. [`Engine::activity`]
    /// shows the time. An engine of [`Engine::new`] keeps its model.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use lm_session::{Engine, EngineSettings, LoadOptions, ModelFolder};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/llama-tiny");
    /// let (folder, settings) = (ModelFolder::open(path)?, EngineSettings::default());
    /// let engine = Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {})?;
    /// let time = Duration::from_secs(600);
    /// engine.set_keep_alive(Some(time))?;
    /// engine.cache_stats()?; // Waits for the engine.
    /// let activity = engine.activity();
    /// assert_eq!(activity.keep_alive, Some(time));
    /// assert!(activity.unloads_at.is_some_and(|end| end <= Instant::now() + time));
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EngineStopped`].
    pub fn set_keep_alive(&self, keep_alive: Option<Duration>) -> Result<()> {
        self.send(Command::SetKeepAlive(keep_alive))
    }

    /// [`Engine::unload`] without waiting for the answer.
    pub(crate) fn begin_unload(&self) -> Result<Receiver<bool>> {
        let (answer, released) = mpsc::channel();
        self.send(Command::Unload(answer))?;
        Ok(released)
    }
}
