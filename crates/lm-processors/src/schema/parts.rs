//! Parts of a schema: its subschemas, definitions, names and types, as its keywords state them.

use lm_template::Value;

use super::node::Object;

/// List of a keyword: schemas (`allOf`, `anyOf`, `prefixItems`), or values (`enum`).
pub(crate) fn list<'s>(schema: &'s Object, keyword: &str) -> Option<&'s [Value]> {
    schema.get(keyword)?.as_array().map(Vec::as_slice)
}

/// Name of the definition that a schema in normal form refers to.
pub(crate) fn definition(schema: &Object) -> Option<&str> {
    schema.get("$ref")?.as_str().and_then(definition_name)
}

/// Name in a reference of the normal form: `#/$defs/name`.
pub(crate) fn definition_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/$defs/")
}

/// Names of the required properties.
pub(crate) fn required(schema: &Object) -> impl Iterator<Item = &str> {
    list(schema, "required").unwrap_or_default().iter().filter_map(Value::as_str)
}

/// Schema of a declared property.
pub(crate) fn declared<'s>(schema: &'s Object, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

/// Schema of a property: the declared one, or that of further properties. `None` if any value is allowed, or
/// the name may have the schema of a pattern.
pub(super) fn property<'s>(schema: &'s Object, name: &str) -> Option<&'s Value> {
    let further = || schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
    declared(schema, name).or_else(further)
}

/// Names in `type`; `None` without the keyword.
pub(crate) fn type_names(schema: &Object) -> Option<Vec<&str>> {
    names_of_types(schema.get("type")?)
}

/// Names in a value of `type`: one, or a list.
pub(crate) fn names_of_types(types: &Value) -> Option<Vec<&str>> {
    match types {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}
