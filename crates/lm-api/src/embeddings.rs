//! Embeddings: request body, execution and response body.

use std::num::NonZeroUsize;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lm_conversation::{CancelHandle, Engine};
use lm_session::{AdapterId, EmbedInput, EmbedParams, EmbeddingConfig, Pooling, normalized};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::fields::{Fields, shown, word};
use crate::limits::Limits;
use crate::ollama::KeepAlive;
use crate::request_body::RequestBody;
use crate::text_inputs::{TextInputs, api_error};

/// Request for the embeddings of texts.
///
/// ```
/// use lm_api::{EmbeddingEncoding, EmbeddingRequest, TextInput};
/// use serde_json::json;
///
/// let body = json!({"model": "any", "input": ["Paris", "Rome"], "encoding_format": "base64"});
/// let request = EmbeddingRequest::from_json(body)?;
/// assert_eq!(request.inputs.texts()[1], TextInput::Text("Rome".to_owned()));
/// assert_eq!(request.encoding, EmbeddingEncoding::Base64);
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddingRequest {
    /// Name of the model, if the request has one.
    pub model: Option<String>,
    /// The texts; at least one.
    pub inputs: TextInputs,
    /// Form of the vectors in the response.
    pub encoding: EmbeddingEncoding,
    /// Number of first elements to keep; shortened vectors have length 1 again, except where `normalize` or
    /// the model's files say that vectors are not normalised. `None`: all.
    pub dimensions: Option<usize>,
    /// Pooling, of the extension `pooling`. `None`: the model's own, or else the mean.
    pub pooling: Option<Pooling>,
    /// True for vectors of length 1, of the extension `normalize`. `None`: as the model's files say; true
    /// without such files.
    pub normalize: Option<bool>,
    /// Prompt before each text, of the extensions `prompt` and `prompt_name`.
    pub prompt: EmbeddingPrompt,
    /// Cancels the request.
    pub cancel: CancelHandle,
    /// Time for which the model stays in memory after the request; `None` is the server's own.
    pub keep_alive: Option<KeepAlive>,
}

/// Choice of the prompt before the texts of a request. Token ids get none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EmbeddingPrompt {
    /// The model's default.
    #[default]
    Default,
    /// A prompt of the model's files, by name: `query`, `document` and others.
    Name(String),
    /// This text.
    Text(String),
}

impl EmbeddingPrompt {
    fn of<'a>(&'a self, config: &'a EmbeddingConfig) -> Result<&'a str> {
        match self {
            Self::Default => Ok(config.default_prompt()),
            Self::Text(text) => Ok(text),
            Self::Name(name) => config.prompt(name).ok_or_else(|| {
                let expected = format!("a prompt of the model: {}", config.prompt_names().join(", "));
                ApiError::unexpected("prompt_name", shown(&name.as_str().into()), &expected)
            }),
        }
    }
}

/// Form of a vector in a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingEncoding {
    /// Array of numbers.
    #[default]
    Float,
    /// Base64 of little-endian 32-bit floats.
    Base64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PoolingName {
    Mean,
    Last,
    Cls,
}

/// Fields that all APIs have.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct InputFields {
    /// Name or alias of a model; the server's first model if absent.
    model: Option<String>,
    /// Text or token ids, or an array of either.
    #[schemars(schema_with = "TextInputs::schema")]
    input: Value,
    /// Number of first elements to keep; all if absent.
    dimensions: Option<NonZeroUsize>,
}

#[derive(Deserialize, JsonSchema)]
struct FormFields {
    /// Form of the vectors.
    #[serde(default, deserialize_with = "word")]
    encoding_format: Option<EmbeddingEncoding>,
    /// Pooling of the tokens' states; the model's own, or else the mean, if absent.
    #[serde(default, deserialize_with = "word")]
    pooling: Option<PoolingName>,
    /// Vectors of length 1; as the model's files say if absent.
    normalize: Option<bool>,
    /// Name of the prompt before each text: `query`, `document`, or another one of the model's files.
    prompt_name: Option<String>,
    /// Text of the prompt before each text, in place of one of the model's.
    prompt: Option<String>,
}

/// Fields of other servers.
const UNSUPPORTED: &[(&str, &[&str])] = &[
    ("add_special_tokens", &["true"]),
    ("embd_normalize", &["2"]),
    ("messages", &[]),
    ("truncate_prompt_tokens", &[]),
    ("use_activation", &["true"]),
];

const BODY: RequestBody = RequestBody {
    name: "EmbeddingRequest",
    groups: &[InputFields::json_schema, FormFields::json_schema],
    unsupported: &[UNSUPPORTED],
    example: r#"{"input": "Hello!"}"#,
};

impl EmbeddingRequest {
    /// Body of a request.
    pub const BODY: &RequestBody = &BODY;

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
        let fields = Fields::open(body, &BODY)?;
        let form: FormFields = fields.read()?;
        let pooling = form.pooling.map(|name| match name {
            PoolingName::Mean => Pooling::Mean,
            PoolingName::Last => Pooling::Last,
            PoolingName::Cls => Pooling::Cls,
        });
        let prompt = match (form.prompt, form.prompt_name) {
            (Some(text), _) => EmbeddingPrompt::Text(text),
            (None, Some(name)) => EmbeddingPrompt::Name(name),
            (None, None) => EmbeddingPrompt::Default,
        };
        // Of llama.cpp's field, only 2 is supported: length 1.
        let of_llama_cpp = fields.values().contains_key("embd_normalize").then_some(true);
        let (encoding, normalize) =
            (form.encoding_format.unwrap_or_default(), form.normalize.or(of_llama_cpp));
        let request = fields.into_group::<InputFields>()?.request(limits)?;
        Ok(Self { encoding, pooling, normalize, prompt, ..request })
    }
}

impl InputFields {
    /// Request with the default form of vectors.
    pub fn request(self, limits: &Limits) -> Result<EmbeddingRequest> {
        Ok(EmbeddingRequest {
            model: self.model,
            inputs: TextInputs::read(self.input, "input", limits.embedding_inputs)?,
            encoding: EmbeddingEncoding::default(),
            dimensions: self.dimensions.map(NonZeroUsize::get),
            pooling: None,
            normalize: None,
            prompt: EmbeddingPrompt::Default,
            cancel: CancelHandle::new(),
            keep_alive: None,
        })
    }
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

    /// Answers a request with a list of embeddings, each of length 1 unless the request or the model's files
    /// say otherwise.
    ///
    /// # Errors
    /// When the request is invalid for the model, or its execution fails.
    pub fn create(&self, request: &EmbeddingRequest) -> Result<Value> {
        let size = self.engine.embedding_size();
        let dimensions = request.dimensions.unwrap_or(size);
        if dimensions > size {
            let message = format!("`dimensions` is {dimensions}, the model's embeddings have {size}");
            return Err(ApiError::invalid_param("dimensions", message));
        }
        let config = self.engine.embedding_config();
        let texts = request.inputs.to_embed(&self.engine, request.prompt.of(config)?)?;
        let tokens: usize = texts.iter().map(|EmbedInput { ids, .. }| ids.len()).sum();
        let EmbeddingRequest { pooling, normalize, .. } = *request;
        let params =
            EmbedParams { pooling, normalize, adapter: self.adapter, cancel: request.cancel.clone() };
        let is_normalized = normalize.unwrap_or(config.is_normalized());
        let vectors = self.engine.embed_all(texts, &params).enumerate();
        let data = vectors.map(|(index, vector)| {
            let vector = vector.map_err(|error| api_error(&request.inputs.path(index), error))?;
            let vector = shortened(vector, dimensions, is_normalized);
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
}

/// First elements of a vector, which are scaled to length 1 again if there are others and it had that length.
fn shortened(mut vector: Vec<f32>, dimensions: usize, is_normalized: bool) -> Vec<f32> {
    if dimensions >= vector.len() {
        return vector;
    }
    vector.truncate(dimensions);
    if is_normalized { normalized(vector) } else { vector }
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
