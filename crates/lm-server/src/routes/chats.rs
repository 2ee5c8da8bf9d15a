//! `/v1/chats`: the kept conversations, for the page.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use lm_api::{ApiError, Fields, RequestBody};
use lm_store::{Change, Error, Found, Owner, Store, Summary};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::JsonBody;
use super::path_name::PathName;
use super::responses::Parameters;
use crate::guards;
use crate::response::{ErrorResponse, json as respond};
use crate::state::{App, SharedApp};

type Answer = Result<Response, ErrorResponse>;

/// Body of a change.
pub(super) const CHANGE: RequestBody = RequestBody {
    name: "ChatChange",
    groups: &[ChatChange::json_schema],
    unsupported: &[],
    example: r#"{"create": true, "title": "Sky", "nodes": {"m1": {"id": "m1", "parent": null, "role": "user", "content": "Hello"}}}"#,
};

/// Parameters of the list.
pub(super) const LIST: &[&str] = &["search", "limit", "offset"];

/// Number of conversations of a list, by default and at most.
const PAGE: (usize, usize) = (200, 1000);

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "their types are checked here, their values by the store")]
struct ChatChange {
    /// Create the conversation if it does not exist; otherwise that is an error.
    create: Option<bool>,
    /// New title.
    title: Option<String>,
    /// Time of its creation, in ms since 1970; default now.
    created: Option<f64>,
    /// Time of the change, in ms since 1970; default now.
    updated: Option<f64>,
    /// New settings.
    settings: Option<Map<String, Value>>,
    /// Selected successors by the id of a message, in addition to those of other messages.
    selected: Option<HashMap<String, String>>,
    /// Ids of messages to remove with all that follow them.
    removed: Option<Vec<String>>,
    /// New and changed messages by id: `id`, `parent` (an id or null), `role` (`user`, `assistant` or
    /// `tool`), `content`, `media` (data URLs), and further fields.
    nodes: Option<Map<String, Value>>,
}

/// Owner of the conversations of a request: the holder of its key, or the user of this machine.
pub(crate) struct Kept(Owner);

impl FromRequestParts<SharedApp> for Kept {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, ErrorResponse> {
        guards::own_page(app, parts)?;
        Ok(Self(match guards::key_digest(app, &parts.headers) {
            Some(digest) => Owner::of_key(&digest),
            None => Owner::local(),
        }))
    }
}

/// Lists the conversations, the last changed first, or those that a search finds. A server that keeps none
/// says so.
pub(crate) async fn list(
    State(app): State<SharedApp>,
    Kept(owner): Kept,
    Query(parameters): Parameters,
) -> Answer {
    let Some(store) = app.config.store.clone() else {
        return Ok(respond(
            StatusCode::OK,
            &json!({"object": "list", "kept": false, "total": 0, "data": []}),
        ));
    };
    let text = |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let limit = number("limit", text("limit"), PAGE.0)?.min(PAGE.1);
    let offset = number("offset", text("offset"), 0)?;
    let search = text("search").map(str::to_owned);
    let list = app.prepare(move || {
        let total = store.count(&owner).map_err(refused)?;
        let data: Vec<Value> = match search {
            Some(query) => {
                let found = store.search(&owner, &query, limit).map_err(refused)?;
                found.into_iter().map(found_json).collect()
            }
            None => {
                let list = store.list(&owner, limit, offset).map_err(refused)?;
                list.iter().map(summary_json).collect()
            }
        };
        Ok(json!({"object": "list", "kept": true, "total": total, "data": data}))
    });
    Ok(respond(StatusCode::OK, &list.await?))
}

/// Shows a conversation with its messages.
pub(crate) async fn show(State(app): State<SharedApp>, owner: Kept, PathName(id): PathName) -> Answer {
    let shown = in_store(&app, owner, move |store, owner| {
        let found = store.get(&owner, &id).map_err(refused)?;
        found.map(|chat| chat.to_json()).ok_or_else(|| refused(Error::Unknown { name: id }))
    });
    Ok(respond(StatusCode::OK, &shown.await?))
}

/// Changes or creates a conversation.
pub(crate) async fn change(
    State(app): State<SharedApp>,
    owner: Kept,
    PathName(id): PathName,
    JsonBody(body): JsonBody,
) -> Answer {
    let Value::Object(values) = &body else {
        return Err(Fields::open(body, &CHANGE).expect_err("no object").into());
    };
    let _: ChatChange = Fields::open(Value::Object(without_nodes(values)), &CHANGE)?.into_group()?;
    let changed = in_store(&app, owner, move |store, owner| {
        let change = Change::from_json(body).map_err(refused)?;
        store.apply(&owner, &id, &change).map_err(refused)?;
        Ok(json!({"object": "chat.changed", "id": id}))
    });
    Ok(respond(StatusCode::OK, &changed.await?))
}

/// Fields of a change; of the messages, which may be large, their number alone.
fn without_nodes(values: &Map<String, Value>) -> Map<String, Value> {
    let shown = |(key, value): (&String, &Value)| match value {
        Value::Object(_) if key == "nodes" => (key.clone(), json!({})),
        value => (key.clone(), value.clone()),
    };
    values.iter().map(shown).collect()
}

/// Deletes a conversation.
pub(crate) async fn delete(State(app): State<SharedApp>, owner: Kept, PathName(id): PathName) -> Answer {
    let deleted =
        in_store(&app, owner, move |store, owner| match store.delete(&owner, &id).map_err(refused)? {
            true => Ok(json!({"object": "chat.deleted", "id": id, "deleted": true})),
            false => Err(refused(Error::Unknown { name: id })),
        });
    Ok(respond(StatusCode::OK, &deleted.await?))
}

/// Runs work with the store on its own thread.
async fn in_store<T: Send + 'static>(
    app: &App,
    Kept(owner): Kept,
    work: impl FnOnce(Arc<Store>, Owner) -> lm_api::Result<T> + Send + 'static,
) -> lm_api::Result<T> {
    let Some(store) = app.config.store.clone() else {
        let message = "this server keeps no conversations; it can be started without --no-store";
        return Err(ApiError::refused(404, "not_found_error", message).with_code("no_store"));
    };
    app.prepare(move || work(store, owner)).await
}

fn summary_json(summary: &Summary) -> Value {
    let Summary { id, title, created, updated, messages } = summary;
    json!({"id": id, "title": title, "created": created, "updated": updated, "messages": messages})
}

fn found_json(found: Found) -> Value {
    let mut json = summary_json(&found.summary);
    json["message"] = found.message.into();
    json["excerpt"] = found.excerpt.into();
    json
}

fn number(name: &str, text: Option<&str>, otherwise: usize) -> Result<usize, ApiError> {
    let Some(text) = text else { return Ok(otherwise) };
    let parsed = text.parse();
    parsed.map_err(|_| ApiError::invalid_param(name, format!("`{name}` is {text:?}, expected a number")))
}

/// Error of the store as that of a request.
fn refused(error: Error) -> ApiError {
    let message = error.to_string();
    match error {
        Error::Invalid { at, .. } | Error::TooLarge { at, .. } => {
            let field = at.split('.').next().unwrap_or_default().to_owned();
            ApiError::invalid_param(field, format!("`{at}`{}", message.strip_prefix(&at).unwrap_or(&message)))
        }
        Error::Unknown { .. } => {
            ApiError::refused(404, "not_found_error", message).with_code("chat_not_found")
        }
        Error::Full(_) => ApiError::server("the disk of the server is full").with_status(507),
        Error::Busy(_) => ApiError::server(message).with_status(503),
        error => {
            tracing::warn!(error = &error as &dyn std::error::Error, "store of conversations");
            ApiError::server(message)
        }
    }
}
