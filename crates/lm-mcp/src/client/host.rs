//! Runtime of connections and of the programs that they have started.

use super::process;
use crate::Result;
use crate::runtime::AnyRuntime;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Runtime of connections. When it is dropped, the programs are ended.
#[derive(Debug)]
pub(super) struct Host {
    stop: watch::Sender<bool>,
    /// Disconnected when all programs have ended.
    programs: Mutex<Receiver<()>>,
    runtime: AnyRuntime,
}

/// Signals between the host and a program.
#[derive(Clone)]
pub(super) struct Signals {
    /// Changes when the program has to end.
    pub stop: watch::Receiver<bool>,
    /// Dropped when it has ended.
    _done: Sender<()>,
}

impl Host {
    /// Starts a runtime, or takes the caller's.
    pub fn start(runtime: Option<Handle>) -> Result<(Self, Signals)> {
        let runtime = runtime.map_or_else(AnyRuntime::start, |handle| Ok(AnyRuntime::of_caller(handle)))?;
        let (stop, stopped) = watch::channel(false);
        let (done, programs) = mpsc::channel();
        let host = Self { stop, programs: Mutex::new(programs), runtime };
        Ok((host, Signals { stop: stopped, _done: done }))
    }

    pub fn runtime(&self) -> &AnyRuntime {
        &self.runtime
    }
}

impl Drop for Host {
    /// Waits for the end of the programs, a second or two at most; on the caller's runtime they end in the
    /// background.
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if self.runtime.is_owned() {
            let programs = self.programs.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = programs.recv_timeout(2 * process::GRACE); // The channel carries no values: it is disconnected, or late.
        }
    }
}
