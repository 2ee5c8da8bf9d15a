//! Replies written from a dialect's data, byte for byte as its family writes them.

use lm_processors::{
    BraceCall, CallBody, CallSyntax, Count, Dialect, JsonCall, JsonKey, JsonObject, NamedCall, NamedId,
    ParameterCall, PythonCall, PythonList, Tags, ToolCall, ToolSpec, Value, ValueText,
};
use serde_json::{Map, json};

/// The calls in the first syntax of `dialect`; `None` if it cannot express some of their texts.
pub fn reply(dialect: &Dialect, calls: &[ToolCall], tools: &[ToolSpec]) -> Option<String> {
    let syntax = dialect.calls.first()?;
    let bodies: Vec<String> = match &syntax.body {
        CallBody::Json(JsonCall { count: Count::List { after_open, comma, before_close }, .. }) => {
            let items: Vec<String> =
                calls.iter().map(|call| body(syntax, call, tools, 0)).collect::<Option<_>>()?;
            vec![format!("[{after_open}{}{before_close}]", items.join(comma))]
        }
        CallBody::Python(PythonCall { list: PythonList::Brackets, .. }) => {
            let items: Vec<String> =
                calls.iter().map(|call| body(syntax, call, tools, 0)).collect::<Option<_>>()?;
            vec![format!("[{}]", items.join(", "))]
        }
        _ => {
            let numbered = calls.iter().enumerate();
            numbered.map(|(at, call)| body(syntax, call, tools, at + 1)).collect::<Option<_>>()?
        }
    };
    let blocks: Vec<String> = bodies.iter().map(|body| enclosed(&syntax.call, body)).collect();
    Some(enclosed(&syntax.section, &blocks.join(syntax.separator)))
}

fn enclosed(tags: &Tags, inner: &str) -> String {
    [tags.open, tags.after_open, inner, tags.before_close, tags.close].concat()
}

fn body(syntax: &CallSyntax, call: &ToolCall, tools: &[ToolSpec], number: usize) -> Option<String> {
    let arguments = Value::Object(call.arguments.clone());
    Some(match &syntax.body {
        CallBody::Json(json) => json_call(json, &call.name, &arguments),
        CallBody::Named(named) => named_call(named, &call.name, &arguments, number),
        CallBody::Python(PythonCall { quote, .. }) => {
            let pairs = call.arguments.iter().map(|(key, value)| format!("{key}={}", python(value, *quote)));
            format!("{}({})", call.name, pairs.collect::<Vec<_>>().join(", "))
        }
        CallBody::Braces(BraceCall { before_name, quote }) => {
            format!("{before_name}{}{}", call.name, braces(&arguments, quote)?)
        }
        CallBody::Parameters(parameters) => {
            let schema = tools.iter().find(|tool| tool.name() == call.name)?.parameters();
            parameter_call(parameters, call, schema, number)?
        }
    })
}

fn json_text(value: &Value, colon: &str, comma: &str) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| json_text(item, colon, comma)).collect();
            format!("[{}]", items.join(comma))
        }
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}{colon}{}", Value::from(key.as_str()), json_text(value, colon, comma))
            };
            format!("{{{}}}", map.iter().map(member).collect::<Vec<_>>().join(comma))
        }
        other => other.to_string(),
    }
}

fn json_call(call: &JsonCall, name: &str, arguments: &Value) -> String {
    let JsonCall { colon, comma, .. } = call;
    let arguments = json_text(arguments, colon, comma);
    let JsonObject::Keys { written, .. } = call.object else {
        return format!("{{{}{colon}{arguments}}}", Value::from(name));
    };
    let member = |(key, text): &(JsonKey, &str)| {
        let value = match key {
            JsonKey::Name => Value::from(name).to_string(),
            JsonKey::Arguments => arguments.clone(),
            JsonKey::Id => "\"a1B2c3D4e\"".to_owned(),
        };
        format!("\"{text}\"{colon}{value}")
    };
    format!("{{{}}}", written.iter().map(member).collect::<Vec<_>>().join(comma))
}

fn named_call(call: &NamedCall, name: &str, arguments: &Value, number: usize) -> String {
    let id = match call.id {
        NamedId::NameAndIndex => format!(":{}", number - 1),
        _ => String::new(),
    };
    [call.before_name, name, &id, call.after_name, &json_text(arguments, ": ", ", "), call.after_arguments]
        .concat()
}

fn python(value: &Value, quote: char) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace(quote, &format!("\\{quote}"));
            format!("{quote}{text}{quote}")
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|item| python(item, quote)).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| {
                format!("{}: {}", python(&key.as_str().into(), quote), python(value, quote))
            });
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

fn braces(value: &Value, quote: &str) -> Option<String> {
    Some(match value {
        Value::String(text) if text.contains(quote) => return None,
        Value::String(text) => format!("{quote}{text}{quote}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| braces(item, quote)).collect::<Option<_>>()?;
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| {
                let plain = !key.is_empty()
                    && key.trim() == key
                    && !key.contains([':', ',', '{', '}', '[', ']', '"']);
                let key = if plain { key.clone() } else { format!("{quote}{key}{quote}") };
                Some(format!("{key}:{}", braces(value, quote)?))
            };
            format!("{{{}}}", map.iter().map(pair).collect::<Option<Vec<_>>>()?.join(","))
        }
        other => other.to_string(),
    })
}

fn parameter_call(
    call: &ParameterCall,
    tool_call: &ToolCall,
    schema: &Value,
    number: usize,
) -> Option<String> {
    let number = call.number.map_or(String::new(), |tags| format!("{}{number}{}", tags.open, tags.close));
    let mut out =
        [call.before_name, call.name.open, &tool_call.name, call.name.close, &number, call.between].concat();
    for (key, value) in &tool_call.arguments {
        out += &parameter(call, key, value, &argument_schema(schema, key, &tool_call.arguments), schema)?;
    }
    Some(out + call.end)
}

/// Schema of an argument: that of the alternative which the arguments match and which declares it, or a
/// string if another one has it.
fn argument_schema(schema: &Value, key: &str, arguments: &Map<String, Value>) -> Value {
    let options = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    let Some(options) = options else { return schema["properties"][key].clone() };
    let of = |option: &Value| option["properties"][key].clone();
    let arguments = Value::Object(arguments.clone());
    let mut declaring = options.iter().filter(|option| option["properties"].get(key).is_some());
    let own = declaring.find(|option| fits(option, schema, &arguments)).map_or(Value::Null, of);
    let may_be_text = |one: &Value| *one == json!({}) || branch(one, schema, &Value::from("")).is_some();
    match options.iter().map(of).any(|one| may_be_text(&one)) {
        true => json!({"anyOf": [own, {"type": "string"}]}),
        false => own,
    }
}

/// The branch of a schema for a value's type.
fn branch<'a>(schema: &'a Value, root: &'a Value, value: &Value) -> Option<&'a Value> {
    if let Some(target) = schema["$ref"].as_str() {
        return branch(root.pointer(&target[1..])?, root, value);
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let found: Vec<&Value> = options.iter().filter_map(|option| branch(option, root, value)).collect();
        return match found[..] {
            [] | [_] => found.first().copied(),
            _ => found.iter().find(|option| fits(option, root, value)).or(found.first()).copied(),
        };
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts.iter().all(|part| branch(part, root, value).is_some()).then_some(schema);
    }
    if let Some(constant) = schema.get("const") {
        return (type_of(constant) == type_of(value)).then_some(schema);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().any(|own| type_of(own) == type_of(value)).then_some(schema);
    }
    let types = &schema["type"];
    let named = types == type_of(value)
        || types.as_array().is_some_and(|names| names.contains(&type_of(value).into()));
    let declared =
        |key| schema["properties"].get(key).is_some() || schema.get("additionalProperties").is_some();
    let known = value.as_object().is_none_or(|map| map.keys().all(declared));
    (named && known).then_some(schema)
}

fn fits(schema: &Value, root: &Value, value: &Value) -> bool {
    let definitions = root.get("$defs").cloned().unwrap_or_else(|| json!({}));
    let document = json!({"allOf": [schema], "$defs": definitions});
    jsonschema::is_valid(&document, value)
}

/// Returns true if a list or object is written as elements: if the schema names its elements.
fn has_elements(schema: &Value, root: &Value, value: &Value) -> bool {
    // If a string is allowed, elements are a string.
    if branch(schema, root, &Value::from("")).is_some() {
        return false;
    }
    let Some(schema) = branch(schema, root, value) else { return false };
    match value {
        Value::Object(_) => {
            schema["properties"].as_object().is_some_and(|all| !all.is_empty())
                && schema.get("additionalProperties").is_none()
        }
        _ => schema["items"].is_object() && schema.get("prefixItems").is_none(),
    }
}

fn parameter(call: &ParameterCall, key: &str, value: &Value, schema: &Value, root: &Value) -> Option<String> {
    let elements = call.written == ValueText::Elements;
    let close = if elements {
        format!("{}{key}{}", call.value.close, call.key.close)
    } else {
        call.value.close.to_owned()
    };
    let inner = match value {
        Value::String(text)
            if text.contains(call.value.close)
                && !(is_free(schema, root, value) && holds_markers(call, text)) =>
        {
            return None;
        }
        Value::String(text) if elements && text.contains(call.key.open) => return None,
        Value::String(text) => text.clone(),
        Value::Object(map) if elements && has_elements(schema, root, value) => {
            let schemas = &branch(schema, root, value)?["properties"];
            let member = |(key, value): (&String, &Value)| parameter(call, key, value, &schemas[key], root);
            map.iter().map(member).collect::<Option<Vec<_>>>()?.concat()
        }
        Value::Array(items) if elements && has_elements(schema, root, value) => {
            let schema = &branch(schema, root, value)?["items"];
            let item = |item| parameter(call, "item", item, schema, root);
            items.iter().map(item).collect::<Option<Vec<_>>>()?.concat()
        }
        // If a string is allowed, or elements are read, the first marker ends the value.
        other
            if json_text(other, ": ", ", ").contains(call.value.close)
                && (elements || schema["type"] != type_of(other)) =>
        {
            return None;
        }
        other => json_text(other, ": ", ", "),
    };
    let attribute = call.type_attribute.as_ref().map_or(String::new(), |attribute| {
        let others = || attribute.others.iter().find(|(own, _)| own.is_empty()).map_or("", |(_, word)| word);
        let word = match value {
            Value::String(_) => attribute.text,
            value => attribute
                .others
                .iter()
                .find(|(own, _)| *own == type_of(value))
                .map_or_else(others, |(_, word)| word),
        };
        [attribute.open, word, attribute.close].concat()
    });
    let between = if call.value.close == call.between { "" } else { call.between };
    let Tags { open, after_open, before_close, .. } = call.value;
    Some(
        [
            call.key.open,
            key,
            call.key.close,
            call.after_key,
            &attribute,
            open,
            after_open,
            &inner,
            before_close,
            &close,
            between,
        ]
        .concat(),
    )
}

/// Returns true if a marker that closes a value is a part of `text` wherever it occurs: no marker follows.
fn holds_markers(call: &ParameterCall, text: &str) -> bool {
    let close = call.value.close;
    let starts_none = |behind: &str| behind.trim_start().starts_with(|c: char| c != '<');
    call.written != ValueText::Elements
        && !call.key.open.is_empty()
        && text.split(close).skip(1).all(starts_none)
}

/// Returns true if the schema allows any string.
fn is_free(schema: &Value, root: &Value, value: &Value) -> bool {
    let keywords = ["const", "enum", "format", "maxLength", "minLength", "pattern"];
    branch(schema, root, value).is_some_and(|schema| keywords.iter().all(|key| schema.get(key).is_none()))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
