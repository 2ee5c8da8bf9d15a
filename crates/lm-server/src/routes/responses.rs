//! `/v1/responses`.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{ApiError, CancelHandle, ResponsesRequest, ResponsesWriter, StoredResponse, item_page};
use serde_json::json;

use super::body::JsonBody;
use super::chat::{self, Started};
use super::path_name::PathName;
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

/// Starts a request and answers with its state.
async fn in_background(app: SharedApp, request: ResponsesRequest) -> Result<Response, ErrorResponse> {
    let (id, chat, store) = (request.id.clone(), request.chat.clone(), app.responses.clone());
    let writer = move |_: &_, model: &str| ResponsesWriter::new(request, model, &store);
    let Started { running, cancel, headers } =
        chat::start(&app, chat, move |engines, chat| engines.chat.start(chat, writer)).await?;
    let too_large = |_| ApiError::invalid_param("input", "too large for a response that is stored");
    let stored = find(&app, &id).map_err(too_large)?;
    handles(&app).insert(id.clone(), running.canceller());
    tokio::spawn(async move {
        let ended = running.object().await;
        drop(cancel);
        // A response that was cancelled has its state already.
        if handles(&app).remove(&id).is_some()
            && let Err(error) = ended
        {
            app.responses.end(&id, Some(&error));
        }
    });
    let mut response = response::json(StatusCode::OK, &stored.object);
    response.headers_mut().extend(headers);
    Ok(response)
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
    let running = handles(&app).remove(&id);
    if let Some(running) = running {
        running.cancel();
        app.responses.end(&id, None);
    }
    Ok(response::json(StatusCode::OK, &find(&app, &id)?.object))
}

/// Shows a stored response.
pub(crate) async fn show(
    State(app): State<SharedApp>,
    PathName(id): PathName,
    Query(parameters): Parameters,
) -> Result<Response, ErrorResponse> {
    if parameters.iter().any(|(name, value)| name == "stream" && value == "true") {
        let message = "`stream` is true, expected false: stored responses are not streamed";
        return Err(ApiError::invalid_param("stream", message).into());
    }
    Ok(response::json(StatusCode::OK, &find(&app, &id)?.object))
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

/// Counts the tokens of a prompt.
pub(crate) async fn input_tokens(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = ResponsesRequest::from_json_within(body, &app.responses, &app.config.limits.request)?.chat;
    let tokens = chat::prompt_tokens(&app, request).await?;
    Ok(response::json(StatusCode::OK, &json!({"object": "response.input_tokens", "input_tokens": tokens})))
}

/// `DELETE /v1/responses/{id}`: deletes a stored response; 404 if the id is unknown.
pub(crate) async fn delete(
    State(app): State<SharedApp>,
    PathName(id): PathName,
) -> Result<Response, ErrorResponse> {
    find(&app, &id)?;
    if let Some(running) = handles(&app).remove(&id) {
        running.cancel();
    }
    app.responses.remove(&id);
    Ok(response::json(StatusCode::OK, &json!({"id": id, "object": "response", "deleted": true})))
}

/// Handles of the responses in the background.
fn handles(app: &App) -> MutexGuard<'_, HashMap<String, CancelHandle>> {
    app.background.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(app: &App, id: &str) -> lm_api::Result<Arc<StoredResponse>> {
    let stored = app.responses.get(id).filter(|stored| stored.object["object"] == "response");
    stored.ok_or_else(|| {
        let message = format!("there is no response {:?}", id.chars().take(100).collect::<String>());
        ApiError::refused(404, "invalid_request_error", message)
    })
}
