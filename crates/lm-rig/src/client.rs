//! Requests of rig's OpenAI wires, answered by an engine in this process.

use std::thread;

use bytes::Bytes;
use futures::channel::oneshot;
use futures::{Stream, StreamExt, TryStreamExt, future, stream};
use lm_api::{ApiError, ChatCompletions, ChatRequest, EmbeddingRequest, Embeddings, RunningCompletion};
use lm_conversation::{CancelHandle, ConversationConfig, Engine};
use rig_core::http_client::{
    self, HeaderMap, HeaderValue, HttpClientExt, LazyBody, MultipartForm, Request, Response, StatusCode,
    StreamingResponse,
};
use serde_json::{Value, json};

/// A client of rig for the OpenAI API that sends nothing: an engine answers, in this process.
/// [`provider`](crate::provider) is the usual way to it; it also serves rig's other OpenAI-shaped
/// configurations, as their transport.
///
/// It answers `/chat/completions`, streamed or not, `/embeddings` and `/models`. No thread of the async
/// runtime is blocked: prompts are rendered and grammars compiled on a separate thread, and a reply is
/// awaited. Dropping a request or its stream cancels it.
#[derive(Clone, Debug)]
pub struct EngineClient {
    engine: Engine,
    completions: ChatCompletions,
}

impl EngineClient {
    /// Creates a client. `config` has the values of absent fields of requests; its preface is not used.
    pub fn new(engine: &Engine, config: ConversationConfig) -> Self {
        Self { engine: engine.clone(), completions: ChatCompletions::new(engine.clone(), config) }
    }

    /// Answers a request with an object.
    async fn answer(self, path: String, body: Bytes) -> Result<Value, ApiError> {
        match path.rsplit('/').next() {
            Some("completions") => self.start(body).await?.object().await,
            Some("embeddings") => self.embed(body).await,
            Some("models") => {
                Ok(json!({"object": "list", "data": [{"id": self.engine.name(), "object": "model"}]}))
            }
            _ => {
                let message =
                    format!("no endpoint `{path}`, expected chat/completions, embeddings or models");
                Err(ApiError::invalid_request(message))
            }
        }
    }

    async fn start(self, body: Bytes) -> Result<RunningCompletion, ApiError> {
        on_thread(move || self.begin(&body)).await
    }

    /// Renders the prompt and submits the turn.
    fn begin(&self, body: &[u8]) -> Result<RunningCompletion, ApiError> {
        let request = ChatRequest::from_json(read(body)?)?;
        if request.choices != 1 {
            let message = format!("`n` is {}, expected 1: rig reads one choice", request.choices);
            return Err(ApiError::invalid_param("n", message));
        }
        self.completions.start(request)
    }

    async fn embed(self, body: Bytes) -> Result<Value, ApiError> {
        let request = EmbeddingRequest::from_json(read(&body)?)?;
        let _cancel = CancelOnDrop(request.cancel.clone());
        on_thread(move || Embeddings::new(self.engine, None).create(&request)).await
    }
}

/// Server-sent events of a reply; a failure is the last item but one.
fn frames(running: RunningCompletion) -> impl Stream<Item = http_client::Result<Bytes>> + Send + 'static {
    let frames = running.into_stream().map_err(|failed| http_error(&failed.error));
    let frames = frames.map_ok(|frame| Bytes::from(format!("data: {}\n\n", frame.data)));
    frames.chain(stream::once(future::ready(Ok(Bytes::from_static(b"data: [DONE]\n\n")))))
}

impl HttpClientExt for EngineClient {
    fn send<T, U>(
        &self,
        req: Request<T>,
    ) -> impl Future<Output = http_client::Result<Response<LazyBody<U>>>> + Send + 'static
    where
        T: Into<Bytes> + Send,
        U: From<Bytes> + Send + 'static,
    {
        let answer = self.clone().answer(req.uri().path().to_owned(), req.into_body().into());
        async move {
            let object = answer.await.map_err(|error| http_error(&error))?;
            let body = Bytes::from(object.to_string());
            let body: LazyBody<U> = Box::pin(future::ready(Ok(U::from(body))));
            Ok(response("application/json", body))
        }
    }

    fn send_multipart<U>(
        &self,
        req: Request<MultipartForm>,
    ) -> impl Future<Output = http_client::Result<Response<LazyBody<U>>>> + Send + 'static
    where
        U: From<Bytes> + Send + 'static,
    {
        let message = format!("no endpoint `{}`: the engine reads no files", req.uri().path());
        future::ready(Err(http_error(&ApiError::invalid_request(message))))
    }

    fn send_streaming<T>(
        &self,
        req: Request<T>,
    ) -> impl Future<Output = http_client::Result<StreamingResponse>> + Send
    where
        T: Into<Bytes> + Send,
    {
        let start = self.clone().start(req.into_body().into());
        async move {
            let running = start.await.map_err(|error| http_error(&error))?;
            Ok(response("text/event-stream", Box::pin(frames(running)) as http_client::BoxedStream))
        }
    }
}

/// Runs a function on a thread, and waits for it without blocking. A result without a waiter is dropped.
async fn on_thread<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let (sender, receiver) = oneshot::channel();
    let thread = thread::Builder::new().name("lm-rig".to_owned());
    let spawned = thread.spawn(move || drop(sender.send(run())));
    spawned.map_err(|error| ApiError::server(format!("no thread for a request: {error}")))?;
    receiver.await.unwrap_or_else(|_| Err(ApiError::server("the thread of the request panicked")))
}

/// Cancels requests whose future is dropped.
struct CancelOnDrop(CancelHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn read(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid_request(format!("the body is not JSON: {error}")))
}

fn response<B>(content_type: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static(content_type));
    response
}

/// The error as rig receives it from a server: status, headers and the API's error object.
fn http_error(error: &ApiError) -> http_client::Error {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = HeaderMap::new();
    if let Some(seconds) = error.retry_after_seconds() {
        headers.insert("retry-after", HeaderValue::from(seconds));
    }
    http_client::Error::non_success_with_details(status, headers, error.to_json().to_string())
}
