//! Host names.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::http::header::HOST;
use axum::http::uri::Authority;
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
    let Some(authority) = authority(&request) else {
        let message = "the header `Host` is missing or invalid";
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

/// Authority that a request is for: of its address if that has one, or else the header `Host`.
pub(super) fn authority(request: &Request) -> Option<Authority> {
    let of_uri = Uri::authority(request.uri()).cloned();
    of_uri.or_else(|| request.headers().get(HOST)?.to_str().ok()?.parse().ok())
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
