//! Operations: routes in the form of OpenAPI.

use serde_json::{Map, Value, json};

use crate::guards::error_schema;
use crate::route::{Content, Route};

/// Statuses of errors of all routes: foreign hosts and origins, and internal errors.
const ANY: &[u16] = &[400, 403, 500];
/// Statuses of routes that need a key: a wrong one, and a server that shuts down.
const GUARDED: &[u16] = &[401, 503];
/// Statuses of routes that name something that may not exist.
const NAMED: &[u16] = &[404];
/// Statuses of routes that read a body and work.
const WORKING: &[u16] = &[404, 408, 413, 415, 429, 499, 504];

/// Path of a route in the form of OpenAPI.
pub(super) fn path(route: &Route) -> String {
    route.path.replace("{*", "{")
}

/// Operation of a route.
pub(super) fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [route.tag],
        "summary": route.summary,
        "responses": responses(route),
    });
    let parameters: Vec<Value> = parameters(route).collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = route.body {
        let content = json!({"schema": reference(body.name), "example": body.example()});
        operation["requestBody"] = json!({"required": true, "content": {"application/json": content}});
    }
    if route.needs_key {
        operation["security"] = json!([{"bearer": []}, {"x-api-key": []}, {}]);
    }
    operation
}

/// Id of an operation: its method and the words of its path.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    [route.method.name()].into_iter().chain(words).collect::<Vec<_>>().join("_")
}

/// Parameters of a route: those of its path, then those of its query.
fn parameters(route: &Route) -> impl Iterator<Item = Value> {
    let named = names(route).map(|name| {
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
    });
    named.chain(
        route.query.iter().map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}})),
    )
}

/// Names of the parameters in a path.
fn names(route: &Route) -> impl Iterator<Item = &str> {
    let parts = route.path.split('{').skip(1).filter_map(|part| part.split('}').next());
    parts.map(|name| name.trim_start_matches('*'))
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for (status, content) in route.responses {
        let response = responses.entry(status.to_string()).or_insert_with(|| json!({"content": {}}));
        let (kind, schema) = media_type(*content);
        response["description"] = description(*status).into();
        response["content"][kind] = json!({"schema": schema});
    }
    let error = json!({"application/json": {"schema": reference(error_schema(route.path))}});
    for status in error_statuses(route) {
        let response = || json!({"description": description(status), "content": error.clone()});
        responses.entry(status.to_string()).or_insert_with(response);
    }
    Value::Object(responses)
}

fn error_statuses(route: &Route) -> Vec<u16> {
    let groups = [
        (true, ANY),
        (route.needs_key, GUARDED),
        (names(route).next().is_some(), NAMED),
        (route.body.is_some(), WORKING),
    ];
    let mut statuses: Vec<u16> =
        groups.iter().filter(|(applies, _)| *applies).flat_map(|(_, statuses)| *statuses).copied().collect();
    statuses.sort_unstable();
    statuses
}

fn media_type(content: Content) -> (&'static str, Value) {
    match content {
        Content::Json(name) => ("application/json", reference(name)),
        Content::Events => ("text/event-stream", json!({"type": "string"})),
        Content::Lines => ("application/x-ndjson", json!({"type": "string"})),
        Content::Text => ("text/plain", json!({"type": "string"})),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn description(status: u16) -> &'static str {
    match status {
        200 => "Success",
        400 => "Invalid or unsupported request; the error names the field",
        401 => "Missing or invalid API key",
        403 => "Foreign host name or origin",
        404 => "Unknown model, or another unknown name",
        408 => "The body did not arrive in time",
        413 => "The body is too large",
        415 => "The body is compressed",
        429 => "Too many requests; `Retry-After` says when to send it again",
        499 => "Cancelled at the end of a shutdown",
        503 => "Unavailable: a shutdown, a stopped engine, or no memory for the model",
        504 => "The request took too long",
        _ => "Internal error",
    }
}
