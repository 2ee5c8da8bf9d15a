//! Servers as programs.

use std::io;

use tokio::runtime::Builder;

use crate::config::ServerConfig;
use crate::models::ServedModel;
use crate::server::Server;
use crate::start_error::{Error, Result};

/// Threads of the runtime: it moves bytes, and the engines have their own threads.
const THREADS: usize = 2;

/// Signal that ends a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Ctrl-C: SIGINT, which other handlers of the program receive, too.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Serves until Ctrl-C or SIGTERM, on its own runtime; it blocks. `listening` is called once, before the
/// first request, and `ending` at the beginning of the shutdown, which waits for the running requests.
///
/// # Errors
/// As [`Server::bind`]; when the runtime cannot be created or signals cannot be received.
pub fn run(
    models: Vec<ServedModel>,
    config: ServerConfig,
    listening: impl FnOnce(&Server),
    ending: impl FnOnce(EndSignal),
) -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    runtime.map_err(Error::Runtime)?.block_on(async {
        let ended = end_of_program().map_err(Error::Runtime)?;
        let server = Server::bind(models, config).await?;
        listening(&server);
        let ended = async {
            ending(ended.await);
        };
        server.run_until(ended).await;
        Ok(())
    })
}

/// Future of the first SIGTERM or SIGINT from now on.
#[cfg(unix)]
fn end_of_program() -> io::Result<impl Future<Output = EndSignal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => EndSignal::Terminate,
            _ = interrupt.recv() => EndSignal::Interrupt,
        }
    })
}

/// Future of the first Ctrl-C from now on.
#[cfg(not(unix))]
fn end_of_program() -> io::Result<impl Future<Output = EndSignal>> {
    Ok(async {
        // Without a handler the program cannot be stopped by signals.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        EndSignal::Interrupt
    })
}
