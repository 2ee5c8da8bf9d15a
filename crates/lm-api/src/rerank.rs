//! Reranking: the relevance of documents to a query, by a cross-encoder, or by a causal model that answers
//! yes or no.

use std::num::NonZeroUsize;

use lm_conversation::{CancelHandle, Engine};
use lm_session::{AdapterId, Error as Session, ModelOutput, TextPair, TextSegment, TokenId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::fields::{Fields, json_type};
use crate::limits::{Limits, at_most};
use crate::request_body::RequestBody;
use crate::text_inputs::api_error;

/// Text before the instruction.
///
/// # Source
/// The model card of Qwen3-Reranker, as the instruction, the labels and the text after the document.
const PREFIX: &str = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
const SUFFIX: &str = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
const INSTRUCTION: &str = "Given a web search query, retrieve relevant passages that answer the query";
/// The answers, whose probabilities are compared.
const ANSWERS: [&str; 2] = ["yes", "no"];

/// Request for the relevance of documents, in the form of Jina, Cohere and llama.cpp.
///
/// ```
/// use lm_api::RerankRequest;
/// use serde_json::json;
///
/// let body = json!({"query": "Where is Paris?", "documents": ["In France.", {"text": "A name."}], "top_n":
/// 1}); let request = RerankRequest::from_json(body)?; assert_eq!((request.documents.len(), request.top_n),
/// (2, Some(1)));
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RerankRequest {
    /// Name of the model, if the request has one.
    pub model: Option<String>,
    /// The query.
    pub query: String,
    /// The documents; at least one.
    pub documents: Vec<String>,
    /// Maximum number of results; all if `None`.
    pub top_n: Option<usize>,
    /// True for results with the text of their document. Default: false.
    pub return_documents: bool,
    /// Task of a causal model, of the extension `instruction`; that of web searches if `None`. Cross-encoders
    /// have none.
    pub instruction: Option<String>,
    /// Cancels the request.
    pub cancel: CancelHandle,
}

#[derive(Deserialize, JsonSchema)]
struct RerankFields {
    /// Name or alias of a model; the server's first model if absent.
    model: Option<String>,
    /// The query.
    query: String,
    /// Texts, or objects with a `text`.
    #[schemars(schema_with = "documents_schema")]
    documents: Value,
    /// Maximum number of results; all if absent.
    top_n: Option<NonZeroUsize>,
    /// Results have the text of their document.
    #[serde(default)]
    return_documents: bool,
    /// Task of a causal model, in a sentence; that of web searches if absent.
    instruction: Option<String>,
}

fn documents_schema(_: &mut SchemaGenerator) -> Schema {
    let text = json!({"type": "string"});
    let object = json!({"type": "object", "required": ["text"], "properties": {"text": text}});
    json_schema!({"type": "array", "minItems": 1, "items": {"anyOf": [text, object]}})
}

/// Fields of other servers.
const UNSUPPORTED: &[(&str, &[&str])] = &[
    ("max_chunks_per_doc", &[]),
    ("max_tokens_per_doc", &[]),
    ("rank_fields", &["[]", r#"["text"]"#]),
    ("truncate_prompt_tokens", &[]),
    ("use_activation", &["true"]),
];

const BODY: RequestBody = RequestBody {
    name: "RerankRequest",
    groups: &[RerankFields::json_schema],
    unsupported: &[UNSUPPORTED],
    example: r#"{"query": "Where is Paris?", "documents": ["In France."]}"#,
};

impl RerankRequest {
    /// Body of a request.
    pub const BODY: &RequestBody = &BODY;

    /// Creates a request with default settings.
    pub fn new(query: impl Into<String>, documents: Vec<String>) -> Self {
        Self {
            model: None,
            query: query.into(),
            documents,
            top_n: None,
            return_documents: false,
            instruction: None,
            cancel: CancelHandle::new(),
        }
    }

    /// Reads a request body within the default [`Limits`]. Unknown fields are ignored.
    ///
    /// # Errors
    /// When a field is invalid; [`ApiError::param`] names it.
    pub fn from_json(body: Value) -> Result<Self> {
        Self::from_json_within(body, &Limits::default())
    }

    /// [`RerankRequest::from_json`] within the given limits.
    ///
    /// # Errors
    /// As [`RerankRequest::from_json`].
    pub fn from_json_within(body: Value, limits: &Limits) -> Result<Self> {
        let fields: RerankFields = Fields::open(body, &BODY)?.into_group()?;
        if fields.query.is_empty() {
            return Err(ApiError::invalid_param("query", "`query` is empty"));
        }
        Ok(Self {
            model: fields.model,
            top_n: fields.top_n.map(NonZeroUsize::get),
            return_documents: fields.return_documents,
            instruction: fields.instruction,
            ..Self::new(fields.query, documents(fields.documents, limits)?)
        })
    }
}

fn documents(value: Value, limits: &Limits) -> Result<Vec<String>> {
    let Value::Array(items) = value else {
        return Err(ApiError::unexpected("documents", json_type(&value), "an array of texts"));
    };
    if items.is_empty() {
        return Err(ApiError::invalid_param("documents", "`documents` is empty"));
    }
    at_most("documents", items.len(), limits.embedding_inputs, "texts")?;
    items.into_iter().enumerate().map(|(index, item)| document(item, index)).collect()
}

fn document(item: Value, index: usize) -> Result<String> {
    let text = match item {
        Value::Object(mut fields) => fields.remove("text").unwrap_or_default(),
        text => text,
    };
    match text {
        Value::String(text) => Ok(text),
        other => {
            let at = format!("documents[{index}]");
            Err(ApiError::unexpected(at, json_type(&other), "text, or an object with the field `text`"))
        }
    }
}

/// Relevance of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Index among the documents of the request.
    pub index: usize,
    /// Probability that the document is relevant, from 0 to 1; of a cross-encoder its logit, if that is its
    /// activation.
    pub score: f64,
}

/// Reranking on an engine: by a cross-encoder, a classifier of one label for the pair of query and document;
/// or by a causal model in the form of Qwen3-Reranker, the probability of the answer `yes` against `no` to
/// its prompt. Requests may run on any number of threads; the engine batches them.
#[derive(Debug, Clone)]
pub struct Reranker {
    engine: Engine,
    adapter: Option<AdapterId>,
}

impl Reranker {
    /// Creates a reranker on an engine, with a LoRA adapter or without one.
    pub fn new(engine: Engine, adapter: Option<AdapterId>) -> Self {
        Self { engine, adapter }
    }

    /// Answers a request with the list of the most relevant documents.
    ///
    /// # Errors
    /// As [`Reranker::rank`].
    pub fn create(&self, request: &RerankRequest) -> Result<Value> {
        let (ranked, tokens) = self.rank(request)?;
        let results = ranked.into_iter().map(|ranked| ranked.json(request));
        Ok(json!({
            "object": "list",
            "results": results.collect::<Vec<_>>(),
            "model": request.model.as_deref().unwrap_or(self.engine.name()),
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }))
    }

    /// Returns the most relevant documents, the most relevant first, and the number of tokens of all prompts.
    ///
    /// # Errors
    /// When the model has several labels or no tokens for the answers, a document with the query is longer
    /// than the context, an instruction is given to a cross-encoder, or the execution fails.
    pub fn rank(&self, request: &RerankRequest) -> Result<(Vec<Ranked>, usize)> {
        let (scores, tokens) = match self.engine.model_info().output {
            ModelOutput::Labels { count: 1, .. } => self.cross_encoded(request)?,
            ModelOutput::Labels { count, .. } => {
                let message = format!("the model is no reranker: it has {count} labels, expected 1");
                return Err(ApiError::invalid_request(message));
            }
            ModelOutput::Tokens | ModelOutput::HiddenStates => self.answered(request)?,
        };
        let ranked = scores.into_iter().enumerate().map(|(index, score)| Ranked { index, score });
        let mut ranked: Vec<Ranked> = ranked.collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked.truncate(request.top_n.unwrap_or(usize::MAX));
        Ok((ranked, tokens))
    }

    /// Scores of the documents by a cross-encoder, and the number of tokens of all pairs.
    fn cross_encoded(&self, request: &RerankRequest) -> Result<(Vec<f64>, usize)> {
        if request.instruction.is_some() {
            let message = "the model is a cross-encoder, which takes no `instruction`";
            return Err(ApiError::invalid_param("instruction", message));
        }
        let pair = |(index, document): (usize, &String)| {
            let pair = self.engine.encode_pair([&request.query, document]);
            pair.map_err(|error| api_error(&path(index), error))
        };
        let pairs: Vec<TextPair> = request.documents.iter().enumerate().map(pair).collect::<Result<_>>()?;
        let tokens = pairs.iter().map(|pair| pair.ids.len()).sum();
        let activation = self.engine.cross_encoder_config().activation;
        let logits = self.engine.classify_all(pairs, self.adapter, &request.cancel);
        let logits = logits.map_err(|error| api_error("model", error))?;
        let scores = logits.enumerate().map(|(index, logits)| {
            let logits = logits.map_err(|error| api_error(&path(index), error))?;
            Ok(activation.apply(logits[0]))
        });
        Ok((scores.collect::<Result<_>>()?, tokens))
    }

    /// Scores of the documents by the answers of a causal model, and the number of tokens of all prompts.
    fn answered(&self, request: &RerankRequest) -> Result<(Vec<f64>, usize)> {
        let answers = self.answers()?;
        let prompts = (0..request.documents.len()).map(|index| self.prompt(request, index));
        let prompts: Vec<Vec<TokenId>> = prompts.collect::<Result<_>>()?;
        let tokens = prompts.iter().map(Vec::len).sum();
        let logits = self.engine.next_logits(prompts, &answers, self.adapter, &request.cancel);
        let scores = logits.enumerate().map(|(index, logits)| {
            let logits = logits.map_err(|error| api_error(&path(index), error))?;
            Ok(share(&logits))
        });
        Ok((scores.collect::<Result<_>>()?, tokens))
    }

    /// Ids of the answers.
    fn answers(&self) -> Result<[TokenId; 2]> {
        let [yes, no] = ANSWERS.map(|answer| {
            let message =
                || format!("the model is no reranker that is supported: it has no token `{answer}`");
            self.engine.tokenizer().token_id(answer).ok_or_else(|| ApiError::invalid_request(message()))
        });
        Ok([yes?, no?])
    }

    /// Prompt of a document. Its parts are encoded on their own, as the model card does.
    fn prompt(&self, request: &RerankRequest, index: usize) -> Result<Vec<TokenId>> {
        use TextSegment::{Content, Template};
        let instruction = request.instruction.as_deref().map_or(Template(INSTRUCTION), Content);
        let middle = [
            Template("<Instruct>: "),
            instruction,
            Template("\n<Query>: "),
            Content(&request.query),
            Template("\n<Document>: "),
            Content(&request.documents[index]),
        ];
        let parts = [&[Template(PREFIX)][..], &middle, &[Template(SUFFIX)]];
        let parts = parts.map(|part| self.engine.tokenizer().encode_segments(part));
        let parts: Result<Vec<_>, _> = parts.into_iter().collect();
        Ok(parts.map_err(|error| api_error(&path(index), Session::from(error)))?.concat())
    }
}

impl Ranked {
    /// The result in a response to this request.
    pub fn json(self, request: &RerankRequest) -> Value {
        let Self { index, score } = self;
        match request.documents.get(index).filter(|_| request.return_documents) {
            Some(text) => json!({"index": index, "relevance_score": score, "document": {"text": text}}),
            None => json!({"index": index, "relevance_score": score}),
        }
    }
}

/// Path of a document, for errors.
fn path(index: usize) -> String {
    format!("documents[{index}]")
}

/// Probability of the first of two logits, if all others are left out.
fn share(logits: &[f32]) -> f64 {
    match *logits {
        [yes, no] => 1.0 / (1.0 + (f64::from(no) - f64::from(yes)).exp()),
        _ => 0.0,
    }
}
