//! Serving, over standard input and output or over HTTP.

use super::handler::Handler;
use super::http::{self, HttpListen};
use crate::runtime::AnyRuntime;
use crate::{Error, Result};
use lm_tools::Toolset;
use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt};
use rmcp::transport::stdio_pipes;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Transport to serve on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Standard input and output of this program, which must not be used otherwise: one client, which started
    /// the program.
    Stdio,
    /// Streamable HTTP: any number of clients.
    Http(HttpListen),
}

/// Handle of a running MCP server. Dropping it stops the server.
#[derive(Debug)]
pub struct Server {
    addr: Option<SocketAddr>,
    task: Option<JoinHandle<Result<()>>>,
    runtime: AnyRuntime,
}

/// Serves a toolset to MCP clients, in the background: the list of the tools with their hints and schemas,
/// and calls within the limits of the toolset. A call that fails is a result with `isError`, and a client can
/// cancel its calls.
///
/// ```
/// use lm_mcp::{HttpListen, Listen, Mcp, ServerConfig, serve};
/// use lm_tools::{ToolCall, demo};
/// use serde_json::json;
///
/// let server = serve(demo(), Listen::Http(HttpListen::default()))?;
/// let url = server.url().expect("it listens");
///
/// let mcp = Mcp::builder().server(ServerConfig::http("demo", url)).connect()?;
/// let call = ToolCall::from_json(json!({"name": "demo_calculate", "arguments": {"expression": "6 * 7"}}))?;
/// assert_eq!(mcp.tools().call(&call).content.text(), "42");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the address cannot be listened on, or other machines can reach it and no hosts are allowed.
pub fn serve(tools: Toolset, listen: Listen) -> Result<Server> {
    let runtime = AnyRuntime::start()?;
    let (ended, running) = watch::channel(());
    let handler = Handler::new(tools, running);
    let (addr, task) = match listen {
        Listen::Stdio => (None, runtime.handle().spawn(stdio(handler, ended))),
        Listen::Http(listen) => {
            listen.check()?;
            let bound = TcpListener::bind(listen.addr);
            let bound =
                runtime.wait(bound).unwrap_or_else(|| Err(std::io::Error::other("the runtime has ended")));
            let listener = bound.map_err(|source| Error::Listen { addr: listen.addr, source })?;
            let addr = listener.local_addr().map_err(|source| Error::Listen { addr: listen.addr, source })?;
            let router = listen.router(handler);
            (
                Some(addr),
                runtime.handle().spawn(async move { axum::serve(listener, router).await.map_err(failed) }),
            )
        }
    };
    Ok(Server { addr, task: Some(task), runtime })
}

/// Serves until the client closes the connection, and until the calls that this cancels have ended.
async fn stdio(handler: Handler, ended: watch::Sender<()>) -> Result<()> {
    let running = handler.serve(stdio_pipes()).await.map_err(|error| match error {
        ServerInitializeError::ConnectionClosed(_) => Error::NoClient,
        other => failed(other),
    })?;
    let reason = running.waiting().await;
    ended.closed().await;
    match reason {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(failed(error)),
        Ok(_) => Ok(()),
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Serve { message: error.to_string() }
}

impl Server {
    /// Address it listens on; `None` for standard input and output.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.addr
    }

    /// Address for clients; `None` for standard input and output.
    pub fn url(&self) -> Option<String> {
        self.addr.map(|addr| format!("http://{addr}{}", http::PATH))
    }

    /// Waits for the end: on standard input and output for that of the client. Calls that run then have 5 s
    /// to end before they are cancelled, and after that
    /// [`CallLimits::cancel_grace`](lm_tools::CallLimits::cancel_grace).
    ///
    /// # Errors
    /// When the handshake or the transport fails.
    pub fn wait(mut self) -> Result<()> {
        let Some(task) = self.task.take() else { return Ok(()) };
        let ended = self.runtime.wait(task);
        ended.map_or_else(
            || Err(failed("its runtime has ended")),
            |ended| ended.unwrap_or_else(|error| Err(failed(error))),
        )
    }
}
