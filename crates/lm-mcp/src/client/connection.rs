//! A connection to a server: the messages from the server, and the reason why it ended.

use super::elicitation::Questions;
use super::http::{self, Access};
use crate::Error;
use crate::http_client;
use crate::names::shown;
use rmcp::model::{
    ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult, Implementation, PingRequest,
    ProgressNotificationParam, ProtocolVersion, ServerPeerInfo,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, ErrorData, Peer, RoleClient, ServiceError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Time limit for the reason of the end of a connection.
const END_DELAY: Duration = Duration::from_millis(500);

/// End of a server's program: its exit status.
#[derive(Clone, Debug)]
pub(super) struct Ended(pub String);

/// The task of a connection.
pub(super) type Service = RunningService<RoleClient, Handler>;

/// The other side of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Other {
    /// `None` for a server that this process did not start.
    pub program: Option<Program>,
    /// `None` for a server that is not reached over HTTP.
    pub access: Option<Access>,
}

/// Handle to a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub server: Arc<str>,
    pub peer: Peer<RoleClient>,
    pub other: Other,
}

/// The program of a connection.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Kills it.
    pub kill: Arc<Notify>,
    pub ended: watch::Receiver<Option<Ended>>,
}

pub(super) fn kill(program: Option<&Program>) {
    if let Some(program) = program {
        program.kill.notify_one();
    }
}

/// Waits briefly for the end of a program after the end of its output.
pub(super) async fn has_ended(program: Option<&Program>) -> Option<Ended> {
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
        self.other.program.is_some()
    }

    /// Kills the server's program.
    pub fn kill(&self) {
        kill(self.other.program.as_ref());
    }

    /// Waits briefly for the end of the server's program and of the connection.
    pub async fn ended(&self) {
        let closed = async {
            has_ended(self.other.program.as_ref()).await;
            while !self.peer.is_transport_closed() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(END_DELAY, closed).await;
    }

    /// Error of a request that the connection depends on.
    pub async fn error(&self, error: ServiceError) -> Error {
        let server = self.server.to_string();
        match (&error, &self.other.access) {
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
                if let Some(Ended(status)) = has_ended(self.other.program.as_ref()).await {
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
    matches!(error, ServiceError::TransportSend(error) if is_unreached(error))
}

/// The same of an error of the transport.
pub(super) fn is_unreached(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref() {
        Some(StreamableHttpError::Client::<reqwest::Error>(error)) => error.is_connect(),
        _ => error.error.is::<std::io::Error>(),
    }
}

/// Returns true if a server wants other credentials, HTTP 401.
pub(super) fn is_refused(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::AuthRequired(_)) => true,
        // Without the header `WWW-Authenticate`.
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

pub(super) fn unauthorized(server: String, Access { url, token_sent }: Access) -> Error {
    Error::Unauthorized { server, url, token_sent }
}

/// The cause of a failed transport. The cause of an HTTP request is not among the sources of rmcp's error.
pub(super) fn cause_of(error: &DynamicTransportError) -> String {
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
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
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

/// Receiver of a server's messages. It offers questions to the user, but no sampling and no roots.
#[derive(Debug)]
pub(super) struct Handler {
    pub server: Arc<str>,
    pub changed: Arc<Notify>,
    pub questions: Arc<Questions>,
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

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.questions.ask(question).await)
    }

    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("lm", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(self.questions.capabilities(), program)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
