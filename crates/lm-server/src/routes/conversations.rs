//! `/v1/conversations`.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{Conversations, item_page};

use super::body::JsonBody;
use super::path_name::{PathName, PathNames};
use super::responses::Parameters;
use crate::response::{self, ErrorResponse};
use crate::state::{App, SharedApp};

type Answer = Result<Response, ErrorResponse>;

/// Creates a conversation.
pub(crate) async fn create(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Answer {
    answer(conversations(&app).create(body))
}

/// Shows a conversation.
pub(crate) async fn show(State(app): State<SharedApp>, PathName(id): PathName) -> Answer {
    answer(conversations(&app).show(&id))
}

/// Replaces the metadata of a conversation.
pub(crate) async fn update(
    State(app): State<SharedApp>,
    PathName(id): PathName,
    JsonBody(body): JsonBody,
) -> Answer {
    answer(conversations(&app).update(&id, body))
}

/// Deletes a conversation.
pub(crate) async fn delete(State(app): State<SharedApp>, PathName(id): PathName) -> Answer {
    answer(conversations(&app).delete(&id))
}

/// Lists the items of a conversation.
pub(crate) async fn items(
    State(app): State<SharedApp>,
    PathName(id): PathName,
    Query(parameters): Parameters,
) -> Answer {
    answer(conversations(&app).items(&id).and_then(|items| item_page(items, &parameters)))
}

/// Adds items to a conversation.
pub(crate) async fn add(
    State(app): State<SharedApp>,
    PathName(id): PathName,
    JsonBody(body): JsonBody,
) -> Answer {
    let in_order =
        [("order", "asc"), ("limit", "100")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    answer(conversations(&app).add(&id, body).and_then(|items| item_page(items, &in_order)))
}

/// Shows an item of a conversation.
pub(crate) async fn item(State(app): State<SharedApp>, PathNames(id, item): PathNames) -> Answer {
    answer(conversations(&app).item(&id, &item))
}

/// Removes an item of a conversation.
pub(crate) async fn remove(State(app): State<SharedApp>, PathNames(id, item): PathNames) -> Answer {
    answer(conversations(&app).remove(&id, &item))
}

fn conversations(app: &App) -> Conversations<'_> {
    Conversations { store: &app.responses, limits: &app.config.limits.request }
}

fn answer(object: lm_api::Result<serde_json::Value>) -> Answer {
    Ok(response::json(StatusCode::OK, &object?))
}
