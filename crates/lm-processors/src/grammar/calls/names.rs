//! Check that the parser reads names of tools and parameters back as declared.

use std::collections::BTreeSet;
use std::sync::Arc;

use lm_template::{ToolSpec, Value};
use serde_json::{Map, json};

use super::super::lark::Lark;
use super::super::values::{Spelling, Values, named_properties};
use super::parameters::attribute_text;
use super::parameters_of;
use crate::dialect::{
    BraceCall, CallBody, CallSyntax, Count, JsonCall, JsonKey, JsonObject, NamedCall, NamedId, ParameterCall,
    PythonList, Tags, ValueText,
};
use crate::event::ProcessorEvent;
use crate::layout::Layout;
use crate::parser::{OutputParser, ParserOptions, ReadCalls, Recovery};
use crate::parsers::name_ends;
use crate::schema::{Reading, escaped_pointer, normalized};
use crate::schema::{SchemaError, SchemaFault};
use crate::values::in_braces;

/// Factory for parsers of the replies that a grammar describes.
pub(crate) type NewParser<'a> = dyn Fn(&ParserOptions) -> Box<dyn OutputParser> + 'a;

/// Writes calls with the declared names and parses them.
pub(in crate::grammar) struct NameCheck<'a> {
    processor: &'static str,
    syntax: &'a CallSyntax,
    /// All tools known to the parser, by name.
    declared: Arc<[ToolSpec]>,
    parser: &'a NewParser<'a>,
}

/// Name of a parameter, and its JSON pointer.
type Key = (String, String);

impl<'a> NameCheck<'a> {
    pub(in crate::grammar) fn new(
        processor: &'static str,
        syntax: &'a CallSyntax,
        declared: &'a [ToolSpec],
        parser: &'a NewParser<'a>,
    ) -> Self {
        let declared = declared.iter().map(|tool| ToolSpec::new(tool.name(), "", json!({}))).collect();
        Self { processor, syntax, declared, parser }
    }

    /// Checks the names of `tools` and of their parameters.
    ///
    /// # Errors
    /// [`SchemaFault::Name`] for the first name that is not read back.
    pub(in crate::grammar) fn check(&self, tools: &[&ToolSpec]) -> Result<(), SchemaError> {
        let ends = match self.syntax.body {
            // The name is followed by an index that no other name may start with.
            CallBody::Named(NamedCall { id: NamedId::NameAndIndex, .. }) => {
                vec![":0", ":1", ":2", ":3", ":4", ":5", ":6", ":7", ":8", ":9"]
            }
            _ => name_ends(self.syntax),
        };
        let names: BTreeSet<&str> = self.declared.iter().map(ToolSpec::name).collect();
        for tool in tools {
            let refused = |name: &str, path: &str| self.refused(name, path).of_tool(tool.name());
            let (outer, inner) = self.keys(tool)?;
            let all: Vec<&str> = outer.iter().map(|(key, _)| key.as_str()).collect();
            let inner_keys: Vec<&str> = inner.iter().map(|(key, _)| key.as_str()).collect();
            if is_ambiguous(tool.name(), &names, &ends) || !self.reads_back(tool.name(), &[], &[]) {
                return Err(refused(tool.name(), "#"));
            }
            if let Some((key, path)) = self.ambiguous_key(&outer) {
                return Err(refused(key, path));
            }
            if self.reads_back(tool.name(), &all, &inner_keys) {
                continue;
            }
            let odd = outer.iter().find(|(key, _)| !self.reads_back(tool.name(), &[key], &[]));
            let odd =
                odd.or_else(|| inner.iter().find(|(key, _)| !self.reads_back(tool.name(), &[], &[key])));
            let (key, path) = odd.or(outer.first()).map_or((tool.name(), "#"), |(key, path)| (key, path));
            return Err(refused(key, path));
        }
        Ok(())
    }

    fn refused(&self, name: &str, path: &str) -> SchemaError {
        SchemaError::new(path, "", SchemaFault::Name { name: name.to_owned(), processor: self.processor })
    }

    /// Names of the parameters, and of keys inside values if those are written differently.
    fn keys(&self, tool: &ToolSpec) -> Result<(Vec<Key>, Vec<Key>), SchemaError> {
        let parameters = parameters_of(tool);
        let schema = normalized(&parameters, Reading::ToolParameters);
        let schema = schema.map_err(|error| error.of_tool(tool.name()))?.schema;
        let mut inner = Vec::new();
        inner_keys(&schema, "#", &mut inner);
        match self.syntax.body {
            CallBody::Parameters(_) | CallBody::Python(_) => {}
            // In these syntaxes, keys inside values are written like those of the arguments.
            CallBody::Json(_) | CallBody::Named(_) | CallBody::Braces(_) => return Ok((inner, vec![])),
        }
        let mut outer: Vec<Key> = Vec::new();
        let mut lark = Lark::default();
        for branch in Values::new(&mut lark, Spelling::JSON, Layout::Exact, &schema).objects(&schema) {
            for (name, _, _) in named_properties(&branch) {
                let path = format!("#/properties/{}", escaped_pointer(&name));
                if !outer.iter().any(|(known, _)| *known == name) {
                    outer.push((name, path));
                }
            }
        }
        let elements =
            matches!(self.syntax.body, CallBody::Parameters(call) if call.written == ValueText::Elements);
        Ok((outer, if elements { inner } else { vec![] }))
    }

    /// Finds a key that starts with another key and its end marker.
    fn ambiguous_key<'k>(&self, keys: &'k [Key]) -> Option<(&'k str, &'k str)> {
        let end = match self.syntax.body {
            CallBody::Parameters(ParameterCall { key, after_key, type_attribute, value, .. }) => {
                let attribute = type_attribute.as_ref().map_or("", |attribute| attribute.open);
                [key.close, after_key, attribute, value.open, value.after_open].concat()
            }
            CallBody::Python(_) => "=".to_owned(),
            CallBody::Json(_) | CallBody::Named(_) | CallBody::Braces(_) => String::new(),
        };
        let names = keys.iter().map(|(key, _)| key.as_str()).collect();
        let found = keys.iter().find(|(key, _)| is_ambiguous(key, &names, &[&end]) && !self.is_word(key));
        found.map(|(key, path)| (key.as_str(), path.as_str()))
    }

    /// Returns true if a Python keyword cannot be another one with a value: no value continues with `=`.
    fn is_word(&self, key: &str) -> bool {
        matches!(self.syntax.body, CallBody::Python(_)) && !key.contains(['\'', '"', ',', '(', '[', '{'])
    }

    /// Returns true if the parser reads back a call of `name` with these keys, and an object with the `inner`
    /// ones.
    fn reads_back(&self, name: &str, keys: &[&str], inner: &[&str]) -> bool {
        let any = |keys: &[&str]| -> Map<String, Value> {
            keys.iter().map(|key| ((*key).to_owned(), json!({}))).collect()
        };
        let mut properties = any(keys);
        let holder = "a".repeat(1 + keys.iter().map(|key| key.len()).max().unwrap_or_default());
        if !inner.is_empty() {
            properties.insert(holder.clone(), json!({"type": "object", "properties": any(inner)}));
        }
        let schema = json!({"type": "object", "properties": properties});
        let only_name = keys.is_empty() && inner.is_empty();
        let tools = if only_name { self.declared.clone() } else { [ToolSpec::new(name, "", schema)].into() };
        let options = ParserOptions {
            tools,
            calls: ReadCalls::Always,
            prompt_tail: Some("".into()),
            recovery: Recovery::Off,
            ..ParserOptions::default()
        };
        let text = self.written(name, keys, (!inner.is_empty()).then_some((holder.as_str(), inner)));
        let mut parser = (self.parser)(&options);
        let mut events = parser.push(&text);
        events.extend(parser.finish());
        let mut calls = events.iter().filter_map(|event| match event {
            ProcessorEvent::ToolCall { call, .. } => Some(call),
            _ => None,
        });
        let (Some(call), None) = (calls.next(), calls.next()) else { return false };
        let read = |value: &Map<String, Value>, keys: &[&str]| {
            value.keys().map(String::as_str).eq(keys.iter().copied())
        };
        let mut arguments = call.arguments.clone();
        let held = arguments.shift_remove(&holder);
        let held = held.as_ref().and_then(Value::as_object);
        call.name == name
            && read(&arguments, keys)
            && (inner.is_empty() || held.is_some_and(|held| read(held, inner)))
    }

    /// Text of a call of `name`, with zeros as values.
    fn written(&self, name: &str, keys: &[&str], inner: Option<(&str, &[&str])>) -> String {
        let CallSyntax { section, call, body, .. } = self.syntax;
        let quoted = Value::from(name).to_string();
        let arguments: Value =
            keys.iter().map(|key| ((*key).to_owned(), 0.into())).collect::<Map<_, _>>().into();
        let body = match body {
            CallBody::Json(JsonCall { count, object, .. }) => {
                let object = match object {
                    JsonObject::NameIsKey => format!("{{{quoted}: {arguments}}}"),
                    JsonObject::Keys { written, .. } => {
                        let member = |(part, key): &(JsonKey, &str)| match part {
                            JsonKey::Name => format!("\"{key}\": {quoted}"),
                            JsonKey::Arguments => format!("\"{key}\": {arguments}"),
                            JsonKey::Id => format!("\"{key}\": \"0\""),
                        };
                        format!("{{{}}}", written.iter().map(member).collect::<Vec<_>>().join(", "))
                    }
                };
                if *count == Count::One { object } else { format!("[{object}]") }
            }
            CallBody::Named(NamedCall { before_name, after_name, id, after_arguments, .. }) => {
                let id = if *id == NamedId::NameAndIndex { ":0" } else { "" };
                [before_name, name, id, after_name, &arguments.to_string(), after_arguments].concat()
            }
            CallBody::Parameters(call) => parameters(call, name, keys, inner),
            CallBody::Python(call) => {
                let arguments: Vec<String> = keys.iter().map(|key| format!("{key}=0")).collect();
                let call_text = format!("{name}({})", arguments.join(", "));
                if call.list == PythonList::Brackets { format!("[{call_text}]") } else { call_text }
            }
            CallBody::Braces(BraceCall { before_name, quote }) => {
                format!("{before_name}{name}{}", in_braces(&arguments, quote))
            }
        };
        enclosed(section, &enclosed(call, &body))
    }
}

fn enclosed(tags: &Tags, inner: &str) -> String {
    [tags.open, tags.after_open, inner, tags.before_close, tags.close].concat()
}

fn parameters(call: &ParameterCall, name: &str, keys: &[&str], inner: Option<(&str, &[&str])>) -> String {
    let number = call.number.map_or(String::new(), |tags| format!("{}1{}", tags.open, tags.close));
    let mut text = [call.name.open, name, call.name.close, &number, call.between].concat();
    text.extend(keys.iter().map(|key| parameter(call, key, "0")));
    if let Some((holder, keys)) = inner {
        let members: String = keys.iter().map(|key| parameter(call, key, "0")).collect();
        text += &parameter(call, holder, &members);
    }
    text + call.end
}

fn parameter(call: &ParameterCall, key: &str, inner: &str) -> String {
    let attribute = call.type_attribute.as_ref().map(|attribute| attribute_text(attribute, "number"));
    let Tags { open, close, after_open, before_close } = call.value;
    let close = match call.written {
        ValueText::Elements => format!("{close}{key}{}", call.key.close),
        _ => close.to_owned(),
    };
    let between = if call.value.close == call.between { "" } else { call.between };
    let attribute = attribute.as_deref().unwrap_or_default();
    let parts = [call.key.open, key, call.key.close, call.after_key, attribute, open, after_open, inner];
    [&parts.concat(), before_close, &close, between].concat()
}

/// Returns true if `name` starts with one of `names` followed by one of `ends`, so that no parser can
/// distinguish the two.
fn is_ambiguous(name: &str, names: &BTreeSet<&str>, ends: &[&str]) -> bool {
    let ends = ends.iter().filter(|end| !end.is_empty());
    ends.flat_map(|end| name.match_indices(end)).any(|(at, _)| names.contains(&name[..at]))
}

/// Collects the names of all properties in `schema`, at any depth.
fn inner_keys(schema: &Value, path: &str, keys: &mut Vec<Key>) {
    match schema {
        Value::Object(map) => {
            for (keyword, inside) in map {
                let at = format!("{path}/{}", escaped_pointer(keyword));
                match (keyword.as_str(), inside) {
                    ("const" | "enum", _) => {}
                    ("properties" | "$defs", Value::Object(schemas)) => {
                        for (name, schema) in schemas {
                            let at = format!("{at}/{}", escaped_pointer(name));
                            if keyword == "properties" && !keys.iter().any(|(known, _)| known == name) {
                                keys.push((name.clone(), at.clone()));
                            }
                            inner_keys(schema, &at, keys);
                        }
                    }
                    _ => inner_keys(inside, &at, keys),
                }
            }
        }
        Value::Array(schemas) => {
            for (number, schema) in schemas.iter().enumerate() {
                inner_keys(schema, &format!("{path}/{number}"), keys);
            }
        }
        _ => {}
    }
}
