//! Connections: accepted up to a limit, and ended in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::config::ServerLimits;

/// Pause after a failed accept, for example without free file descriptors.
const RETRY: Duration = Duration::from_millis(50);

/// Connections that end together.
#[derive(Default)]
pub(crate) struct ConnectionGroup {
    graceful: GracefulShutdown,
    ending: watch::Sender<bool>,
}

impl ConnectionGroup {
    /// Ends the connections: idle ones and those without a complete request head at once, the others after
    /// their response.
    pub async fn shutdown(self) {
        self.ending.send_replace(true);
        self.graceful.shutdown().await;
    }
}

/// Limit of open connections.
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

    /// Accepts the next connection, and serves it in the background: until `group` ends it.
    pub async fn serve_next(&self, listener: &TcpListener, router: &Router, group: &ConnectionGroup) {
        let Ok(place) = self.places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => self.serve(stream, router.clone(), place, group),
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn serve(&self, stream: TcpStream, router: Router, place: OwnedSemaphorePermit, group: &ConnectionGroup) {
        // Small events are sent at once.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_time));
        // hyper closes idle connections, but not one whose first request is arriving.
        let heard = Arc::new(AtomicBool::new(false));
        let (heard_first, service) = (heard.clone(), TowerToHyperService::new(router));
        let service = service_fn(move |request| {
            heard_first.store(true, Ordering::Relaxed);
            service.call(request)
        });
        let stream = TokioIo::new(Box::pin(stream));
        let connection = group.graceful.watch(self.http.serve_connection(stream, service));
        let mut ending = group.ending.subscribe();
        tokio::spawn(async move {
            let _place = place;
            let unheard = async {
                // An error: the group has ended.
                let _ = ending.wait_for(|ending| *ending).await;
                if heard.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection has ended");
                },
                () = unheard => {}
            }
        });
    }
}
