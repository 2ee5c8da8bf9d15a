//! `response_format` of a request.

use lm_conversation::ResponseFormat;
use serde_json::Value;

use crate::error::{ApiError, Result};
use crate::fields::shown;

/// Reads `response_format`: `text` is `None`. The schema of `json_schema` may also be given without the object around it, as
/// in the Responses API.
///
/// ```
/// use lm_api::{ResponseFormat, response_format};
/// use serde_json::json;
///
/// assert_eq!(response_format(&json!({"type": "text"}))?, None);
/// let format = json!({"type": "json_schema", "json_schema": {"name": "age", "schema": {"type": "integer"}}});
/// assert_eq!(response_format(&format)?, Some(ResponseFormat::JsonSchema(json!({"type": "integer"}))));
/// # Ok::<(), lm_api::ApiError>(())
/// ```
///
/// # Errors
/// When the value is none of `text`, `json_object` and `json_schema`, or the schema is missing.
pub fn response_format(format: &Value) -> Result<Option<ResponseFormat>> {
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(ResponseFormat::JsonObject)),
        Some("json_schema") => {
            let schema = format.pointer("/json_schema/schema").or_else(|| format.get("schema"));
            let missing = || ApiError::invalid_param("response_format.json_schema", "`schema` is missing");
            let schema = schema.filter(|schema| !schema.is_null()).ok_or_else(missing)?;
            Ok(Some(ResponseFormat::JsonSchema(schema.clone())))
        }
        _ => {
            let expected = r#"expected a `type` of "text", "json_object" or "json_schema""#;
            let message = format!("`response_format` is {}, {expected}", shown(format));
            Err(ApiError::invalid_param("response_format", message))
        }
    }
}
