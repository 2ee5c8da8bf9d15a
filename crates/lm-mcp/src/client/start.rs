//! The start of a connection: the program or the address, and the revision of the protocol.

use super::connection::{
    self, Connection, Ended, Handler, Other, Service, cause_of, chain, is_refused, unauthorized,
};
use super::elicitation::Questions;
use super::host::Signals;
use super::lines::Lines;
use super::paced::Paced;
use super::probe::{Probe, Rescue};
use super::process::{self, Tail};
use super::revision::{Revision, ask_for_changes, is_asked_for_changes, lifecycle};
use super::{McpLimits, http};
use crate::config::{CommandConfig, HttpConfig, Protocol, ServerTransport};
use crate::oauth::TokenStore;
use crate::{Error, Result};
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, ClientServiceExt};
use rmcp::transport::Transport;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A stream of bytes to a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Place of a server.
pub(super) enum Target {
    Config(ServerTransport),
    Stream(Box<dyn Stream>),
}

/// A running connection; it ends when it is dropped.
pub(super) struct Running {
    pub connection: Arc<Connection>,
    pub service: Service,
}

/// Settings of a server's connections.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub server: Arc<str>,
    pub limits: McpLimits,
    pub tokens: TokenStore,
    pub revision: Revision,
    pub questions: Arc<Questions>,
}

/// Connects to a server, within the time limit.
pub(super) async fn connect(
    settings: &Settings,
    target: Target,
    signals: Signals,
    changed: Arc<Notify>,
) -> Result<Running> {
    let until = Instant::now() + settings.limits.start_timeout;
    let start = Start { settings, changed: &changed, until };
    let result = match target {
        Target::Config(ServerTransport::Command(config)) => start.program(&config, &signals).await,
        Target::Config(ServerTransport::Http(config)) => {
            drop(signals); // No program holds up the end.
            start.address(&config).await
        }
        Target::Stream(stream) => start.stream(stream).await,
    };
    settings.revision.remember(result.as_ref().ok().map(|running| &running.connection.peer));
    result.map_err(|failure| failure.error)
}

/// A start that has not begun.
struct Start<'a> {
    settings: &'a Settings,
    changed: &'a Arc<Notify>,
    /// The end of the time limit.
    until: Instant,
}

/// A failed start.
struct Failure {
    error: Error,
    /// True if the server does not answer at all, or refuses the credentials: another revision of the
    /// protocol does not help.
    is_final: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, is_final: true }
    }
}

impl Start<'_> {
    /// Starts a program. One that has ended because it was asked for its revision is started again.
    async fn program(&self, config: &CommandConfig, signals: &Signals) -> Result<Running, Failure> {
        let protocol = self.settings.revision.first();
        match self.run(config, signals, protocol).await {
            Err(Failure { error: Error::Ended { .. }, .. }) if protocol == Protocol::Auto => {
                self.run(config, signals, Protocol::V2025_11_25).await
            }
            result => result,
        }
    }

    async fn run(
        &self,
        config: &CommandConfig,
        signals: &Signals,
        protocol: Protocol,
    ) -> Result<Running, Failure> {
        let Settings { server, limits, .. } = self.settings;
        let process = process::start(server, config, signals.clone())?;
        let lines = Lines::new(process.stdout, process.stdin, limits.max_message_bytes);
        let other = Other { program: Some(process.program), access: None };
        self.lines(lines, protocol, (process.stderr, other)).await
    }

    async fn stream(&self, stream: Box<dyn Stream>) -> Result<Running, Failure> {
        let (read, write) = tokio::io::split(stream);
        let lines = Lines::new(read, write, self.settings.limits.max_message_bytes);
        self.lines(lines, self.settings.revision.first(), (Tail::default(), Other::default())).await
    }

    /// Begins a connection over lines. A server that says too late that it has no handshake, and refuses it
    /// then, is asked again.
    async fn lines<T>(&self, lines: T, protocol: Protocol, side: (Tail, Other)) -> Result<Running, Failure>
    where
        T: Transport<RoleClient> + 'static,
    {
        let rescue = Rescue::new();
        let limit = (protocol == Protocol::Auto).then_some(self.settings.limits.probe_timeout);
        let mut served = self.serve(Probe::new(lines, limit, &rescue), protocol, self.until).await;
        if !matches!(served, Served::Running(_))
            && let Some(lines) = rescue.take()
        {
            served = self.serve(lines, Protocol::V2026_07_28, self.until).await;
        }
        self.finish(served, side).await
    }

    /// Connects to an address. If its revision cannot be found out, a new connection begins with the
    /// handshake: each request of HTTP has an answer, but perhaps no useful one. A server that was too slow
    /// and refuses the handshake is asked again.
    async fn address(&self, config: &HttpConfig) -> Result<Running, Failure> {
        let Settings { server, limits, tokens, .. } = self.settings;
        let (connector, access) = http::connector(server, config, tokens, limits.max_message_bytes).await?;
        let begin = async |protocol: Protocol, until: Instant| {
            let served = self.serve(connector.transport(), protocol, until).await;
            self.finish(served, (Tail::default(), Other { program: None, access: Some(access.clone()) }))
                .await
        };
        let protocol = self.settings.revision.first();
        if protocol != Protocol::Auto {
            return begin(protocol, self.until).await;
        }
        let until = self.until.min(Instant::now() + limits.probe_timeout);
        let is_slow = match begin(Protocol::V2026_07_28, until).await {
            Err(Failure { is_final: false, error }) => matches!(error, Error::StartTimeout { .. }),
            result => return result,
        };
        match begin(Protocol::V2025_11_25, self.until).await {
            Err(Failure { is_final: false, error: Error::Connect { .. } }) if is_slow => {
                begin(Protocol::V2026_07_28, self.until).await
            }
            result => result,
        }
    }

    /// Begins a connection, until a time.
    async fn serve<T>(&self, transport: T, protocol: Protocol, until: Instant) -> Served
    where
        T: Transport<RoleClient> + 'static,
    {
        let Settings { server, questions, .. } = self.settings.clone();
        let handler = Handler { server, changed: self.changed.clone(), questions };
        let serving = handler.serve_with_lifecycle(Paced::new(transport), lifecycle(protocol));
        // Boxed, since the compiler cannot see that rmcp's own type is `Send` in a spawned task.
        let serving: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(serving);
        match tokio::time::timeout_at(until, serving).await {
            Ok(Ok(service)) => Served::Running(service),
            Ok(Err(error)) => Served::Failed(Box::new(error)),
            Err(_) => Served::Late,
        }
    }

    /// The connection, or the failure of its start; the program is then killed.
    async fn finish(&self, served: Served, (stderr, other): (Tail, Other)) -> Result<Running, Failure> {
        let Settings { server, limits, .. } = self.settings;
        match served {
            Served::Running(service) => Ok(self.running(service, other)),
            Served::Failed(error) => Err(failure(server, &error, &other, &stderr).await),
            Served::Late => {
                connection::kill(other.program.as_ref());
                let (server, timeout) = (server.to_string(), limits.start_timeout);
                let error = Error::StartTimeout { server, timeout, output: stderr.message() };
                Err(Failure { error, is_final: false })
            }
        }
    }

    fn running(&self, service: Service, other: Other) -> Running {
        let (server, peer) = (self.settings.server.clone(), service.peer().clone());
        if is_asked_for_changes(&peer) {
            tokio::spawn(ask_for_changes(server.clone(), peer.clone(), self.changed.clone()));
        }
        Running { connection: Arc::new(Connection { server, peer, other }), service }
    }
}

/// Outcome of an attempt.
enum Served {
    Running(Service),
    Failed(Box<ClientInitializeError>),
    /// The time was over.
    Late,
}

/// The failure of a start. The program is killed.
async fn failure(server: &str, error: &ClientInitializeError, other: &Other, stderr: &Tail) -> Failure {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        error => error,
    };
    // A program ends after a refusal as well, since its input is closed: that is not the failure.
    let is_lost = matches!(
        error,
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
    );
    let program = other.program.as_ref().filter(|_| is_lost);
    let ended = connection::has_ended(program).await;
    connection::kill(other.program.as_ref());
    let (server, output) = (server.to_owned(), stderr.message());
    if let Some(Ended(status)) = ended {
        return Error::Ended { server, status, output }.into();
    }
    let (message, is_final) = match (error, &other.access) {
        (ClientInitializeError::TransportError { error, .. }, Some(access)) if is_refused(error) => {
            return unauthorized(server, access.clone()).into();
        }
        (ClientInitializeError::TransportError { error, .. }, _) => {
            (cause_of(error), connection::is_unreached(error))
        }
        (other, _) => (chain(other), false),
    };
    Failure { error: Error::Connect { server, message, output }, is_final }
}
