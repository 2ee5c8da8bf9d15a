//! `keep_alive` of requests of Ollama's API.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::fields::shown;

/// Time for which a request keeps its model in memory after it; `None` is for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive(pub Option<Duration>);

impl KeepAlive {
    /// Reads `keep_alive` of a body: seconds, or text such as `"10m"` or `"1h30m"`; 0 unloads the model after
    /// the request, and a negative time keeps it. `None` if it is absent or null.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lm_api::KeepAlive;
    /// use serde_json::json;
    ///
    /// let minutes = KeepAlive(Some(Duration::from_secs(300)));
    /// assert_eq!(KeepAlive::of(&json!({"keep_alive": "5m"}))?, Some(minutes));
    /// assert_eq!(KeepAlive::of(&json!({"keep_alive": 300}))?, Some(minutes));
    /// assert_eq!(KeepAlive::of(&json!({"keep_alive": -1}))?, Some(KeepAlive(None)));
    /// # Ok::<(), lm_api::ApiError>(())
    /// ```
    ///
    /// # Errors
    /// When it is neither.
    pub fn of(body: &Value) -> Result<Option<Self>> {
        Self::read(body.get("keep_alive").cloned().filter(|value| !value.is_null()))
    }

    /// Reads the value of the field.
    pub(crate) fn read(value: Option<Value>) -> Result<Option<Self>> {
        let Some(value) = value else { return Ok(None) };
        let seconds = match &value {
            Value::Number(seconds) => seconds.as_f64(),
            Value::String(text) => text.parse::<SignedDuration>().ok().map(|time| time.as_secs_f64()),
            _ => None,
        };
        let expected = "seconds, or text such as \"10m\"";
        let seconds = seconds.ok_or_else(|| ApiError::unexpected("keep_alive", shown(&value), expected))?;
        // A time that is too long for the type is for good.
        Ok(Some(Self(Duration::try_from_secs_f64(seconds).ok())))
    }

    /// True if the model is unloaded after the request.
    pub fn is_zero(self) -> bool {
        self.0 == Some(Duration::ZERO)
    }
}

/// Endpoint of a request that only loads or unloads its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OllamaLoad {
    /// `/api/chat` without messages.
    Chat,
    /// `/api/generate` without a prompt.
    Generate,
    /// `/api/embeddings` with an empty prompt.
    Embedding,
}

impl OllamaLoad {
    /// True if a body of this endpoint has nothing to answer.
    pub fn is(self, body: &Value) -> bool {
        match self {
            Self::Chat => body.get("messages").is_some_and(|messages| messages == &json!([])),
            Self::Generate => {
                body.is_object() && body.get("prompt").is_none_or(|prompt| prompt.is_null() || prompt == "")
            }
            Self::Embedding => body.get("prompt").is_some_and(|prompt| prompt == ""),
        }
    }

    /// The response: the model was loaded, or is unloaded.
    pub fn response(self, model: &str, keep_alive: Option<KeepAlive>) -> Value {
        let done_reason = if keep_alive.is_some_and(KeepAlive::is_zero) { "unload" } else { "load" };
        let mut object = json!({"model": model, "created_at": Timestamp::now().to_string(), "done": true, "done_reason": done_reason});
        match self {
            Self::Chat => object["message"] = json!({"role": "assistant", "content": ""}),
            Self::Generate => object["response"] = "".into(),
            Self::Embedding => object = json!({"embedding": []}),
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alive_is_seconds_or_text() {
        let of = |value: Value| KeepAlive::of(&json!({"keep_alive": value})).map_err(|error| error.param);
        let kept = |seconds| Ok(Some(KeepAlive(Some(Duration::from_secs_f64(seconds)))));
        for (value, expected) in [
            (json!(null), Ok(None)),
            (json!(0), kept(0.0)),
            (json!(1.5), kept(1.5)),
            (json!("1h30m"), kept(5400.0)),
            (json!("300ms"), kept(0.3)),
            (json!("0s"), kept(0.0)),
            (json!("-5m"), Ok(Some(KeepAlive(None)))),
            (json!(1e300), Ok(Some(KeepAlive(None)))),
            (json!("soon"), Err(Some("keep_alive".to_owned()))),
            (json!(["5m"]), Err(Some("keep_alive".to_owned()))),
        ] {
            assert_eq!(of(value.clone()), expected, "{value}");
        }
    }
}
