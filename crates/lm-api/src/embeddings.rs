//! Embeddings: request body, execution and response body.

use std::num::NonZeroUsize;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lm_conversation::{CancelHandle, Engine};
use lm_session::{AdapterId, EmbedParams, Error as Session, Pooling, TextSegment, TokenId, normalized};
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::fields::{Fields, json_type, shown};
use crate::limits::{Limits, at_most};

/// Request for the embeddings of texts.
///
/// ```
/// use lm_api::{EmbeddingEncoding, EmbeddingInput, EmbeddingRequest};
/// use serde_json::json;
///
/// let body = json!({"model": "any", "input": ["Paris", "Rome"], "encoding_format": "base64"});
/// let request = EmbeddingRequest::from_json(body)?;
/// assert_eq!(request.inputs[1], EmbeddingInput::Text("Rome".to_owned()));
/// assert_eq!(request.encoding, EmbeddingEncoding::Base64);
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddingRequest {
    /// Name of the model, if the request has one.
    pub model: Option<String>,
    /// The texts; at least one.
    pub inputs: Vec<EmbeddingInput>,
    /// True if `input` is one text, not an array of them; errors then name `input` and no element.
    single: bool,
    /// Form of the vectors in the response.
    pub encoding: EmbeddingEncoding,
    /// Number of first elements to keep; the shortened vectors have length 1 again. `None`: all.
    pub dimensions: Option<usize>,
    /// Pooling, of the extension `pooling`; the mean by default.
    pub pooling: Pooling,
    /// Cancels the request.
    pub cancel: CancelHandle,
}

/// Text to embed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbeddingInput {
    /// Text; the tokenizer's own tokens around a text, such as BOS, are added.
    Text(String),
    /// Token ids, used as they are.
    Ids(Vec<TokenId>),
}

/// Form of a vector in a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmbeddingEncoding {
    /// Array of numbers.
    #[default]
    Float,
    /// Base64 of little-endian 32-bit floats.
    Base64,
}

impl EmbeddingRequest {
    /// Reads a request body within the default [`Limits`]. Unknown fields are ignored, as is `user`.
    ///
    /// # Errors
    /// When a field is invalid; [`ApiError::param`] names it.
    pub fn from_json(body: Value) -> Result<Self> {
        Self::from_json_within(body, &Limits::default())
    }

    /// [`EmbeddingRequest::from_json`] within the given limits.
    ///
    /// # Errors
    /// As [`EmbeddingRequest::from_json`].
    pub fn from_json_within(body: Value, limits: &Limits) -> Result<Self> {
        let fields = &mut Fields::new(body)?;
        let input = fields.take("input");
        let input = input.ok_or_else(|| ApiError::invalid_param("input", "`input` is missing"))?;
        let single = is_single(&input);
        Ok(Self {
            model: fields.get("model")?,
            inputs: inputs(input, single, limits)?,
            single,
            encoding: word(
                fields,
                "encoding_format",
                &[("float", EmbeddingEncoding::Float), ("base64", EmbeddingEncoding::Base64)],
            )?,
            dimensions: fields.get::<NonZeroUsize>("dimensions")?.map(NonZeroUsize::get),
            pooling: word(fields, "pooling", &[("mean", Pooling::Mean), ("last", Pooling::Last)])?,
            cancel: CancelHandle::new(),
        })
    }

    /// Path of an input, for errors.
    fn path(&self, index: usize) -> String {
        if self.single { "input".to_owned() } else { format!("input[{index}]") }
    }
}

/// Returns true if `input` is one text: text itself, or token ids.
fn is_single(input: &Value) -> bool {
    match input {
        Value::Array(items) => items.first().is_some_and(Value::is_number),
        _ => true,
    }
}

fn inputs(input: Value, single: bool, limits: &Limits) -> Result<Vec<EmbeddingInput>> {
    match input {
        Value::Array(items) if !single => {
            if items.is_empty() {
                return Err(ApiError::invalid_param("input", "`input` is empty"));
            }
            at_most("input", items.len(), limits.embedding_inputs, "texts")?;
            let items = items.into_iter().enumerate();
            items.map(|(index, item)| one_input(item, &format!("input[{index}]"))).collect()
        }
        input => Ok(vec![one_input(input, "input")?]),
    }
}

/// Reads a text or an array of token ids.
fn one_input(input: Value, at: &str) -> Result<EmbeddingInput> {
    let is_empty = match &input {
        Value::String(text) => text.is_empty(),
        Value::Array(ids) => ids.is_empty(),
        _ => false,
    };
    if is_empty {
        return Err(ApiError::invalid_param(at, format!("`{at}` is empty")));
    }
    match input {
        Value::String(text) => Ok(EmbeddingInput::Text(text)),
        Value::Array(ids) => {
            let ids = ids.iter().enumerate().map(|(index, id)| {
                let id = id.as_u64().and_then(|id| TokenId::try_from(id).ok()).ok_or(id);
                id.map_err(|got| {
                    let at = format!("{at}[{index}]");
                    let message = format!("`{at}` is {}, expected a token id", shown(got));
                    ApiError::invalid_param(at, message)
                })
            });
            Ok(EmbeddingInput::Ids(ids.collect::<Result<_>>()?))
        }
        other => {
            let message = format!("`{at}` is {}, expected text or an array of token ids", json_type(&other));
            Err(ApiError::invalid_param(at, message))
        }
    }
}

/// Reads a field of one of the words; the default if it is absent.
fn word<T: Copy + Default>(fields: &mut Fields, name: &str, words: &[(&str, T)]) -> Result<T> {
    let Some(value) = fields.take(name) else { return Ok(T::default()) };
    let known = words.iter().find(|(word, _)| value == *word);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let expected: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("`{name}` is {}, expected {}", shown(&value), expected.join(" or "));
        ApiError::invalid_param(name, message)
    })
}

/// Embeddings on an engine. Requests may run on any number of threads; the engine batches them.
///
/// ```
/// use lm_api::{EmbeddingRequest, Embeddings};
/// use serde_json::json;
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// // In a program: `Engine::load(..)`.
/// let embeddings = Embeddings::new(engine, None);
/// let object = embeddings.create(&EmbeddingRequest::from_json(json!({"input": "Hello"}))?)?;
/// assert_eq!(object["data"][0]["object"], "embedding");
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Embeddings {
    engine: Engine,
    adapter: Option<AdapterId>,
}

impl Embeddings {
    /// Creates embeddings on an engine, with a LoRA adapter or without one.
    pub fn new(engine: Engine, adapter: Option<AdapterId>) -> Self {
        Self { engine, adapter }
    }

    /// Answers a request with a list of embeddings, each of length 1.
    ///
    /// # Errors
    /// When the request is invalid for the model, or its execution fails.
    pub fn create(&self, request: &EmbeddingRequest) -> Result<Value> {
        let size = self.engine.model_info().hidden_size;
        let dimensions = request.dimensions.unwrap_or(size);
        if dimensions > size {
            let message = format!("`dimensions` is {dimensions}, the model's embeddings have {size}");
            return Err(ApiError::invalid_param("dimensions", message));
        }
        let inputs = request.inputs.iter().enumerate();
        let texts = inputs.map(|(index, input)| self.ids(input, &request.path(index)));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let tokens: usize = texts.iter().map(Vec::len).sum();
        let (pooling, cancel) = (request.pooling, request.cancel.clone());
        let params = EmbedParams { pooling, adapter: self.adapter, cancel };
        let vectors = self.engine.embed_all(texts, &params).enumerate();
        let data = vectors.map(|(index, vector)| {
            let vector = vector.map_err(|error| api_error(&request.path(index), error))?;
            let vector = shortened(vector, dimensions);
            let embedding = request.encoding.json(&vector);
            Ok(json!({"object": "embedding", "index": index, "embedding": embedding}))
        });
        Ok(json!({
            "object": "list",
            "data": data.collect::<Result<Vec<_>>>()?,
            "model": request.model.as_deref().unwrap_or(self.engine.name()),
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }))
    }

    fn ids(&self, input: &EmbeddingInput, at: &str) -> Result<Vec<TokenId>> {
        let (tokenizer, width) = (self.engine.tokenizer(), self.engine.model_info().logits_width);
        let ids = match input {
            EmbeddingInput::Ids(ids) => ids.clone(),
            EmbeddingInput::Text(text) => tokenizer
                .encode_with_special_tokens(TextSegment::Content(text))
                .map_err(|error| api_error(at, error.into()))?,
        };
        match ids.iter().find(|&&id| id as usize >= width) {
            None => Ok(ids),
            Some(id) => {
                let message = format!("`{at}` has the token id {id}, the model has ids below {width}");
                Err(ApiError::invalid_param(at, message))
            }
        }
    }
}

/// First elements of a vector, scaled to length 1 again if there are others.
fn shortened(mut vector: Vec<f32>, dimensions: usize) -> Vec<f32> {
    if dimensions >= vector.len() {
        return vector;
    }
    vector.truncate(dimensions);
    normalized(vector)
}

/// Converts the error of an input.
fn api_error(at: &str, error: Session) -> ApiError {
    let message = error.to_string();
    match error {
        Session::PromptTooLong { .. } | Session::CacheFull { .. } => {
            ApiError::invalid_param(at, message).with_code("context_length_exceeded")
        }
        Session::EmptyPrompt => ApiError::invalid_param(at, message),
        Session::Cancelled => lm_conversation::Error::Cancelled.into(),
        error => lm_conversation::Error::Session(error).into(),
    }
}

impl EmbeddingEncoding {
    /// Writes a vector.
    ///
    /// ```
    /// use lm_api::EmbeddingEncoding;
    ///
    /// assert_eq!(EmbeddingEncoding::Float.json(&[0.1]).to_string(), "[0.1]");
    /// assert_eq!(EmbeddingEncoding::Base64.json(&[1.0]), "AACAPw==");
    /// ```
    pub fn json(self, vector: &[f32]) -> Value {
        match self {
            // The shortest number that is this float: as a double it would have 17 digits.
            Self::Float => vector.iter().map(|value| value.to_string().parse::<f64>().ok()).collect(),
            Self::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                STANDARD.encode(bytes).into()
            }
        }
    }
}
