//! A connection to a server: the handshake, the messages from the server, and the reason why it ended.

use super::McpLimits;
use super::host::Signals;
use super::http::{self, Access};
use super::lines::Lines;
use super::paced::Paced;
use super::process::{self, Tail};
use crate::config::ServerTransport;
use crate::http_client;
use crate::names::shown;
use crate::oauth::TokenStore;
use crate::{Error, Result};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, PingRequest, ProgressNotificationParam,
    ProtocolVersion, ServerPeerInfo,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService, ServiceExt};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::transport::{DynamicTransportError, Transport};
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};

/// Time limit for the reason of the end of a connection.
const END_DELAY: Duration = Duration::from_millis(500);

/// A stream of bytes to a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Place of a server.
pub(super) enum Target {
    Config(ServerTransport),
    Stream(Box<dyn Stream>),
}

/// End of a server's program: its exit status.
#[derive(Clone, Debug)]
pub(super) struct Ended(pub String);

/// The task of a connection.
pub(super) type Service = RunningService<RoleClient, Handler>;

/// A running connection; it ends when it is dropped.
pub(super) struct Running {
    pub connection: Arc<Connection>,
    pub service: Service,
}

/// Handle to a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub server: Arc<str>,
    pub peer: Peer<RoleClient>,
    /// `None` for a server that this process did not start.
    program: Option<Program>,
    /// `None` for a server that is not reached over HTTP.
    access: Option<Access>,
}

/// The program of a connection.
#[derive(Debug)]
pub(super) struct Program {
    /// Kills it.
    pub kill: Arc<Notify>,
    pub ended: watch::Receiver<Option<Ended>>,
}

/// Settings of a server's connections.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub server: Arc<str>,
    pub limits: McpLimits,
    pub tokens: TokenStore,
}

/// The other side of a connection.
#[derive(Default)]
struct Side {
    stderr: Tail,
    program: Option<Program>,
    access: Option<Access>,
}

/// Connects to a server, within the time limit.
pub(super) async fn connect(
    settings: &Settings,
    target: Target,
    signals: Signals,
    changed: Arc<Notify>,
) -> Result<Running> {
    let Settings { server, limits, tokens } = settings;
    let handler = Handler { server: server.clone(), changed };
    match target {
        Target::Config(ServerTransport::Command(config)) => {
            let process = process::start(server, &config, signals)?;
            let transport = Lines::new(process.stdout, process.stdin, limits.max_message_bytes);
            let side = Side { stderr: process.stderr, program: Some(process.program), ..Side::default() };
            handshake(handler, transport, limits, side).await
        }
        Target::Config(ServerTransport::Http(config)) => {
            drop(signals); // No program holds up the end.
            let (transport, access) =
                http::transport(server, &config, tokens, limits.max_message_bytes).await?;
            handshake(handler, transport, limits, Side { access: Some(access), ..Side::default() }).await
        }
        Target::Stream(stream) => {
            let (read, write) = tokio::io::split(stream);
            let transport = Lines::new(read, write, limits.max_message_bytes);
            handshake(handler, transport, limits, Side::default()).await
        }
    }
}

async fn handshake<T>(handler: Handler, transport: T, limits: &McpLimits, side: Side) -> Result<Running>
where
    T: Transport<RoleClient> + 'static,
{
    let server = handler.server.clone();
    let Side { stderr, program, access } = side;
    // Boxed, since the compiler cannot see that rmcp's own type is `Send` in a spawned task.
    let serving: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(handler.serve(Paced::new(transport)));
    match tokio::time::timeout(limits.start_timeout, serving).await {
        Ok(Ok(service)) => {
            let connection = Connection { server, peer: service.peer().clone(), program, access };
            Ok(Running { connection: Arc::new(connection), service })
        }
        Ok(Err(error)) => {
            let ended = has_ended(program.as_ref()).await;
            kill(program.as_ref());
            let (server, output) = (server.to_string(), stderr.message());
            if let Some(Ended(status)) = ended {
                return Err(Error::Ended { server, status, output });
            }
            match (&error, access) {
                (ClientInitializeError::TransportError { error, .. }, Some(access)) if is_refused(error) => {
                    Err(unauthorized(server, access))
                }
                (ClientInitializeError::TransportError { error, .. }, _) => {
                    Err(Error::Connect { server, message: cause_of(error), output })
                }
                (other, _) => Err(Error::Connect { server, message: chain(other), output }),
            }
        }
        Err(_) => {
            kill(program.as_ref());
            let (server, timeout) = (server.to_string(), limits.start_timeout);
            Err(Error::StartTimeout { server, timeout, output: stderr.message() })
        }
    }
}

fn kill(program: Option<&Program>) {
    if let Some(program) = program {
        program.kill.notify_one();
    }
}

/// Waits briefly for the end of a program after the end of its output.
async fn has_ended(program: Option<&Program>) -> Option<Ended> {
    let mut ended = program?.ended.clone();
    let end = tokio::time::timeout(END_DELAY, ended.wait_for(Option::is_some)).await.ok()?;
    end.ok()?.clone()
}

impl Connection {
    /// Information about the server, from the handshake.
    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Returns true if the server answers within a time limit.
    pub async fn answers(&self, limit: Duration) -> bool {
        let ping = self.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
        // An error is an answer, too.
        matches!(tokio::time::timeout(limit, ping).await, Ok(Ok(_) | Err(ServiceError::McpError(_))))
    }

    /// Returns true if this process has started the server.
    pub fn is_of_program(&self) -> bool {
        self.program.is_some()
    }

    /// Kills the server's program.
    pub fn kill(&self) {
        kill(self.program.as_ref());
    }

    /// Waits briefly for the end of the server's program and of the connection.
    pub async fn ended(&self) {
        let closed = async {
            has_ended(self.program.as_ref()).await;
            while !self.peer.is_transport_closed() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(END_DELAY, closed).await;
    }

    /// Error of a request that the connection depends on.
    pub async fn error(&self, error: ServiceError) -> Error {
        let server = self.server.to_string();
        match (&error, &self.access) {
            (ServiceError::TransportSend(error), Some(access)) if is_refused(error) => {
                unauthorized(server, access.clone())
            }
            _ => Error::Connect { server, message: self.failure(error).await, output: String::new() },
        }
    }

    /// Description of the failure of a request, for the model and the user.
    pub async fn failure(&self, error: ServiceError) -> String {
        let server = &self.server;
        match error {
            ServiceError::McpError(error) => {
                format!("MCP server `{server}`: {} (error {})", error.message, error.code.0)
            }
            ServiceError::UnexpectedResponse => {
                format!("MCP server `{server}` sent something else than a result")
            }
            ServiceError::TransportSend(error) if is_refused(&error) => {
                format!(
                    "MCP server `{server}` needs a login of the user (HTTP 401); the call did not reach its tool"
                )
            }
            error @ (ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                if let Some(Ended(status)) = has_ended(self.program.as_ref()).await {
                    return format!(
                        "MCP server `{server}` has ended ({status}) during the call, which may have taken \
                         effect; the next call starts the server again"
                    );
                }
                let cause = match &error {
                    ServiceError::TransportSend(error) => cause_of(error),
                    other => chain(other),
                };
                format!("the connection to MCP server `{server}` is lost: {cause}")
            }
            other => format!("MCP server `{server}`: {}", chain(&other)),
        }
    }
}

/// Returns true if a server certainly did not get a request: its address was not reached, or a program's
/// input was closed.
pub(super) fn is_unsent(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    match error.error.downcast_ref() {
        Some(StreamableHttpError::Client::<reqwest::Error>(error)) => error.is_connect(),
        _ => error.error.is::<std::io::Error>(),
    }
}

/// Returns true if a server wants other credentials, HTTP 401.
fn is_refused(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::AuthRequired(_)) => true,
        // Without the header `WWW-Authenticate`.
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

fn unauthorized(server: String, Access { url, token_sent }: Access) -> Error {
    Error::Unauthorized { server, url, token_sent }
}

/// The cause of a failed transport. The cause of an HTTP request is not among the sources of rmcp's error.
fn cause_of(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref() {
        Some(StreamableHttpError::Client::<reqwest::Error>(error)) => http_client::failure(error),
        Some(StreamableHttpError::InsufficientScope(error)) => {
            let scope = error.required_scope.as_deref().unwrap_or("another");
            format!("the token does not permit this: it needs the scope `{}` (HTTP 403)", shown(scope))
        }
        _ => http::status(chain(&*error.error)),
    }
}

/// The message of an error and of its causes, without repetitions.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

/// Receiver of a server's messages. It offers no client features: no sampling, no elicitation, no roots.
#[derive(Debug)]
pub(super) struct Handler {
    server: Arc<str>,
    changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        tracing::info!(server = &*self.server, "the tools have changed");
        self.changed.notify_one();
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let ProgressNotificationParam { progress, total, message, .. } = progress;
        tracing::info!(server = &*self.server, progress, total, message, "progress");
    }

    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("lm", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), program)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
