//! Counts of responses.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::state::SharedApp;

/// Counts a response by the path of its route, which is `other` without one, and its status.
pub(crate) async fn count(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let path = path.as_ref().map_or("other", MatchedPath::as_str);
    app.metrics.requests.with_label_values(&[path, response.status().as_str()]).inc();
    response
}
