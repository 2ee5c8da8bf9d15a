//! Requests of calls, and their results: an odd part of a result costs no other part.

use super::elicitation::Questions;
use super::task;
use crate::names::shown;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, ContentBlock, CustomResult, InputRequiredResult, RequestId,
    ServerResult, Task,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use std::time::Duration;
use tokio::runtime::Handle;

/// Types of parts.
const TYPES: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];

/// Maximum number of requests of one call, each with more input than the one before it.
const MAX_ROUNDS: u32 = 10;
/// Delay before a round for which the server asks nothing; the delay doubles with each.
const ROUND_DELAY: Duration = Duration::from_millis(250);

/// Answer to a call.
pub(super) enum Answer {
    /// Its result.
    Result(CallToolResult),
    /// Something that nobody can answer.
    AsksForMore,
}

/// Answer to one request of a call.
enum Reply {
    Result(CallToolResult),
    /// The server needs more input for the call.
    Input(InputRequiredResult),
    /// The result is to be asked for.
    Task(Task),
}

/// Calls a tool, with further requests for the questions of the server, and waits for the result of a task.
/// If the future is dropped before the answer, the server reads `notifications/cancelled`, or `tasks/cancel`.
pub(super) async fn call(
    peer: &Peer<RoleClient>,
    mut params: CallToolRequestParams,
    questions: &Questions,
) -> Result<Answer, ServiceError> {
    for round in 0..MAX_ROUNDS {
        let InputRequiredResult { input_requests, request_state, .. } = match once(peer, params.clone())
            .await?
        {
            Reply::Result(result) => return Ok(Answer::Result(result)),
            Reply::Task(task) => {
                let result = task::result(peer, task, questions).await?;
                return result.map_or(Ok(Answer::AsksForMore), |result| mended(result).map(Answer::Result));
            }
            Reply::Input(input) => input,
        };
        params.input_responses = match input_requests.filter(|requests| !requests.is_empty()) {
            Some(requests) => match questions.answer(requests).await {
                Some(answers) => Some(answers),
                None => return Ok(Answer::AsksForMore),
            },
            None => {
                tokio::time::sleep(ROUND_DELAY * 2_u32.pow(round)).await;
                None
            }
        };
        params.request_state = request_state;
    }
    Err(ServiceError::InputRequiredRoundsExceeded { max_rounds: MAX_ROUNDS as usize })
}

/// Sends one request of a call.
async fn once(peer: &Peer<RoleClient>, params: CallToolRequestParams) -> Result<Reply, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let mut unanswered = Unanswered { peer, id: Some(handle.id.clone()) };
    let response = handle.await_response().await;
    unanswered.id = None;
    read(response?)
}

/// A request that is cancelled at the server when this is dropped.
struct Unanswered<'a> {
    peer: &'a Peer<RoleClient>,
    /// `None` after the answer.
    id: Option<RequestId>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let params = CancelledNotificationParam::new(Some(id), Some("the caller no longer waits".to_owned()));
        let (peer, cancelled) = (self.peer.clone(), CancelledNotification::new(params));
        runtime.spawn(async move { peer.send_notification(cancelled.into()).await });
    }
}

/// Reads the response to a call. One with an odd part has no type of its own.
fn read(response: ServerResult) -> Result<Reply, ServiceError> {
    match response {
        ServerResult::CallToolResult(result) => Ok(Reply::Result(result)),
        ServerResult::InputRequiredResult(result) => Ok(Reply::Input(result)),
        ServerResult::CreateTaskResult(result) => Ok(Reply::Task(result.task)),
        // A result without content and with nothing else.
        ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
            Ok(Reply::Result(CallToolResult::default()))
        }
        ServerResult::CustomResult(CustomResult(result)) => mended(result).map(Reply::Result),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Reads a result part by part: a note takes the place of each that cannot be read.
fn mended(mut result: Value) -> Result<CallToolResult, ServiceError> {
    let members = result.as_object_mut().ok_or(ServiceError::UnexpectedResponse)?;
    if members.keys().all(|key| key == "_meta") {
        return Ok(CallToolResult::default());
    }
    if let Some(Value::Array(parts)) = members.get_mut("content") {
        parts.iter_mut().for_each(mend);
    }
    serde_json::from_value(result).map_err(|_| ServiceError::UnexpectedResponse)
}

/// Replaces a part that cannot be read: by itself without the members that are not for the model, or else by
/// a note.
fn mend(part: &mut Value) {
    let Err(error) = part_of(part) else { return };
    if let Some(members) = part.as_object_mut() {
        members.retain(|key, _| !matches!(key.as_str(), "annotations" | "_meta" | "icons"));
    }
    if part_of(part).is_ok() {
        return;
    }
    let note = match part.get("type").and_then(Value::as_str) {
        Some(kind) if TYPES.contains(&kind) => format!("[content of type {kind} is malformed: {error}]"),
        Some(kind) => format!("[content of type {} is not supported]", shown(kind)),
        None => "[content without a type is not supported]".to_owned(),
    };
    *part = serde_json::json!({"type": "text", "text": note});
}

/// Reads a part; an error is its description.
fn part_of(part: &Value) -> Result<ContentBlock, String> {
    serde_json::from_value(part.clone()).map_err(|error| shown(&error.to_string()))
}
