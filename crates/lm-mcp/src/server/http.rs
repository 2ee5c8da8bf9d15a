//! Streamable HTTP.

use super::handler::Handler;
use crate::{Error, Result};
use axum::Router;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Path of the server.
pub(super) const PATH: &str = "/mcp";
/// Hosts and origins of this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Address to serve on, with the path `/mcp`.
///
/// Requests for other hosts than those that are served are refused, and so are requests from web pages of
/// other origins than this machine: a page in a browser cannot call the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpListen {
    /// The address; port 0 picks a free one. Default 127.0.0.1:0.
    pub addr: SocketAddr,
    /// Hosts that clients use to reach this server, in addition to those of this machine, such as
    /// `tools.example.com`. An address that other machines can reach needs one at least. Default: none.
    pub allowed_hosts: Vec<String>,
}

impl Default for HttpListen {
    fn default() -> Self {
        Self { addr: (Ipv4Addr::LOCALHOST, 0).into(), allowed_hosts: Vec::new() }
    }
}

impl HttpListen {
    /// Checks that a public address has a list of hosts.
    pub(super) fn check(&self) -> Result<()> {
        match self.addr.ip().is_loopback() || !self.allowed_hosts.is_empty() {
            true => Ok(()),
            false => Err(Error::OpenAddress { addr: self.addr }),
        }
    }

    pub(super) fn router(&self, handler: Handler) -> Router {
        let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into_iter();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts.chain(self.allowed_hosts.iter().cloned()))
            .with_allowed_origins(LOOPBACK.map(|host| format!("http://{host}:*")))
            .enforce_origin_validation();
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        Router::new().route_service(PATH, service)
    }
}
