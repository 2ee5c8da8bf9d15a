//! Keywords that the grammar library's own translator of schemas does not know.

use lm_template::Value;

use super::document::escaped;
use super::keywords::{Role, role};
use super::pattern::is_plain;

/// Takes the keywords that the library cannot say out of a normalized schema: where each stood, and its name.
pub(crate) fn leave_out_unsayable(schema: &mut Value) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    walk(schema, "#", &mut found);
    found
}

fn walk(schema: &mut Value, path: &str, found: &mut Vec<(String, &'static str)>) {
    let Value::Object(map) = schema else { return };
    let is_plain = |pattern: &Value| pattern.as_str().is_some_and(is_plain);
    if map.get("pattern").is_some_and(|pattern| !is_plain(pattern)) {
        map.shift_remove("pattern");
        found.push((path.to_owned(), "pattern"));
    }
    if map.shift_remove("propertyNames").is_some() {
        found.push((path.to_owned(), "propertyNames"));
    }
    for (key, value) in map {
        let at = format!("{path}/{}", escaped(key));
        let is_map = key == "$defs" || role(key) == Some(Role::SchemaMap);
        match value {
            Value::Object(schemas) if is_map => {
                schemas
                    .iter_mut()
                    .for_each(|(name, schema)| walk(schema, &format!("{at}/{}", escaped(name)), found));
            }
            Value::Array(schemas) if role(key) == Some(Role::SchemaList) => {
                schemas
                    .iter_mut()
                    .enumerate()
                    .for_each(|(place, schema)| walk(schema, &format!("{at}/{place}"), found));
            }
            schema if role(key) == Some(Role::Schema) || key == "items" => walk(schema, &at, found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_are_left_out_where_they_are_schemas() {
        let names = json!({"propertyNames": {"maxLength": 2}, "properties": {"propertyNames": {"type": "string", "pattern": "^(?=a)b$"}}});
        let mut schema = json!({"anyOf": [names, {"enum": [{"propertyNames": 1}]}], "$defs": {"pattern": {"pattern": "(^a)?b"}}});
        let found = leave_out_unsayable(&mut schema);
        let kept = json!({"anyOf": [{"properties": {"propertyNames": {"type": "string"}}}, {"enum": [{"propertyNames": 1}]}], "$defs": {"pattern": {}}});
        assert_eq!(schema, kept);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["#/anyOf/0", "#/anyOf/0/properties/propertyNames", "#/$defs/pattern"]);
    }
}
