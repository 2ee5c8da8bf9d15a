//! `/page/passages`: passages of a file that is too long for a message of the page.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use lm_api::{Fields, RequestBody};
use lm_documents::Passages;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::JsonBody;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Body of a request.
const CHOICE: RequestBody = RequestBody {
    name: "PassagesRequest",
    groups: &[Choice::json_schema],
    unsupported: &[],
    example: r#"{"name": "manual.pdf", "text": "A long text.", "question": "How long?", "bytes": 20000}"#,
};

#[derive(Deserialize, JsonSchema)]
struct Choice {
    /// Name of the file.
    name: String,
    /// Its text.
    text: String,
    /// Text of the message.
    question: String,
    /// Largest size of the passages together.
    bytes: usize,
    /// Passages that earlier messages have; if it is given, only further ones are chosen, and none of these.
    sent: Option<Vec<usize>>,
}

/// The route, which needs a key as the API does.
pub(crate) fn routes() -> Router<SharedApp> {
    Router::new().route("/page/passages", post(choose))
}

/// Answers the indices of the `chosen` passages, `of` how many, their `pages` and the `prompt` that has them;
/// `fits` is false for the beginning of a text that shares no words with the question.
async fn choose(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Result<Response, ErrorResponse> {
    let choice: Choice = Fields::open(body, &CHOICE)?.into_group()?;
    Ok(response::json(StatusCode::OK, &app.prepare(move || Ok(chosen(choice))).await?))
}

fn chosen(Choice { name, text, question, bytes, sent }: Choice) -> Value {
    let passages = Passages::new(text);
    let mut chosen = match &sent {
        Some(sent) => passages.choose_more(&question, bytes, sent),
        None => passages.choose(&question, bytes),
    };
    let fits = !chosen.is_empty();
    if !fits && sent.is_none() {
        chosen = passages.first(bytes);
    }
    json!({
        "fits": fits,
        "of": passages.len(),
        "pages": passages.pages(&chosen),
        "prompt": passages.prompt(&name, &chosen),
        "chosen": chosen,
    })
}
