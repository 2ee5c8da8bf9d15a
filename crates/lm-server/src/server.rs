//! The server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::router;
use crate::config::ServerConfig;
use crate::connections::{ConnectionGroup, Connections};
use crate::models::{Models, ServedModel};
use crate::start_error::{Error, Result};
use crate::state::{App, SharedApp};

/// Grace period in which cancelled requests send their errors.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A server that listens. It answers while [`run`](Self::run) is polled, on a tokio runtime.
///
/// ```
/// use lm_server::{ServedModel, Server, ServerConfig};
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// # let config = lm_conversation::ConversationConfig::from_engine(&engine);
/// # let runtime = tokio::runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// // In a program: `Engine::load(..)`, and `ConversationConfig::from_engine(&engine)`.
/// let listen = ServerConfig { addr: "127.0.0.1:0".parse()?, ..ServerConfig::default() };
/// let server = Server::bind(vec![ServedModel::new(engine, config)], listen).await?;
/// println!("listening on {}", server.url());
/// let shutdown = server.shutdown_handle();
/// let running = tokio::spawn(server.run());
/// shutdown.begin();
/// running.await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    app: SharedApp,
    shutdown: Arc<watch::Sender<bool>>,
}

/// Handle that ends a server; clones share it.
#[derive(Clone, Debug)]
pub struct ShutdownHandle(Arc<watch::Sender<bool>>);

impl ShutdownHandle {
    /// Starts the shutdown: `/ready` and new requests are answered with 503, and running requests have
    /// [`ServerLimits::shutdown_time`](crate::ServerLimits::shutdown_time) to end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens on the address of the configuration.
    ///
    /// # Errors
    /// When the address cannot be listened on, or is open to other machines without a key; without a model,
    /// or with two of the same name.
    pub async fn bind(models: Vec<ServedModel>, config: ServerConfig) -> Result<Self> {
        config.check()?;
        let models = Models::new(models)?;
        let failed = |source| Error::Listen { addr: config.addr, source };
        let listener = TcpListener::bind(config.addr).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let (shutdown, _) = watch::channel(false);
        Ok(Self { listener, addr, app: Arc::new(App::new(models, config)), shutdown: Arc::new(shutdown) })
    }

    /// Address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Address for clients of this machine, without a path.
    pub fn url(&self) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{addr}")
    }

    /// Returns a handle that ends the server.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        ShutdownHandle(self.shutdown.clone())
    }

    /// Answers requests until a shutdown, then until the running ones have ended. Meanwhile new ones are
    /// refused with 503.
    pub async fn run(self) {
        let Self { listener, app, shutdown, .. } = self;
        let connections = Connections::new(&app.config.limits);
        let router = router(&app);
        let mut shutdown = shutdown.subscribe();
        let accept = async |group: &ConnectionGroup| loop {
            connections.serve_next(&listener, &router, group).await;
        };
        let (early, late) = (ConnectionGroup::default(), ConnectionGroup::default());
        tokio::select! {
            () = accept(&early) => {}
            // An error: all handles and the server itself are gone, which is impossible while it runs.
            _ = shutdown.wait_for(|started| *started) => {}
        }
        app.begin_shutdown();
        tokio::select! {
            () = accept(&late) => {}
            () = end(early, &app) => {}
        }
    }

    /// [`run`](Self::run) that starts the shutdown when `signal` completes.
    pub async fn run_until(self, signal: impl Future<Output = ()>) {
        let shutdown = self.shutdown_handle();
        let signalled = async {
            signal.await;
            shutdown.begin();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.run() => {}
            () = signalled => {}
        }
    }
}

/// Ends all connections: their requests first have time, and are then cancelled.
async fn end(connections: ConnectionGroup, app: &App) {
    let ended = connections.shutdown();
    tokio::pin!(ended);
    if tokio::time::timeout(app.config.limits.shutdown_time, &mut ended).await.is_err() {
        app.cancel.cancel();
        if tokio::time::timeout(LAST_WORDS, ended).await.is_err() {
            tracing::warn!("connections were still open at the end of the shutdown");
        }
    }
}
