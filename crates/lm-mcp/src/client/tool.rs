//! A tool of a server as a [`Tool`](lm_tools::Tool).

use super::answer::{self, Answer};
use super::connection::is_unsent;
use super::content;
use super::link::Link;
use crate::names::shown;
use lm_tools::{
    CallContext, Map, Tool, ToolAnnotations, ToolError, ToolErrorKind, ToolOutput, ToolSpec, Value,
};
use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, ErrorCode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A tool of a server. Calls run on the runtime of the connections; a thread may wait for them, or any
/// runtime.
///
/// A call starts a program again that has ended before it, or connects again to an address, three times a
/// minute at most. It fails with a message for the model if the server ends, refuses it, or needs longer than
/// [`McpLimits::call_timeout`](crate::McpLimits::call_timeout). If it is cancelled or late, the server is
/// notified. A program that is late and does not answer a `ping` either is killed.
#[derive(Clone)]
pub struct McpTool {
    pub(super) link: Arc<Link>,
    pub(super) runtime: Handle,
    /// Name at the server.
    pub(super) remote_name: String,
    pub(super) spec: ToolSpec,
    pub(super) annotations: ToolAnnotations,
    pub(super) output_schema: Option<Value>,
    pub(super) timeout: Option<Duration>,
}

impl McpTool {
    /// Name of the tool as the model reads it.
    pub fn name(&self) -> &str {
        self.spec.name()
    }

    /// Name of the tool at the server.
    pub fn remote_name(&self) -> &str {
        &self.remote_name
    }

    /// Name of the server.
    pub fn server(&self) -> &str {
        &self.link.server
    }

    /// Name at the server, in messages.
    pub(super) fn shown_name(&self) -> String {
        shown(&self.remote_name)
    }
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTool")
            .field("name", &self.name())
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&self, arguments: Map<String, Value>, context: &CallContext) -> ToolOutput {
        let params = CallToolRequestParams::new(self.remote_name.clone()).with_arguments(arguments);
        let call = call(self.link.clone(), params, self.timeout, context.clone());
        let mut task = Task(self.runtime.spawn(call));
        ToolOutput::pending(async move {
            let ended = |_| Err(ToolError::failed("the connection to the MCP server was closed"));
            (&mut task.0).await.unwrap_or_else(ended)
        })
    }

    fn is_async(&self) -> bool {
        true
    }

    fn annotations(&self) -> ToolAnnotations {
        self.annotations.clone()
    }

    fn output_schema(&self) -> Option<Value> {
        self.output_schema.clone()
    }
}

/// A task that ends when it is dropped.
struct Task(JoinHandle<Result<Value, ToolError>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Calls the tool. A call that is dropped before its result, cancelled or late, is cancelled at the server,
/// too.
async fn call(
    link: Arc<Link>,
    params: CallToolRequestParams,
    timeout: Option<Duration>,
    context: CallContext,
) -> Result<Value, ToolError> {
    let server = &link.server;
    let questions = &link.settings.questions;
    let _call = questions.call();
    link.checked().await; // It is bounded, and does not count as the call's time.
    tokio::select! {
        result = request(&link, params) => result,
        () = context.cancelled() => {
            let message = format!("the call of MCP server `{server}` was cancelled; it may have taken effect");
            Err(ToolError::new(ToolErrorKind::Cancelled, message))
        }
        limit = questions.late(timeout) => {
            link.check();
            let limit = limit.as_secs_f32();
            let message = format!("MCP server `{server}`: no result after {limit} s; it may still take effect");
            Err(ToolError::new(ToolErrorKind::TimedOut, message))
        }
    }
}

/// Sends the call. One that could not be sent, since a program has just ended or an address was not reached,
/// is sent once more after a restart or over a new connection.
async fn request(link: &Arc<Link>, params: CallToolRequestParams) -> Result<Value, ToolError> {
    let unavailable = |message| ToolError::new(ToolErrorKind::Unavailable, message);
    let questions = &*link.settings.questions;
    let mut connection = link.usable().await.map_err(unavailable)?;
    let mut response = answer::call(&connection.peer, params.clone(), questions).await;
    if response.as_ref().is_err_and(is_unsent)
        && let Some(next) = link.after(&connection).await
    {
        connection = next.map_err(unavailable)?;
        response = answer::call(&connection.peer, params, questions).await;
    }
    match response {
        Ok(Answer::Result(result)) => content::result(result),
        Ok(Answer::AsksForMore) => Err(ToolError::failed(format_args!(
            "MCP server `{}` asks for more than the arguments, which this program does not support",
            link.server
        ))),
        Err(error) => {
            let kind = kind(&error);
            Err(ToolError::new(kind, connection.failure(error).await))
        }
    }
}

/// Kind of the failure of a request.
fn kind(error: &ServiceError) -> ToolErrorKind {
    match error {
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => ToolErrorKind::Unavailable,
        ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => {
            ToolErrorKind::InvalidArguments
        }
        _ => ToolErrorKind::Failed,
    }
}
