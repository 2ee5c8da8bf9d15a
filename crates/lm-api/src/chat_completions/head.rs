//! Fields that all objects of one completion share.

use serde_json::{Map, Value};

use crate::ids::{random_id, seconds_since_1970};

/// Id, time and model of a completion, the same in all chunks of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionHead {
    /// Id: `chatcmpl-`, or `cmpl-`, and random digits.
    pub id: String,
    /// Time of creation, in seconds since 1970.
    pub created: u64,
    /// Name of the model.
    pub model: String,
}

impl CompletionHead {
    /// Creates the head of a new completion.
    pub fn new(model: impl Into<String>) -> Self {
        Self::with_id("chatcmpl-", model)
    }

    /// Creates the head of a new completion whose id begins with `prefix`.
    pub(crate) fn with_id(prefix: &str, model: impl Into<String>) -> Self {
        Self { id: random_id(prefix), created: seconds_since_1970(), model: model.into() }
    }

    /// Creates an object of a stream; with `has_usage` it has the field of the usage, null.
    pub(crate) fn chunk(&self, object: &str, choices: Vec<Value>, has_usage: bool) -> Value {
        let mut chunk = self.object(object, choices);
        if has_usage {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        Value::Object(chunk)
    }

    /// Creates an object of this completion.
    pub(crate) fn object(&self, object: &str, choices: Vec<Value>) -> Map<String, Value> {
        let fingerprint = concat!("lm-", env!("CARGO_PKG_VERSION"));
        let fields = [
            ("id", self.id.as_str().into()),
            ("object", object.into()),
            ("created", self.created.into()),
            ("model", self.model.as_str().into()),
            ("system_fingerprint", fingerprint.into()),
            ("choices", choices.into()),
        ];
        fields.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
    }
}
