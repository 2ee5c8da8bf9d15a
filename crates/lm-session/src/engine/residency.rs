//! Model of an engine: in memory while in use, released on request or when idle, loaded again for the next
//! request.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use lm_model::{LoadOptions, LoadedModel, ModelFolder, ModelInfo};

use crate::cache::Capacity;
use crate::engine::activity::{ActivityGauge, EngineActivity};
use crate::engine::models::MemoryShare;
use crate::error::{Error, Result};
use crate::media::Encoders;
use crate::metrics::CacheStats;
use crate::panics::caught;
use crate::params::EngineSettings;
use crate::saved::SavedPages;
use crate::scheduler::{Command, Reply, Request, Scheduler, Totals};

/// Files for loading a model again.
#[derive(Clone, Debug)]
pub(crate) struct ModelSource {
    pub folder: ModelFolder,
    pub options: LoadOptions,
    /// Part of a budget that several models share.
    pub share: Option<MemoryShare>,
}

impl ModelSource {
    /// Returns the source for another load, without adapters: they stay in memory.
    pub fn without_adapters(mut self) -> Self {
        self.options.adapters.clear();
        self
    }
}

/// Scheduler of an engine while its model is in memory.
pub(crate) struct Residency {
    scheduler: Option<Scheduler>,
    /// Files of the model; without them it stays in memory.
    source: Option<ModelSource>,
    info: ModelInfo,
    settings: EngineSettings,
    commands: Sender<Command>,
    /// Counts of earlier schedulers.
    totals: Totals,
    /// True after [`Command::Shutdown`].
    stopped: bool,
    /// Callers of [`Command::WaitIdle`].
    idle_waiters: Vec<Sender<()>>,
}

impl Residency {
    /// Starts with the loaded model.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`]; [`Error::Model`] when the device cannot hold the KV pool.
    pub fn new(
        loaded: LoadedModel,
        source: Option<ModelSource>,
        settings: EngineSettings,
        commands: Sender<Command>,
    ) -> Result<Self> {
        let info = loaded.model.info().clone();
        let scheduler = None;
        let totals = Totals::default();
        let (stopped, idle_waiters) = (false, Vec::new());
        let mut residency =
            Self { scheduler, source, info, settings, commands, totals, stopped, idle_waiters };
        residency.scheduler = Some(residency.start(loaded)?);
        Ok(residency)
    }

    fn start(&self, loaded: LoadedModel) -> Result<Scheduler> {
        let encoders = Encoders::of(&loaded);
        let model = loaded.model;
        let capacity = Capacity::new(&self.settings, self.info.context_len, model.cache_bytes_per_page())?;
        Scheduler::new(
            model,
            encoders,
            capacity.num_pages,
            &self.settings,
            self.commands.clone(),
            self.totals,
        )
    }

    /// The scheduler, while the model is in memory.
    pub fn scheduler(&mut self) -> Option<&mut Scheduler> {
        self.scheduler.as_mut()
    }

    /// Publishes the current activity.
    pub fn publish(&self, activity: &ActivityGauge) {
        let (running_requests, cache) = self
            .scheduler
            .as_ref()
            .map_or_else(Default::default, |scheduler| (scheduler.running(), scheduler.cache_stats()));
        let CacheStats { total_pages, free_pages, .. } = cache;
        let keep_alive = self.keep_alive();
        let is_idle = self.scheduler.as_ref().is_some_and(Scheduler::is_idle);
        let unloads_at = keep_alive.filter(|_| is_idle).and_then(|time| Instant::now().checked_add(time));
        activity.publish(EngineActivity {
            waiting_requests: 0,
            running_requests,
            total_pages,
            free_pages,
            encoded_media: self.scheduler.as_ref().map_or(self.totals, Scheduler::totals).encoded,
            media_cache_bytes: self.scheduler.as_ref().map_or(0, Scheduler::media_cache_bytes),
            keep_alive,
            unloads_at,
        });
    }

    /// Time after which the idle model is released, if it can be loaded again.
    fn keep_alive(&self) -> Option<Duration> {
        self.settings.keep_alive.filter(|_| self.source.is_some())
    }

    /// Returns true after a shutdown, when the last request has ended.
    pub fn is_drained(&self) -> bool {
        self.stopped && self.scheduler.as_ref().is_none_or(Scheduler::is_drained)
    }

    /// Waits for a command while no request runs. `None` after an idle model was released; see
    /// [`EngineSettings::keep_alive`].
    pub fn wait_idle(&mut self, commands: &Receiver<Command>) -> Option<Command> {
        let keep_alive = self.keep_alive().filter(|_| self.scheduler.is_some());
        let Some(keep_alive) = keep_alive else { return commands.recv().ok() };
        match commands.recv_timeout(keep_alive) {
            Err(RecvTimeoutError::Timeout) => {
                self.unload();
                None
            }
            command => command.ok(),
        }
    }

    /// Answers the callers that wait for an idle engine, if it is.
    pub fn answer_waiters(&mut self) {
        if self.scheduler.as_ref().is_none_or(Scheduler::is_idle) {
            for waiter in self.idle_waiters.drain(..) {
                let _ = waiter.send(()); // The receiver may be dropped.
            }
        }
    }

    /// Handles a command. A request loads the model if it is not in memory.
    pub fn handle(&mut self, command: Command) {
        match (command, &mut self.scheduler) {
            (Command::Unload(answer), _) => {
                let _ = answer.send(self.unload()); // The receiver may be dropped.
            }
            (Command::WaitIdle(waiter), _) => self.idle_waiters.push(waiter),
            (Command::SetKeepAlive(keep_alive), _) => self.settings.keep_alive = keep_alive,
            (Command::Run(request), _) => self.run(request),
            (Command::Encoders(answer), _) => match self.load_if_needed() {
                Ok(scheduler) => scheduler.handle(Command::Encoders(answer)),
                Err(error) => drop(answer.send(Err(error))), // The receiver may be dropped.
            },
            (command, Some(scheduler)) => {
                self.stopped |= matches!(command, Command::Shutdown);
                scheduler.handle(command);
            }
            (Command::Shutdown, None) => self.stopped = true,
            // No session has cached tokens. The receivers may be dropped.
            (Command::Rewind { reached, .. }, None) => drop(reached.send(0)),
            (Command::SaveCache { saved, .. }, None) => drop(saved.send(SavedPages::NothingCached)),
            (Command::RestoreCache { restored, .. }, None) => drop(restored.send(Ok(false))),
            (Command::CacheStats(answer), None) => drop(answer.send(CacheStats::default())),
            (Command::DropAdapter { answer, .. }, None) => drop(answer.send(())),
            (
                Command::Fork { .. } | Command::Close { .. } | Command::Sampled(_) | Command::Encoded(_),
                None,
            ) => {}
        }
    }

    fn run(&mut self, request: Request) {
        match self.load_if_needed() {
            Ok(scheduler) => scheduler.handle(Command::Run(request)),
            Err(error) => request.reply(Reply::Failed { error, cached_tokens: 0 }),
        }
    }

    /// Returns the scheduler, after loading the model if it is not in memory.
    fn load_if_needed(&mut self) -> Result<&mut Scheduler> {
        if let Some(share) = self.share() {
            share.touch();
        }
        if self.scheduler.is_none() {
            if self.stopped {
                return Err(Error::EngineStopped);
            }
            self.scheduler = Some(caught(|| self.load())?);
        }
        self.scheduler.as_mut().ok_or(Error::EngineStopped)
    }

    /// Loads the model again.
    fn load(&self) -> Result<Scheduler> {
        let source = self.source.as_ref().ok_or(Error::EngineStopped)?;
        let load = || {
            let loaded = source.folder.load(&source.options, &mut |_| {})?;
            match *loaded.model.info() == self.info {
                true => self.start(loaded),
                false => Err(Error::ModelChanged { name: loaded.name }),
            }
        };
        source.share.as_ref().map_or_else(load, |share| share.load(load))
    }

    /// Releases weights and KV pool if no request runs or waits, and the model can be loaded again. Returns
    /// true if they were released.
    fn unload(&mut self) -> bool {
        let can_reload = self.source.is_some();
        if let Some(scheduler) = self.scheduler.take_if(|scheduler| can_reload && scheduler.is_idle()) {
            self.totals = scheduler.totals();
            drop(scheduler); // Before others count on its memory.
            self.release();
            tracing::info!("the model is unloaded");
        }
        self.scheduler.is_none()
    }

    fn release(&self) {
        if let Some(share) = self.share() {
            share.release();
        }
    }

    fn share(&self) -> Option<&MemoryShare> {
        self.source.as_ref()?.share.as_ref()
    }
}

impl Drop for Residency {
    fn drop(&mut self) {
        self.scheduler = None;
        self.release();
    }
}
