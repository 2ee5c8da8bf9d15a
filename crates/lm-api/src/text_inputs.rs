//! Texts of a request that has no messages: one, or an array of them.

use lm_conversation::Engine;
use lm_session::{EmbedInput, Error as Session, TextSegment, TokenId};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::error::{ApiError, PromptLength, Result};
use crate::fields::{json_type, shown};
use crate::limits::at_most;

/// Text or tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextInput {
    /// Text; the tokenizer's own tokens around a text, such as BOS, are added.
    Text(String),
    /// Token ids, used unchanged.
    Ids(Vec<TokenId>),
}

/// The texts of a request, at least one, none of them empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextInputs {
    name: &'static str,
    /// True if the field is one text, not an array of them; errors then name the field and no element.
    single: bool,
    texts: Vec<TextInput>,
}

impl TextInputs {
    /// Reads the field `name`: text, token ids, or an array of either with at most `limit` elements.
    pub(crate) fn read(value: Value, name: &'static str, limit: usize) -> Result<Self> {
        let items = match value {
            Value::Array(items) if !items.first().is_some_and(Value::is_number) => items,
            single => return Ok(Self { name, single: true, texts: vec![text_input(single, name)?] }),
        };
        if items.is_empty() {
            return Err(ApiError::invalid_param(name, format!("`{name}` is empty")));
        }
        at_most(name, items.len(), limit, "texts")?;
        let items = items.into_iter().enumerate();
        let texts = items.map(|(index, item)| text_input(item, &format!("{name}[{index}]")));
        Ok(Self { name, single: false, texts: texts.collect::<Result<_>>()? })
    }

    /// One text of the field `name`, which may be empty.
    pub(crate) fn one(name: &'static str, text: String) -> Self {
        Self { name, single: true, texts: vec![TextInput::Text(text)] }
    }

    /// Schema of the field.
    pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
        let text = json!({"type": "string", "minLength": 1});
        let ids = json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}});
        let texts = json!({"type": "array", "minItems": 1, "items": {"anyOf": [text, ids]}});
        json_schema!({"anyOf": [text, ids, texts]})
    }

    /// The texts.
    pub fn texts(&self) -> &[TextInput] {
        &self.texts
    }

    /// Path of a text, for errors.
    pub(crate) fn path(&self, index: usize) -> String {
        if self.single { self.name.to_owned() } else { format!("{}[{index}]", self.name) }
    }

    /// Token ids of the texts; `segment` says whether special tokens that are spelled in a text are tokens.
    pub(crate) fn ids(
        &self,
        engine: &Engine,
        segment: for<'a> fn(&'a str) -> TextSegment<'a>,
    ) -> Result<Vec<Vec<TokenId>>> {
        let encode = |text: &str| Ok(engine.tokenizer().encode_with_special_tokens(segment(text))?.into());
        Ok(self.inputs(engine, encode)?.into_iter().map(|input| input.ids).collect())
    }

    /// Inputs for embeddings; texts are preceded by `prompt`.
    pub(crate) fn to_embed(&self, engine: &Engine, prompt: &str) -> Result<Vec<EmbedInput>> {
        self.inputs(engine, |text| EmbedInput::of_text(engine, prompt, text))
    }

    fn inputs(
        &self,
        engine: &Engine,
        encode: impl Fn(&str) -> Result<EmbedInput, Session>,
    ) -> Result<Vec<EmbedInput>> {
        let texts = self.texts.iter().enumerate();
        texts.map(|(index, input)| input.encoded(engine, &encode, &self.path(index))).collect()
    }
}

impl TextInput {
    fn encoded(
        &self,
        engine: &Engine,
        encode: impl Fn(&str) -> Result<EmbedInput, Session>,
        at: &str,
    ) -> Result<EmbedInput> {
        let width = engine.model_info().logits_width;
        let input = match self {
            Self::Ids(ids) => ids.clone().into(),
            Self::Text(text) => encode(text).map_err(|error| api_error(at, error))?,
        };
        match input.ids.iter().find(|&&id| id as usize >= width) {
            None => Ok(input),
            Some(id) => {
                let message = format!("`{at}` has the token id {id}, the model has ids below {width}");
                Err(ApiError::invalid_param(at, message))
            }
        }
    }
}

/// Reads a text or an array of token ids.
fn text_input(input: Value, at: &str) -> Result<TextInput> {
    let is_empty = match &input {
        Value::String(text) => text.is_empty(),
        Value::Array(ids) => ids.is_empty(),
        _ => false,
    };
    if is_empty {
        return Err(ApiError::invalid_param(at, format!("`{at}` is empty")));
    }
    match input {
        Value::String(text) => Ok(TextInput::Text(text)),
        Value::Array(ids) => {
            let ids = ids.iter().enumerate().map(|(index, id)| {
                let id = id.as_u64().and_then(|id| TokenId::try_from(id).ok()).ok_or(id);
                id.map_err(|got| ApiError::unexpected(format!("{at}[{index}]"), shown(got), "a token id"))
            });
            Ok(TextInput::Ids(ids.collect::<Result<_>>()?))
        }
        other => Err(ApiError::unexpected(at, json_type(&other), "text or an array of token ids")),
    }
}

/// Converts the error of a text.
pub(crate) fn api_error(at: &str, error: Session) -> ApiError {
    let message = error.to_string();
    match error {
        Session::PromptTooLong { prompt_tokens: tokens, context_tokens: context } => {
            ApiError::prompt_too_long(at, PromptLength { tokens, context })
        }
        Session::CacheFull { .. } => {
            ApiError::invalid_param(at, message).with_code("context_length_exceeded")
        }
        Session::EmptyPrompt => ApiError::invalid_param(at, message),
        Session::Cancelled => lm_conversation::Error::Cancelled.into(),
        error => lm_conversation::Error::Session(error).into(),
    }
}
