//! Schemas of OpenAI's strict mode.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::{Map, Value, json};

/// Closes the arguments of a tool: no others, all of them required, and nullable if they were optional.
/// Objects in them are closed, too; their optional members are `Option`s, which are nullable already, or have
/// a serde default, which rejects `null`.
pub(super) fn close(arguments: &mut Schema) {
    let required: Vec<Value> =
        arguments.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = arguments.get_mut("properties") {
        let optional = |(name, _): &(&String, &mut Value)| !required.contains(&json!(name));
        properties.iter_mut().filter(optional).for_each(|(_, property)| allow_null(property));
    }
    close_objects(arguments);
}

/// An object without declared members, a map, stays unchanged.
fn close_objects(schema: &mut Schema) {
    transform_subschemas(&mut close_objects, schema);
    let Some(object) = schema.as_object_mut() else { return };
    let Some(Value::Object(properties)) = object.get("properties") else { return };
    let names: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
    object.insert("required".to_owned(), names.into());
    object.insert("additionalProperties".to_owned(), false.into());
}

/// Allows `null` beside the values of a schema.
fn allow_null(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::Array(choices)) = object.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    match object.get_mut("type") {
        Some(Value::String(name)) if name != "null" => {
            let either = json!([name, "null"]);
            object.insert("type".to_owned(), either);
        }
        Some(Value::Array(names)) if !names.contains(&json!("null")) => names.push("null".into()),
        Some(_) => {}
        None => allow_null_without_type(object),
    }
}

fn allow_null_without_type(object: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(schemas)) = object.get_mut(keyword) {
            let null = json!({"type": "null"});
            if !schemas.contains(&null) {
                schemas.push(null);
            }
            return;
        }
    }
    if !object.contains_key("$ref") && !object.contains_key("const") {
        return; // Any value is allowed, or the choices are.
    }
    let description = object.shift_remove("description");
    let schema = Value::Object(std::mem::take(object));
    object.insert("anyOf".to_owned(), json!([schema, {"type": "null"}]));
    object.extend(description.map(|text| ("description".to_owned(), text)));
}
