//! Host names.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::Response;
use lm_api::ApiError;

use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Refuses requests for host names that are not this server's (DNS rebinding).
pub(crate) async fn host(
    State(app): State<SharedApp>,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    let Some(authority) = authority(request.headers(), request.uri()) else {
        let message = "the header `Host` is missing, given twice or invalid";
        return Err(ApiError::refused(400, "invalid_request_error", message).into());
    };
    let name = authority.host();
    if is_local(name) || app.config.allowed_hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(next.run(request).await);
    }
    let message =
        format!("{name:?} is not a host name of this server; it can be started with --allow-host {name}");
    Err(ApiError::refused(403, "permission_error", message).into())
}

/// Authority of a request: from its address, or else the header `Host`. `None` for several headers: a proxy
/// before this server may have read another one of them.
pub(super) fn authority(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let mut hosts = headers.get_all(HOST).iter();
    let (first, further) = (hosts.next(), hosts.next());
    if further.is_some() {
        return None;
    }
    let of_uri = Uri::authority(uri).cloned();
    of_uri.or_else(|| first?.to_str().ok()?.parse().ok()).filter(has_valid_port)
}

/// Returns false if the text after the host is not a port; the port may be absent or empty.
fn has_valid_port(authority: &Authority) -> bool {
    let (_, host) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    let rest = &host[authority.host().len()..];
    matches!(rest, "" | ":") || authority.port_u16().is_some()
}

/// Returns true for `localhost` and IP addresses, which no name server resolves.
fn is_local(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

/// Returns true for `localhost` and loopback addresses.
pub(super) fn is_loopback(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|addr| addr.is_loopback())
}
