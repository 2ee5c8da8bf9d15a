//! `/v1/tools`: tools that the server runs for its clients.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{ApiError, Fields, RequestBody, media_parts};
use lm_tools::{CallEvent, CallResult, Map, RunningCalls, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::JsonBody;
use crate::response::{ErrorResponse, json as respond};
use crate::state::SharedApp;

/// Body of a call.
pub(super) const CALL: RequestBody = RequestBody {
    name: "ToolCallRequest",
    groups: &[Call::json_schema],
    unsupported: &[],
    example: r#"{"name": "get_weather", "arguments": {"location": "Paris"}}"#,
};

#[derive(Deserialize, JsonSchema)]
struct Call {
    /// Name of a tool.
    name: String,
    /// Arguments, or their JSON text; none if absent.
    #[schemars(extend("type" = ["object", "string", "null"]))]
    arguments: Option<Value>,
}

/// Lists the declarations, each with the hints about the tool's effects.
pub(crate) async fn list(State(app): State<SharedApp>) -> Response {
    let tools = app.config.tools.toolset();
    let declarations = tools.specs().into_iter().map(|spec| {
        let mut declaration = spec.to_function_json();
        declaration["annotations"] = json!(tools.annotations(spec.name()));
        declaration
    });
    let data: Vec<Value> = declarations.collect();
    respond(StatusCode::OK, &json!({"object": "list", "data": data}))
}

/// Runs a call, `{"name", "arguments"}`; a disconnect cancels it. An error of the tool, or of its arguments,
/// is a result for the model. With images or audio there are `parts` beside the text: content of a `tool`
/// message for `/v1/chat/completions`.
pub(crate) async fn call(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let tools = app.config.tools.toolset();
    let call = read(body)?;
    if !tools.names().any(|name| name == call.name) {
        let message = format!("there is no tool `{:.100}`; /v1/tools lists the tools", call.name);
        let error = ApiError::refused(404, "not_found_error", message);
        return Err(error.with_param("name").with_code("tool_not_found").into());
    }
    let _place = app.place()?;
    let running = tools.start(vec![call], &app.cancel, app.deadline());
    let CallResult { message, error, .. } = result(running).await?;
    let content = message.content.text_with_notes();
    let mut object = json!({"name": message.name, "content": content, "is_error": error.is_some()});
    if let Some(parts) = media_parts(&message.content) {
        object["parts"] = parts.into();
    }
    Ok(respond(StatusCode::OK, &object))
}

async fn result(mut running: RunningCalls) -> Result<CallResult, ApiError> {
    while let Some(event) = running.recv_event().await {
        if let CallEvent::Finished(result) = event {
            return Ok(*result);
        }
    }
    Err(ApiError::server("the call ended without a result"))
}

/// Reads a call; the arguments are an object, or its JSON text as in calls of chat completions, where no
/// arguments may be an empty text.
fn read(body: Value) -> Result<ToolCall, ApiError> {
    let Call { name, arguments } = Fields::open(body, &CALL)?.into_group()?;
    let arguments = match arguments {
        None => Some(Map::new()),
        Some(Value::Object(arguments)) => Some(arguments),
        Some(Value::String(text)) if text.is_empty() => Some(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(&text).ok(),
        Some(_) => None,
    };
    let expected = "`arguments` is not valid, expected an object or its JSON text";
    let arguments = arguments.ok_or_else(|| ApiError::invalid_param("arguments", expected))?;
    Ok(ToolCall::new(name, arguments))
}
