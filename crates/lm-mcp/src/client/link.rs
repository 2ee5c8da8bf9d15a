//! The connection to a server over its restarts.

use super::McpLimits;
use super::connection::{self, Connection, Running, Service, Target};
use super::host::Signals;
use crate::config::{CommandConfig, ServerTransport};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Delays before the restarts of a program within [`PERIOD`], in order; there are no more of them.
const DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];
/// Time after which a restart no longer counts.
const PERIOD: Duration = Duration::from_secs(60);

/// Link to a server: the current connection, and for a program the means to start it again.
pub(super) struct Link {
    pub server: Arc<str>,
    /// Notified when the server has changed its tools.
    pub changed: Arc<Notify>,
    limits: McpLimits,
    current: Mutex<Current>,
    /// Times of the last restarts, held by the one that runs.
    restarts: tokio::sync::Mutex<VecDeque<Instant>>,
}

struct Current {
    connection: Arc<Connection>,
    /// `None` after the end of the client.
    service: Option<Service>,
    /// The program, if this process has started it; `None` after the end of the client, which waits for the
    /// drop of all signals.
    program: Option<(CommandConfig, Signals)>,
}

impl Link {
    /// Connects to a server, within the time limit.
    pub async fn connect(
        server: Arc<str>,
        target: Target,
        limits: McpLimits,
        signals: Signals,
    ) -> Result<Arc<Self>> {
        let changed = Arc::new(Notify::new());
        let program = match &target {
            Target::Config(ServerTransport::Command(config)) => Some((config.clone(), signals.clone())),
            _ => None,
        };
        let running = connection::connect(server.clone(), target, limits, signals, changed.clone()).await?;
        let Running { connection, service } = running;
        let current = Mutex::new(Current { connection, service: Some(service), program });
        Ok(Arc::new(Self { server, changed, limits, current, restarts: tokio::sync::Mutex::default() }))
    }

    /// The current connection, which may have ended.
    pub fn connection(&self) -> Arc<Connection> {
        self.current().connection.clone()
    }

    /// Returns true if the connection has not ended.
    pub fn is_connected(&self) -> bool {
        let current = self.current();
        current.service.is_some() && !current.connection.peer.is_transport_closed()
    }

    /// Returns true if the next request starts the program again after its end.
    pub fn restarts(&self) -> bool {
        self.current().program.is_some()
    }

    /// The current connection; a program that has ended is started again first. It keeps its tools: they are
    /// listed again when the server says that they have changed.
    ///
    /// # Errors
    /// The description of the end, for the model and the user: the program cannot be started, has ended too
    /// often within a minute, or the client was closed.
    pub async fn usable(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
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
            return Err(format!(
                "MCP server `{server}` has ended again after {} restarts within {} s; a call in {} s starts it once more",
                restarts.len(),
                PERIOD.as_secs(),
                next.as_secs() + 1
            ));
        };
        tokio::time::sleep(*delay).await;
        restarts.push_back(Instant::now());
        tracing::warn!(
            server = &**server,
            restart = restarts.len(),
            "an MCP server has ended: it is started again"
        );
        let (config, signals) = self.current().program.clone().ok_or_else(|| self.closed())?;
        let target = Target::Config(ServerTransport::Command(config));
        let running =
            connection::connect(server.clone(), target, self.limits, signals, self.changed.clone()).await;
        let running = running.map_err(|error| format!("{}; its restart failed", described(&error)))?;
        let mut current = self.current();
        if current.service.is_none() {
            return Err(self.closed());
        }
        (current.connection, current.service) = (running.connection, Some(running.service));
        Ok(current.connection.clone())
    }

    fn closed(&self) -> String {
        format!("the connection to MCP server `{}` was closed", self.server)
    }

    /// Ends the connection; there are no restarts after it.
    pub fn close(&self) {
        let mut current = self.current();
        let ended = (current.service.take(), current.program.take());
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
