//! `/api/pull`: downloads of models, in the form of Ollama's API.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use lm_api::{ApiError, Fields, RequestBody};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedSender};

use super::body::JsonBody;
use super::ollama::{SHOW, Show};
use crate::downloads::{DownloadProgress, ServedDownloads};
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Body of a request.
pub(super) const PULL: RequestBody = RequestBody { name: "OllamaPullRequest", ..SHOW };

/// Shortest time between two reports of the progress of a file.
const INTERVAL: Duration = Duration::from_millis(100);

/// Answers that a served model is here. Another one is downloaded, and served from then on, if the server
/// downloads models; that goes on if the client leaves.
pub(super) async fn pull(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let is_stream = body["stream"] != false;
    let body: Show = Fields::open(body, &PULL)?.into_group()?;
    let name = body.name().ok_or_else(|| ApiError::missing("model"))?;
    let (sender, mut lines) = mpsc::unbounded_channel();
    match (app.models.find(Some(&name)), app.config.downloads.clone()) {
        (Ok(_), _) => {
            let _ = sender.send(json!({"status": "pulling manifest"}));
            let _ = sender.send(json!({"status": "success"}));
            drop(sender);
        }
        (Err(unknown), None) => return Err(unknown.into()),
        (Err(_), Some(downloads)) => {
            let app = app.clone();
            let place = app.place()?;
            tokio::task::spawn_blocking(move || {
                let _place = place;
                download(&app, &downloads, &name, &sender);
            });
        }
    }
    if is_stream {
        let next = |mut lines: mpsc::UnboundedReceiver<Value>| async {
            let line = lines.recv().await?;
            Some((Ok::<_, Infallible>(format!("{line}\n")), lines))
        };
        let kind = (CONTENT_TYPE, "application/x-ndjson");
        return Ok(([kind], Body::from_stream(stream::unfold(lines, next))).into_response());
    }
    let mut last = Value::Null;
    while let Some(line) = lines.recv().await {
        last = line;
    }
    match last["error"].as_str() {
        Some(error) => Err(ApiError::invalid_request(error.to_owned()).into()),
        None => Ok(response::json(StatusCode::OK, &last)),
    }
}

/// Downloads a model and serves it. The reports of a client that has left are dropped.
fn download(app: &SharedApp, downloads: &ServedDownloads, name: &str, sender: &UnboundedSender<Value>) {
    let _ = sender.send(json!({"status": "pulling manifest"}));
    let mut reported: Option<(Instant, String)> = None;
    let mut report = |DownloadProgress { file, done_bytes, total_bytes }: DownloadProgress| {
        if reported.as_ref().is_none_or(|(at, last)| *last != file || at.elapsed() >= INTERVAL) {
            let status = format!("pulling {file}");
            let _ = sender.send(json!({"status": status, "total": total_bytes, "completed": done_bytes}));
            reported = Some((Instant::now(), file));
        }
    };
    let model = downloads.run(name, &mut report);
    let added = model.and_then(|model| app.models.add(model).map_err(|error| error.to_string()));
    let _ = sender.send(match added {
        Ok(()) => json!({"status": "success"}),
        Err(error) => json!({"error": error}),
    });
}
