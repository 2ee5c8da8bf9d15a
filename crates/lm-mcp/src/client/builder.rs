//! Description and creation of connections.

use super::elicitation::{Ask, Elicitation, ElicitationAnswer, Questions};
use super::host::{Host, Signals};
use super::link::{Link, Links};
use super::listing::{self, Source};
use super::revision::Revision;
use super::shared::{self, Server, Shared};
use super::start::{Settings, Stream, Target};
use super::{Mcp, McpLimits};
use crate::config::{Protocol, ServerConfig};
use crate::oauth::TokenStore;
use crate::{Error, Result};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;

/// Builder of an [`Mcp`]; see [`Mcp::builder`].
#[derive(Default)]
pub struct McpBuilder {
    servers: Vec<Planned>,
    limits: McpLimits,
    /// Without tokens at first.
    tokens: Option<TokenStore>,
    ask: Option<Ask>,
    runtime: Option<Handle>,
}

/// A server to connect to.
struct Planned {
    name: String,
    prefix: String,
    target: Target,
    protocol: Protocol,
}

impl McpBuilder {
    /// Adds a server. A disabled one is skipped.
    #[must_use]
    pub fn server(mut self, server: ServerConfig) -> Self {
        let ServerConfig { name, prefix, transport, protocol, disabled } = server;
        if !disabled {
            self.servers.push(Planned { name, prefix, target: Target::Config(transport), protocol });
        }
        self
    }

    /// Adds servers, as [`server`](Self::server) does.
    #[must_use]
    pub fn servers(self, servers: impl IntoIterator<Item = ServerConfig>) -> Self {
        servers.into_iter().fold(self, Self::server)
    }

    /// Adds a server at the other end of a stream of bytes, such as a socket: a message of JSON is a line.
    #[must_use]
    pub fn stream(
        mut self,
        name: impl Into<String>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let name = name.into();
        let stream: Box<dyn Stream> = Box::new(stream);
        let (target, protocol) = (Target::Stream(stream), Protocol::Auto);
        self.servers.push(Planned { prefix: name.clone(), name, target, protocol });
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: McpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sends servers over HTTP the tokens of [`Login`](crate::Login)s at them, and refreshes expired ones.
    /// Default: no tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: &TokenStore) -> Self {
        self.tokens = Some(tokens.clone());
        self
    }

    /// Answers questions of servers to the user during calls. Default: servers are told that there is nobody
    /// to answer, and calls that ask nevertheless fail.
    ///
    /// The handler runs on the runtime of the connections, for several questions at the same time; for one
    /// that blocks there is [`elicitation_blocking`](Self::elicitation_blocking). The time that an answer
    /// takes does not count as time of the call ([`McpLimits::call_timeout`]). Questions outside of calls are
    /// declined.
    #[must_use]
    pub fn elicitation<F>(mut self, handler: impl Fn(Elicitation) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ElicitationAnswer> + Send + 'static,
    {
        self.ask = Some(Arc::new(move |question| Box::pin(handler(question))));
        self
    }

    /// [`elicitation`](Self::elicitation) with a handler that may wait, such as for a line from a terminal:
    /// it runs on a thread of its own.
    #[must_use]
    pub fn elicitation_blocking(
        self,
        handler: impl Fn(Elicitation) -> ElicitationAnswer + Send + Sync + 'static,
    ) -> Self {
        let handler = Arc::new(handler);
        self.elicitation(move |question| {
            let handler = handler.clone();
            let answer = tokio::task::spawn_blocking(move || handler(question));
            async move { answer.await.unwrap_or(ElicitationAnswer::Cancel) }
        })
    }

    /// Runs the connections on the caller's tokio runtime, with timers and I/O. Without one there is a
    /// runtime with one thread.
    #[must_use]
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Starts and connects to all servers at the same time, and waits until their tools are listed.
    ///
    /// On a tokio runtime use [`connect_async`](Self::connect_async): this blocks the thread.
    ///
    /// # Errors
    /// When a server cannot be started or reached, is not ready in time or does not list its tools; no server
    /// is connected then. Tools of two servers with the same name are an error, too. Other unusable tools are
    /// [`Mcp::problems`], such as the second one of a server with a name.
    pub fn connect(self) -> Result<Mcp> {
        let (host, connecting) = self.start()?;
        let connected = host.runtime().wait(connecting).unwrap_or_else(|| Err(runtime_ended()))?;
        Ok(connected.on(host))
    }

    /// [`connect`](Self::connect) that does not block.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_async(self) -> Result<Mcp> {
        let (host, connecting) = self.start()?;
        let connecting = host.runtime().handle().spawn(connecting);
        let connected = connecting.await.unwrap_or_else(|_| Err(runtime_ended()))?;
        Ok(connected.on(host))
    }

    fn start(self) -> Result<(Host, impl Future<Output = Result<Connected>> + Send + 'static)> {
        let mut names = HashSet::new();
        if let Some(twice) = self.servers.iter().find(|server| !names.insert(server.name.clone())) {
            return Err(Error::DuplicateServer { name: twice.name.clone() });
        }
        let (host, signals) = Host::start(self.runtime)?;
        let tokens = self.tokens.unwrap_or_else(TokenStore::in_memory);
        let common = Common { limits: self.limits, tokens, ask: self.ask };
        Ok((host, connect_all(self.servers, common, signals)))
    }
}

impl fmt::Debug for McpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.servers.iter().map(|server| &server.name).collect();
        f.debug_struct("McpBuilder")
            .field("servers", &names)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Settings of all servers.
struct Common {
    limits: McpLimits,
    tokens: TokenStore,
    ask: Option<Ask>,
}

impl Common {
    fn settings(&self, server: Arc<str>, protocol: Protocol) -> Settings {
        let Self { limits, tokens, ask } = self;
        let questions = Arc::new(Questions::new(server.clone(), ask.clone(), *limits));
        let revision = Revision::new(protocol);
        Settings { server, limits: *limits, tokens: tokens.clone(), revision, questions }
    }
}

/// Connections without their runtime.
struct Connected {
    shared: Arc<Shared>,
    links: Links,
}

impl Connected {
    fn on(self, host: Host) -> Mcp {
        Mcp { shared: self.shared, _links: self.links, host }
    }
}

/// Connects to all servers, on the current runtime.
async fn connect_all(planned: Vec<Planned>, common: Common, signals: Signals) -> Result<Connected> {
    let connect = |planned: Planned| {
        let Planned { name, prefix, target, protocol } = planned;
        let settings = common.settings(name.into(), protocol);
        tokio::spawn(connect_one(settings, prefix, target, signals.clone()))
    };
    let tasks: Vec<_> = planned.into_iter().map(connect).collect();
    let (mut servers, mut links) = (Vec::new(), Links(Vec::new()));
    for task in tasks {
        let server = task.await.unwrap_or_else(|_| Err(runtime_ended()))?;
        links.0.push(server.source.link.clone());
        servers.push(server);
    }
    let sources: Vec<_> = servers.iter().map(|server: &Server| server.source.clone()).collect();
    let shared = Arc::new(Shared::new(servers, &Handle::current())?);
    for server in sources.into_iter().enumerate() {
        tokio::spawn(shared::refresh(Arc::downgrade(&shared), server, signals.stop.clone()));
    }
    Ok(Connected { shared, links })
}

async fn connect_one(settings: Settings, prefix: String, target: Target, signals: Signals) -> Result<Server> {
    let limits = settings.limits;
    let link = Link::connect(settings, target, signals).await?;
    let source = Source { link, prefix, limits, runtime: Handle::current() };
    let listing = listing::list(source.clone()).await?;
    Ok(Server { source, listing })
}

fn runtime_ended() -> Error {
    Error::Runtime(std::io::Error::other("it ended while the connections were made"))
}
