//! Calls that a server turns into tasks: their results are asked for until they are there.

use super::elicitation::Questions;
use rmcp::model::{
    CancelTaskParams, ErrorCode, ErrorData, GetTaskParams, Task, TaskPayload, UpdateTaskParams,
};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tokio::runtime::Handle;

/// Time between two requests, if the server names none, and its bounds.
const INTERVAL: Duration = Duration::from_secs(1);
const MIN_INTERVAL: Duration = Duration::from_millis(50);
const MAX_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of questions of a task.
const MAX_QUESTIONS: usize = 64;

/// Waits for the result of a task. If the future is dropped before it, the server reads `tasks/cancel`.
/// `None` if the task asks for something that nobody can answer.
pub(super) async fn result(
    peer: &Peer<RoleClient>,
    task: Task,
    questions: &Questions,
) -> Result<Option<Value>, ServiceError> {
    let mut unfinished = Unfinished { peer, id: Some(task.task_id.clone()) };
    let (id, mut interval) = (task.task_id.clone(), interval(&task));
    let mut answered = HashSet::new();
    loop {
        tokio::time::sleep(interval).await;
        let now = peer.get_task(GetTaskParams::new(id.clone())).await?.task;
        interval = self::interval(&now.task);
        match now.payload {
            TaskPayload::InputRequired { mut input_requests } => {
                input_requests.retain(|key, _| !answered.contains(key));
                answered.extend(input_requests.keys().cloned());
                if input_requests.is_empty() {
                    continue; // The server has not taken the answers yet.
                }
                let is_bounded = answered.len() <= MAX_QUESTIONS;
                let answers = if is_bounded { questions.answer(input_requests).await } else { None };
                let Some(answers) = answers else { return Ok(None) };
                peer.update_task(UpdateTaskParams::new(id.clone(), answers)).await?;
            }
            TaskPayload::Completed { result } => {
                unfinished.id = None;
                return Ok(Some(Value::Object(result)));
            }
            TaskPayload::Failed { error } => {
                unfinished.id = None;
                return Err(ServiceError::McpError(failure(Value::Object(error))));
            }
            TaskPayload::Cancelled => {
                unfinished.id = None;
                return Err(ServiceError::Cancelled { reason: now.task.status_message });
            }
            _ => {}
        }
    }
}

fn interval(task: &Task) -> Duration {
    task.poll_interval_ms.map_or(INTERVAL, Duration::from_millis).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// The error of a failed task.
fn failure(error: Value) -> ErrorData {
    let unknown = |error: serde_json::Error| {
        ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("its error cannot be read: {error}"), None)
    };
    serde_json::from_value(error).unwrap_or_else(unknown)
}

/// A task that is cancelled at the server when this is dropped.
struct Unfinished<'a> {
    peer: &'a Peer<RoleClient>,
    /// `None` after the end.
    id: Option<String>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move { peer.cancel_task(CancelTaskParams::new(id)).await });
    }
}
