//! Connections: accepted up to a number, and ended in order.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

use crate::config::ServerLimits;

/// Pause after a connection that could not be accepted, as without free file descriptors.
const RETRY: Duration = Duration::from_millis(50);

/// Connections that can be open at the same time.
pub(crate) struct Connections {
    http: http1::Builder,
    places: Arc<Semaphore>,
    write_time: Duration,
}

impl Connections {
    pub fn new(limits: &ServerLimits) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.header_time);
        let places = Arc::new(Semaphore::new(limits.connections));
        Self { http, places, write_time: limits.write_time }
    }

    /// Accepts the next connection, and serves it in the background: until `graceful` ends it.
    pub async fn serve_next(&self, listener: &TcpListener, router: &Router, graceful: &GracefulShutdown) {
        let Ok(place) = self.places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => self.serve(stream, router.clone(), place, graceful),
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        router: Router,
        place: OwnedSemaphorePermit,
        graceful: &GracefulShutdown,
    ) {
        // Small events are sent at once.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_time));
        let (stream, service) = (TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
        let connection = graceful.watch(self.http.serve_connection(stream, service));
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection has ended");
            }
        });
    }
}
