//! `/page/render`: Markdown of the page's messages as sanitised HTML, while they grow.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use lm_api::{Fields, RequestBody};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::JsonBody;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Body of a request.
const RENDER: RequestBody = RequestBody {
    name: "RenderRequest",
    groups: &[Render::json_schema],
    unsupported: &[],
    example: r#"{"stream": "a1", "at": 0, "text": "Some *text*."}"#,
};

#[derive(Deserialize, JsonSchema)]
struct Render {
    /// Name of the stream, chosen by the page.
    stream: String,
    /// UTF-16 units of the stream's text before this piece; 0 begins the stream.
    at: usize,
    /// Next piece of the text.
    text: String,
    /// True for the last piece.
    done: Option<bool>,
}

/// The route, which needs a key as the API does.
pub(crate) fn routes() -> Router<SharedApp> {
    Router::new().route("/page/render", post(render))
}

async fn render(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Result<Response, ErrorResponse> {
    let Render { stream, at, text, done } = Fields::open(body, &RENDER)?.into_group()?;
    let shared = app.clone();
    let work = move || shared.renderings.push(&stream, at, &text, done == Some(true));
    Ok(response::json(StatusCode::OK, &app.prepare(work).await?))
}
