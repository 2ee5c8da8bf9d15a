//! Streamed responses: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::Value;

use crate::response::ErrorResponse;
use crate::state::CancelOnDrop;

/// Time in which an error is answered with its status; a stream that has begun can only send it as an event.
const FIRST_EVENT: Duration = Duration::from_millis(500);

/// Sends chunks as events, then `[DONE]`; an error ends them. The request is cancelled when the response is dropped.
///
/// # Errors
/// When the first item is an error.
pub(crate) async fn respond<S>(
    mut chunks: S,
    cancel: CancelOnDrop,
    keep_alive: Duration,
) -> Result<Response, ErrorResponse>
where
    S: Stream<Item = lm_openai::Result<Value>> + Send + Unpin + 'static,
{
    let first = match tokio::time::timeout(FIRST_EVENT, chunks.next()).await {
        Ok(Some(Err(error))) => return Err(error.into()),
        Ok(first) => first,
        Err(_) => None,
    };
    let events = stream::iter(first).chain(chunks).map(|chunk| {
        let json = chunk.unwrap_or_else(|error| error.to_json());
        Event::default().data(json.to_string())
    });
    let done = stream::once(async { Event::default().data("[DONE]") });
    let events = events.chain(done).map(move |event| {
        let _held = &cancel;
        Ok::<_, Infallible>(event)
    });
    let keep_alive = KeepAlive::new().interval(keep_alive).text("ping");
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    // nginx sends events at once then, and does not collect them.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
