//! Streamed responses: server-sent events, or lines of JSON.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt};
use lm_api::{Frame, FrameStream, Framing, ResponseWriter, StreamError};
use serde_json::json;

use crate::response::ErrorResponse;
use crate::state::CancelOnDrop;

/// Time within which an error is answered with its status; a started stream can only send it as a frame.
const FIRST_FRAME: Duration = Duration::from_millis(500);

/// Sends the frames of a response; an error ends them. The request is cancelled when the response is dropped.
///
/// # Errors
/// When the first item is an error.
pub(crate) async fn respond<W: ResponseWriter>(
    mut frames: FrameStream<W>,
    cancel: CancelOnDrop,
    keep_alive: Duration,
) -> Result<Response, ErrorResponse> {
    let first = match tokio::time::timeout(FIRST_FRAME, frames.next()).await {
        Ok(Some(Err(failed))) => return Err(failed.error.into()),
        Ok(first) => first,
        Err(_) => None,
    };
    let frames = stream::iter(first).chain(frames).map(move |frame| {
        let _held = &cancel;
        frame.unwrap_or_else(|failed: StreamError| failed.frame)
    });
    let mut response = match W::FRAMING {
        Framing::Lines => lines(frames),
        framing => {
            events(frames, framing).keep_alive(keep_alive_event(W::KEEP_ALIVE, keep_alive)).into_response()
        }
    };
    unbuffered(&mut response);
    Ok(response)
}

/// Sends events that are recorded; a silent stream is kept open by comments.
pub(crate) fn replay(events: impl Stream<Item = Event> + Send + 'static, keep_alive: Duration) -> Response {
    let events = Sse::new(events.map(Ok::<_, Infallible>));
    let mut response = events.keep_alive(keep_alive_event(None, keep_alive)).into_response();
    unbuffered(&mut response);
    response
}

/// nginx then sends events at once instead of buffering them.
fn unbuffered(response: &mut Response) {
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
}

fn events(
    frames: impl Stream<Item = Frame> + Send + 'static,
    framing: Framing,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send + 'static> {
    let done = (framing == Framing::EventsUntilDone).then(|| Event::default().data("[DONE]"));
    Sse::new(frames.map(event).chain(stream::iter(done)).map(Ok))
}

/// Keep-alive of a silent stream, as while its prompt is run: an event of this name, or a comment.
fn keep_alive_event(name: Option<&'static str>, interval: Duration) -> KeepAlive {
    let keep_alive = KeepAlive::new().interval(interval);
    match name {
        Some(name) => keep_alive.event(event(Frame::named(name, json!({"type": name})))),
        None => keep_alive.text("ping"),
    }
}

fn lines(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let lines = frames.map(|frame| Ok::<_, Infallible>(format!("{}\n", frame.data)));
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    ([kind], Body::from_stream(lines)).into_response()
}

/// A frame as an event.
pub(crate) fn event(frame: Frame) -> Event {
    let event = frame.event.map_or_else(Event::default, |name| Event::default().event(name));
    event.data(frame.data.to_string())
}
