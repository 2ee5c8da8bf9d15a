//! Grammar of a JSON text by itself.

use lm_template::Value;

use super::ReplyGrammar;
use super::lark::Lark;
use super::values::{Spelling, Values};
use crate::layout::Layout;
use crate::schema::SchemaError;
use crate::schema::{Reading, normalized};

/// Builds the grammar of the JSON texts that match `schema`, for validating texts or decoding without a chat
/// format.
///
/// # Errors
/// [`SchemaError`] if it is not a schema, has no value, or has no grammar.
///
/// ```
/// use lm_processors::{Layout, json_grammar};
/// use serde_json::json;
///
/// let schema = json!({"type": "string", "title": "A word", "not": {"const": "no"}});
/// let json = json_grammar(&schema, Layout::Any)?;
/// assert!(json.grammar.lark.contains("start: "));
/// assert_eq!((json.unenforced[0].path.as_str(), json.unenforced[0].keyword.as_str()), ("#", "not"));
/// # Ok::<(), lm_processors::SchemaError>(())
/// ```
pub fn json_grammar(schema: &Value, layout: Layout) -> Result<ReplyGrammar, SchemaError> {
    let mut normalized = normalized(schema, Reading::Open)?;
    let mut lark = Lark::default();
    let mut values = Values::new(&mut lark, Spelling::ANSWER, layout, &normalized.schema);
    let value = values.value(&normalized.schema, "#");
    let found = std::mem::take(&mut values.unenforced);
    let start = value.ok_or_else(|| Values::fault(&normalized, layout))?;
    let mut unenforced = std::mem::take(&mut normalized.unenforced);
    unenforced.extend(normalized.in_document(found));
    Ok(ReplyGrammar { grammar: lark.finish(&start), unenforced: unenforced.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_are_reported_with_their_pointer() {
        let number = json!({"type": "number", "multipleOf": 1001});
        let union = json!({"oneOf": [{"pattern": "^a", "type": "string"}, {"type": "null"}], "pattern": "b"});
        let schema = json!({
            "type": "object",
            "properties": {"a/b": {"$ref": "#/definitions/list"}, "c": union},
            "definitions": {"list": {"type": "array", "items": number}},
        });
        let found = json_grammar(&schema, Layout::Exact).expect("a grammar").unenforced;
        let found: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.keyword.as_str())).collect();
        assert_eq!(found, [("#/definitions/list/items", "multipleOf"), ("#/properties/c", "oneOf")]);
    }
}
