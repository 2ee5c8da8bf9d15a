//! Origins of web pages.

use axum::extract::{Request, State};
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use lm_api::ApiError;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::host::{authority, is_loopback};
use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Refuses requests of web pages of foreign origins. A browser sends some requests without asking first, so
/// that CORS alone would not keep a page from using the server.
pub(crate) async fn origin(
    State(app): State<SharedApp>,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    match refusal(&app, &request) {
        None => Ok(next.run(request).await),
        Some(error) => Err(error.into()),
    }
}

/// Error of a request of a foreign page.
fn refusal(app: &SharedApp, request: &Request) -> Option<ApiError> {
    let origin = request.headers().get(ORIGIN).filter(|origin| !is_allowed(app, origin))?;
    if parsed(origin)
        .is_some_and(|page| authority(request.headers(), request.uri()).is_some_and(|own| page == own))
    {
        return None;
    }
    let message = format!(
        "web pages of {origin:?} may not use this server; it can be started with --allow-origin ORIGIN"
    );
    Some(ApiError::refused(403, "permission_error", message))
}

/// Refuses requests of other pages than that of this server, also of those of this machine: what it keeps of
/// its user is for its own page, and for pages of origins that it was given by name.
pub(crate) fn own_page(app: &SharedApp, parts: &Parts) -> Result<(), ApiError> {
    let Some(origin) = parts.headers.get(ORIGIN) else { return Ok(()) };
    let own = authority(&parts.headers, &parts.uri);
    let is_named = |allowed: &String| origin.as_bytes().eq_ignore_ascii_case(allowed.as_bytes());
    if parsed(origin).is_some_and(|page| Some(page) == own) || app.config.allowed_origins.iter().any(is_named)
    {
        return Ok(());
    }
    let message = format!("web pages of {origin:?} may not read the conversations of this server");
    Err(ApiError::refused(403, "permission_error", message))
}

/// Responses to CORS preflight requests.
pub(crate) fn cors(app: &SharedApp) -> CorsLayer {
    let app = app.clone();
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| is_allowed(&app, origin)))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
}

/// Returns true for origins of this machine, and those of the configuration.
fn is_allowed(app: &SharedApp, origin: &HeaderValue) -> bool {
    let is_listed =
        |allowed: &String| allowed == "*" || origin.as_bytes().eq_ignore_ascii_case(allowed.as_bytes());
    parsed(origin).is_some_and(|page| is_loopback(page.host()))
        || app.config.allowed_origins.iter().any(is_listed)
}

/// Authority of an origin of http or https.
fn parsed(origin: &HeaderValue) -> Option<Authority> {
    let uri: Uri = origin.to_str().ok()?.parse().ok()?;
    matches!(uri.scheme_str(), Some("http" | "https")).then(|| uri.authority().cloned())?
}
