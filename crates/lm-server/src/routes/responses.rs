//! `/v1/responses`.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::StreamExt as _;
use lm_api::{
    ApiError, CompactionRequest, CompactionWriter, Frame, ResponsesRequest, ResponsesWriter, Running,
    StoredResponse, StreamError, item_page,
};
use serde_json::{Value, json};

use super::body::JsonBody;
use super::chat::{self, Started};
use super::path_name::PathName;
use super::sse;
use crate::background::EventLog;
use crate::response::{self, ErrorResponse};
use crate::state::{App, SharedApp};

/// Parameters of a URL.
pub(super) type Parameters = Query<Vec<(String, String)>>;

/// Answers a request, as one object or as a stream of events.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let store = app.responses.clone();
    let request = ResponsesRequest::from_json_within(body, &store, &app.config.limits.request)?;
    let chat = request.chat.clone();
    if request.background {
        return in_background(app, request).await;
    }
    chat::respond(&app, chat, move |_, model| ResponsesWriter::new(request, model, &store)).await
}

/// Starts a request and answers with its state, or with its events, which are kept for further readers.
async fn in_background(app: SharedApp, request: ResponsesRequest) -> Result<Response, ErrorResponse> {
    let (id, chat, store) = (request.id.clone(), request.chat.clone(), app.responses.clone());
    let events = chat.stream.is_some().then(EventLog::new);
    let writer = move |_: &_, model: &str| ResponsesWriter::new(request, model, &store);
    let Started { running, cancel, headers } =
        chat::start(&app, chat, move |engines, chat| engines.chat.start(chat, writer)).await?;
    let too_large = |_| ApiError::invalid_param("input", "too large for a response that is stored");
    let stored = find(&app, &id).map_err(too_large)?;
    app.background.add(&id, running.canceller(), events.clone());
    let mut response = match &events {
        Some(events) => sse::replay(events.clone().follow(0), app.config.limits.keep_alive),
        None => response::json(StatusCode::OK, &stored.object),
    };
    response.headers_mut().extend(headers);
    tokio::spawn(async move {
        let ended = match &events {
            Some(events) => record(running, events).await,
            None => running.object().await.map(drop).map_err(|error| (error, None)),
        };
        drop(cancel);
        // A response that was cancelled has its state already.
        let is_cancelled = app.background.take(&id).is_none();
        if !is_cancelled && let Err((error, frame)) = ended {
            app.responses.end(&id, Some(&error));
            events.iter().zip(frame).for_each(|(events, frame)| push(events, frame));
        }
        if let Some(events) = events {
            if is_cancelled && let Ok(stored) = find(&app, &id) {
                push(&events, cancelled(&stored.object, events.next_number()));
            }
            events.end();
        }
    });
    Ok(response)
}

/// Records the events of a response to its end.
///
/// # Errors
/// The error that ends it, with its event.
async fn record(
    running: Running<ResponsesWriter>,
    events: &EventLog,
) -> Result<(), (ApiError, Option<Frame>)> {
    let mut frames = running.into_stream();
    while let Some(frame) = frames.next().await {
        push(events, frame.map_err(|StreamError { error, frame }| (error, Some(frame)))?);
    }
    Ok(())
}

/// The last event of a cancelled response, so that its readers do not take the end for a lost connection.
fn cancelled(response: &Value, number: usize) -> Frame {
    const NAME: &str = "response.incomplete";
    let data = json!({"type": NAME, "sequence_number": number, "response": response});
    Frame { event: Some(NAME), ..Frame::new(data) }
}

fn push(events: &EventLog, frame: Frame) {
    let bytes = frame.data.to_string().len();
    events.push(sse::event(frame), bytes);
}

/// Cancels a response that runs in the background; one that has ended stays as it is.
pub(crate) async fn cancel(
    State(app): State<SharedApp>,
    PathName(id): PathName,
) -> Result<Response, ErrorResponse> {
    let stored = find(&app, &id)?;
    if stored.object["background"] != true {
        let message = "only responses with `background` can be cancelled";
        return Err(ApiError::invalid_param("background", message).into());
    }
    if let Some(running) = app.background.take(&id) {
        running.cancel();
        app.responses.end(&id, None);
    }
    Ok(response::json(StatusCode::OK, &find(&app, &id)?.object))
}

/// Shows a stored response, or sends its events again and those to come.
pub(crate) async fn show(
    State(app): State<SharedApp>,
    PathName(id): PathName,
    Query(parameters): Parameters,
) -> Result<Response, ErrorResponse> {
    let stored = find(&app, &id)?;
    if !parameters.iter().any(|(name, value)| name == "stream" && value == "true") {
        return Ok(response::json(StatusCode::OK, &stored.object));
    }
    let events = app.background.events(&id).ok_or_else(|| {
        let message = "the events of the response are not kept: those of one that was created with `background` and \
                       `stream` are, until 64 others have ended after it";
        ApiError::invalid_param("stream", message)
    })?;
    let next = next_event(&parameters)?;
    if next < events.first() {
        let message = format!("the first event that is still kept has the number {}", events.first());
        return Err(ApiError::invalid_param("starting_after", message).into());
    }
    Ok(sse::replay(events.follow(next), app.config.limits.keep_alive))
}

/// Number of the event after `starting_after`; 0 if that is absent.
fn next_event(parameters: &[(String, String)]) -> lm_api::Result<usize> {
    const NAME: &str = "starting_after";
    let Some((_, after)) = parameters.iter().find(|(name, _)| name == NAME) else { return Ok(0) };
    let next = after.parse::<usize>().ok().and_then(|after| after.checked_add(1));
    next.ok_or_else(|| {
        let after: String = after.chars().take(100).collect();
        ApiError::invalid_param(NAME, format!("`{NAME}` is {after:?}, expected the number of an event"))
    })
}

/// Lists the items that a stored response answers.
pub(crate) async fn input_items(
    State(app): State<SharedApp>,
    PathName(id): PathName,
    Query(parameters): Parameters,
) -> Result<Response, ErrorResponse> {
    let stored = find(&app, &id)?;
    let page = item_page(stored.items[..stored.inputs].to_vec(), &parameters)?;
    Ok(response::json(StatusCode::OK, &page))
}

/// Compacts a conversation: its user's messages, and a summary of the rest that the model writes.
pub(crate) async fn compact(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = CompactionRequest::from_json_within(body, &app.responses, &app.config.limits.request)?;
    let chat = request.chat.clone();
    chat::respond(&app, chat, move |_, _| CompactionWriter::new(request)).await
}

/// Counts the tokens of a prompt.
pub(crate) async fn input_tokens(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let limits = &app.config.limits.request;
    let request = ResponsesRequest::from_json_to_count(body, &app.responses, limits)?.chat;
    let tokens = chat::prompt_tokens(&app, request).await?;
    Ok(response::json(StatusCode::OK, &json!({"object": "response.input_tokens", "input_tokens": tokens})))
}

/// `DELETE /v1/responses/{id}`: deletes a stored response; 404 if the id is unknown.
pub(crate) async fn delete(
    State(app): State<SharedApp>,
    PathName(id): PathName,
) -> Result<Response, ErrorResponse> {
    find(&app, &id)?;
    if let Some(running) = app.background.take(&id) {
        running.cancel();
    }
    app.background.forget(&id);
    app.responses.remove(&id);
    Ok(response::json(StatusCode::OK, &json!({"id": id, "object": "response", "deleted": true})))
}

fn find(app: &App, id: &str) -> lm_api::Result<Arc<StoredResponse>> {
    let stored = app.responses.get(id).filter(|stored| stored.object["object"] == "response");
    stored.ok_or_else(|| {
        let message = format!("there is no response {:?}", id.chars().take(100).collect::<String>());
        ApiError::refused(404, "invalid_request_error", message)
    })
}
