//! Arguments as keys and values in markup.

use lm_template::Value;
use serde_json::Map;

use super::Layout;
use super::calls::space;
use super::lark::{literal, one_of, sequence};
use super::values::{Member, Values, listed, named_properties, types_of};
use crate::dialect::{ParameterCall, TypeAttribute};

/// A call of `name` whose parameters are markup; none when no arguments fit the schema.
pub(super) fn parameters(
    values: &mut Values<'_>,
    call: &ParameterCall,
    name: &str,
    schema: &Value,
) -> Option<String> {
    let mut options = Vec::new();
    for schema in values.objects(schema) {
        options.push(arguments(values, call, &schema)?);
    }
    if options.is_empty() {
        return None;
    }
    let between = space(values.lark, call.between, values.layout);
    let (open, close) = (values.lark.marker(call.name.open), values.lark.marker(call.name.close));
    let end = values.lark.marker(call.end);
    Some(sequence([&*open, &literal(name), &close, &between, &one_of(&options), &end]))
}

fn arguments(values: &mut Values<'_>, call: &ParameterCall, schema: &Map<String, Value>) -> Option<String> {
    let between = space(values.lark, call.between, values.layout);
    let mut members = Vec::new();
    for (name, schema, required) in named_properties(schema) {
        match value(values, call, &schema, &format!("#/properties/{name}")) {
            Some(value) => {
                let (open, close) = (values.lark.marker(call.key.open), values.lark.marker(call.key.close));
                let body = sequence([&*open, &literal(&name), &close, &value, &between]);
                members.push(Member { body: values.lark.rule(body), required });
            }
            None if required => return None,
            None => {}
        }
    }
    Some(values.member_list(&members, None, ""))
}

/// What stands between a key and the next one: the type, the value, the markers around it.
fn value(values: &mut Values<'_>, call: &ParameterCall, schema: &Value, path: &str) -> Option<String> {
    let mut options = Vec::new();
    for schema in values.plain(schema) {
        for (name, body) in of_types(values, call, &schema, path) {
            let attribute = call.type_attribute.as_ref().map(|attribute| attribute_text(attribute, name));
            let attribute = attribute.map_or(String::new(), |text| values.lark.marker(&text));
            let open = values.lark.marker(call.value.open);
            options.push(values.lark.rule(sequence([&*attribute, &open, &body])));
        }
    }
    (!options.is_empty()).then(|| one_of(&options))
}

/// The bodies of values, closing marker included, by their type.
fn of_types(
    values: &mut Values<'_>,
    call: &ParameterCall,
    schema: &Map<String, Value>,
    path: &str,
) -> Vec<(&'static str, String)> {
    if let Some(listed) = listed(schema) {
        return listed.iter().map(|value| (type_name(value), constant(values, call, value))).collect();
    }
    let mut bodies = Vec::new();
    for name in types_of(schema) {
        if name == "string" {
            bodies.push(("string", text(values, call, schema, path)));
            continue;
        }
        let mut one = schema.clone();
        one.insert("type".to_owned(), name.into());
        if let Some(body) = values.value(&Value::Object(one), path) {
            let body = enclosed(values, call, &body);
            bodies.extend(TYPE_NAMES.iter().find(|known| **known == name).map(|name| (*name, body)));
        }
    }
    bodies
}

const TYPE_NAMES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A listed value: a text as it is, another one as JSON.
fn constant(values: &mut Values<'_>, call: &ParameterCall, value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => values.spelling.write(other),
    };
    enclosed(values, call, &literal(&text))
}

fn enclosed(values: &mut Values<'_>, call: &ParameterCall, body: &str) -> String {
    let layout = values.layout;
    let after = space(values.lark, call.value.after_open, layout);
    let before = space(values.lark, call.value.before_close, layout);
    sequence([&*after, body, &before, &values.lark.marker(call.value.close)])
}

/// A text as it is. Any layout around it reads as a part of it, or is taken off.
fn text(values: &mut Values<'_>, call: &ParameterCall, schema: &Map<String, Value>, path: &str) -> String {
    let content = values.text_rules(schema, path).raw(&[call.value.close]);
    let exact = values.layout == Layout::Exact;
    let (after, before) = if exact { (call.value.after_open, call.value.before_close) } else { ("", "") };
    let rest = values.lark.up_to(&content, before, call.value.close);
    sequence([&*literal(after), &rest])
}

fn attribute_text(attribute: &TypeAttribute, name: &str) -> String {
    let others = || attribute.others.iter().find(|(own, _)| own.is_empty()).map_or("", |(_, word)| word);
    let word = match name {
        "string" => attribute.text,
        name => attribute.others.iter().find(|(own, _)| *own == name).map_or_else(others, |(_, word)| word),
    };
    format!("{}{word}{}", attribute.open, attribute.close)
}
