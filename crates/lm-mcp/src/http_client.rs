//! HTTP client: rustls with ring and the system's certificates.

use crate::{Error, Result};
use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time limit of making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 4;

/// Builder of a client for an address.
pub(crate) fn client(url: &Url) -> Result<reqwest::ClientBuilder> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(url)?)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::custom(within_host))
        .user_agent(concat!("lm/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot reach this machine's own servers.
    Ok(if is_loopback(url) { client.no_proxy() } else { client })
}

fn tls(url: &Url) -> Result<rustls::ClientConfig> {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Error::Tls)?;
    // Without TLS no certificates are read: a machine may have none.
    Ok(match url.scheme() {
        "https" => builder.with_platform_verifier().map_err(Error::Tls)?.with_no_client_auth(),
        _ => builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
    })
}

/// Follows redirects within a host, as from `/mcp` to `/mcp/`: other hosts must not get the headers.
fn within_host(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let origin = |url: &Url| url.origin();
    match attempt.previous().first() {
        Some(first)
            if origin(first) == origin(attempt.url()) && attempt.previous().len() <= MAX_REDIRECTS =>
        {
            attempt.follow()
        }
        _ => attempt.stop(),
    }
}

/// Description of a failed request. The query of its address, which may have a key, is omitted.
pub(crate) fn failure(error: &reqwest::Error) -> String {
    let address = error.url().map_or_else(|| "the server".to_owned(), shown);
    if let Some(status) = error.status() {
        return format!("{address} answered {status}");
    }
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("connection to {address} refused: is the server running?")
        }
        _ => format!("the request to {address} failed: {cause}"),
    }
}

/// An address without its query, which may have a key, and without a password.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Returns true for an address of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_reached_without_proxy() {
        for (url, expected) in [
            ("http://localhost:80/mcp", true),
            ("http://127.0.0.1/", true),
            ("http://[::1]:8000/", true),
            ("http://localhost.example.com/", false),
            ("https://10.0.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).expect("an address")), expected, "{url}");
        }
    }
}
