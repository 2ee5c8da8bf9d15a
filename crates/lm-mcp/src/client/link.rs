//! The connection to a server over its restarts, or over those of the connection.

use super::connection::{Connection, Service};
use super::host::Signals;
use super::start::{self, Running, Settings, Target};
use crate::config::ServerTransport;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Delays before the restarts of a program, or of the connection to an address, within [`PERIOD`], in order;
/// there are no more of them.
const DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];
/// Time after which a restart no longer counts.
const PERIOD: Duration = Duration::from_secs(60);
/// Time in which a server whose call is late has to answer a `ping`.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Link to a server: the current connection, and the means to start its program or to connect again.
pub(super) struct Link {
    pub server: Arc<str>,
    /// Notified when the server has changed its tools.
    pub changed: Arc<Notify>,
    pub settings: Settings,
    current: Mutex<Current>,
    /// Times of the last restarts, held by the one that runs.
    restarts: tokio::sync::Mutex<VecDeque<Instant>>,
    /// Held while a program whose call was late is checked.
    check: Arc<tokio::sync::Mutex<()>>,
}

struct Current {
    connection: Arc<Connection>,
    /// `None` after the end of the client.
    service: Option<Service>,
    /// The program or address; `None` for a stream, which cannot be opened again, and after the end of the
    /// client, which waits for the drop of all signals.
    place: Option<(ServerTransport, Signals)>,
}

impl Link {
    /// Connects to a server, within the time limit.
    pub async fn connect(settings: Settings, target: Target, signals: Signals) -> Result<Arc<Self>> {
        let changed = Arc::new(Notify::new());
        let place = match &target {
            Target::Config(place) => Some((place.clone(), signals.clone())),
            Target::Stream(_) => None,
        };
        let running = start::connect(&settings, target, signals, changed.clone()).await?;
        let Running { connection, service } = running;
        let current = Mutex::new(Current { connection, service: Some(service), place });
        let (restarts, check) = Default::default();
        Ok(Arc::new(Self { server: settings.server.clone(), changed, settings, current, restarts, check }))
    }

    /// The current connection, which may have ended.
    pub fn connection(&self) -> Arc<Connection> {
        self.current().connection.clone()
    }

    /// Returns true if the connection has not ended.
    pub fn is_connected(&self) -> bool {
        let current = self.current();
        let is_open = current.service.as_ref().is_some_and(|service| !service.is_closed());
        is_open && !current.connection.peer.is_transport_closed()
    }

    /// Returns true if the next request starts the program again after its end, or connects again.
    fn restarts(&self) -> bool {
        self.current().place.is_some()
    }

    /// The current connection. A program that has ended is started again first, and a lost connection to an
    /// address is made again. The server keeps its tools: they are listed again when it says that they have
    /// changed.
    ///
    /// # Errors
    /// The description of the end, for the model and the user: the server cannot be started or reached, has
    /// ended too often within a minute, or the client was closed.
    pub async fn usable(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        self.checked().await;
        if self.current().service.is_none() {
            return Err(self.closed());
        }
        if self.is_connected() || !self.restarts() {
            return Ok(self.connection());
        }
        let link = self.clone();
        // A task of its own: a caller that gives up does not leave half a connection.
        let restarting = tokio::spawn(async move { link.restart().await });
        restarting.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// The connection after one that did not take a request: that one's program has just ended, or its
    /// address was not reached. `None` if there is no other.
    ///
    /// # Errors
    /// As [`usable`](Self::usable).
    pub async fn after(
        self: &Arc<Self>,
        failed: &Arc<Connection>,
    ) -> Option<Result<Arc<Connection>, String>> {
        if !self.restarts() {
            return None;
        }
        if failed.is_of_program() {
            failed.ended().await;
        }
        self.end(failed);
        Some(self.usable().await)
    }

    /// Checks a program whose call was late, in the background: if it does not answer a `ping` either, it is
    /// killed, and the next call starts it again. That call waits for the check.
    pub fn check(self: &Arc<Self>) {
        let connection = self.connection();
        let Ok(checking) = self.check.clone().try_lock_owned() else { return };
        if !connection.is_of_program() {
            return;
        }
        let link = self.clone();
        tokio::spawn(async move {
            if !connection.answers(PING_TIMEOUT).await {
                tracing::warn!(server = &*link.server, "an MCP server does not answer: it is killed");
                link.end(&connection);
                connection.ended().await;
            }
            drop(checking);
        });
    }

    /// Waits for a [`check`](Self::check) that runs.
    pub async fn checked(&self) {
        drop(self.check.lock().await);
    }

    /// Ends a connection, and kills its program.
    fn end(&self, connection: &Arc<Connection>) {
        let current = self.current();
        if let Some(service) = &current.service
            && Arc::ptr_eq(&current.connection, connection)
        {
            connection.kill();
            service.cancellation_token().cancel();
        }
    }

    async fn restart(&self) -> Result<Arc<Connection>, String> {
        let mut restarts = self.restarts.lock().await;
        if self.is_connected() {
            return Ok(self.connection()); // Another call has started it.
        }
        let server = &self.server;
        let now = Instant::now();
        restarts.retain(|restart| now - *restart < PERIOD);
        let Some(delay) = DELAYS.get(restarts.len()) else {
            let next = restarts.front().map_or(PERIOD, |first| PERIOD.saturating_sub(now - *first));
            let (count, period, next) = (restarts.len(), PERIOD.as_secs(), next.as_secs() + 1);
            return Err(match self.connection().is_of_program() {
                true => format!(
                    "MCP server `{server}` has ended again after {count} restarts within {period} s; a call in {next} s \
                     starts it once more"
                ),
                false => format!(
                    "the connection to MCP server `{server}` was lost and made again, or tried, {count} times within \
                     {period} s; a call in {next} s tries it once more"
                ),
            });
        };
        tokio::time::sleep(*delay).await;
        restarts.push_back(Instant::now());
        tracing::warn!(
            server = &**server,
            restart = restarts.len(),
            "an MCP server has ended or cannot be reached: it is started or connected to again"
        );
        let (place, signals) = self.current().place.clone().ok_or_else(|| self.closed())?;
        let target = Target::Config(place);
        let running = start::connect(&self.settings, target, signals, self.changed.clone()).await;
        let running = running.map_err(|error| format!("{}; the call was not sent", described(&error)))?;
        let mut current = self.current();
        if current.service.is_none() {
            return Err(self.closed());
        }
        current.connection.kill(); // It may run on without its output.
        (current.connection, current.service) = (running.connection.clone(), Some(running.service));
        Ok(running.connection)
    }

    fn closed(&self) -> String {
        format!("the connection to MCP server `{}` was closed", self.server)
    }

    /// Ends the connection; there are no restarts after it.
    pub fn close(&self) {
        let mut current = self.current();
        let ended = (current.service.take(), current.place.take());
        drop(current);
        drop(ended); // Not under the lock.
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The message of an error and of its cause.
fn described(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Links that are closed when they are dropped: tools may live longer.
#[derive(Debug)]
pub(super) struct Links(pub Vec<Arc<Link>>);

impl Drop for Links {
    fn drop(&mut self) {
        self.0.iter().for_each(|link| link.close());
    }
}
