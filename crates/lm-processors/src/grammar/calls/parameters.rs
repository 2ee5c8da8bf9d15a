//! Arguments as keys and values in markup.

use lm_template::Value;
use serde_json::Map;

use super::super::lark::{literal, one_of, sequence};
use super::super::values::{
    FurtherNames, Member, NameForm, NamePattern, Values, enum_values, named_properties, types_of,
    with_patterns,
};
use super::held_markers::{held_markers, is_free};
use super::markup::Markup;
use super::space;
use super::texts::Texts;
use super::verbatim::{closed_text, constant, enclosed, text};
use crate::dialect::{Accepted, ParameterCall, Tags, TypeAttribute, ValueText};
use crate::schema::{escaped_pointer, type_of};

/// Builds a call of `name` with its parameters in markup; `None` if no arguments match the schema.
pub(in crate::grammar) fn parameters(
    values: &mut Values<'_>,
    markup: Markup<'_>,
    name: &str,
    schema: &Value,
) -> Option<String> {
    let lists_objects = |schema: &Map<String, Value>| {
        enum_values(schema).is_some_and(|listed| listed.iter().any(Value::is_object))
    };
    // The parser types a parameter by its property, which listed objects do not declare.
    if values.plain(schema).iter().any(lists_objects) {
        return None;
    }
    let alternatives = values.objects(schema);
    let texts = Texts::of(values, &alternatives);
    let mut options = Vec::new();
    for schema in &alternatives {
        // No arguments fit some alternatives; others may have some.
        options.extend(arguments(values, markup, schema, "#", &texts));
    }
    if options.is_empty() {
        return None;
    }
    let call = markup.call;
    let before = values.lark.marker(call.before_name);
    let (open, close) = (values.lark.marker(call.name.open), values.lark.marker(call.name.close));
    let number = call.number.map_or(String::new(), |tags| {
        let (open, close) = (values.lark.marker(tags.open), values.lark.marker(tags.close));
        format!("{open} /[1-9][0-9]{{0,2}}/ {close}")
    });
    // A value that ends at the line's end includes the line break.
    let first = if call.between == markup.lead() { "" } else { call.between };
    let first = space(values.lark, first, values.layout);
    // Without an end of its own, the call's follows.
    let end = if call.end.is_empty() {
        String::new()
    } else {
        markup.next(values.lark, values.layout, markup.lead(), call.end)
    };
    Some(sequence([&*before, &open, &literal(name), &close, &number, &first, &one_of(&options), &end]))
}

fn arguments(
    values: &mut Values<'_>,
    markup: Markup<'_>,
    schema: &Map<String, Value>,
    path: &str,
    texts: &Texts,
) -> Option<String> {
    let patterns = values.name_patterns(schema);
    let typed = with_patterns(schema, &patterns);
    let mut members = Vec::new();
    for (name, schema, required) in &values.limited(&named_properties(&typed), path) {
        let tags = ValueTags { text_elsewhere: texts.contains(name), ..ValueTags::of(markup, name) };
        match value(values, &tags, schema, &format!("{path}/properties/{}", escaped_pointer(name))) {
            Some(value) => members
                .push(Member { body: member(values, markup, &literal(name), &value), required: *required }),
            None if *required => return None,
            None => {}
        }
    }
    let further = further(values, markup, schema, (&typed, &patterns), path, texts);
    values.counted_members(&typed, &members, further.as_deref(), "", path)
}

/// Builds a parameter with an undeclared name, if the tool allows one and the parser keeps it. `typed` is the
/// schema with its patterns applied.
fn further(
    values: &mut Values<'_>,
    markup: Markup<'_>,
    schema: &Map<String, Value>,
    (typed, patterns): (&Map<String, Value>, &[NamePattern]),
    path: &str,
    texts: &Texts,
) -> Option<String> {
    // An element's name is in its start and its end, which rules cannot express for a free name.
    if markup.call.accepted == Accepted::Declared || markup.call.written == ValueText::Elements {
        return None;
    }
    if schema.contains_key("propertyNames") {
        values.leave_unenforced(path, "propertyNames");
    }
    let mut options = Vec::new();
    for FurtherNames { key, schema, path } in
        values.further_arguments(NameForm::Bare, schema, typed, patterns, path)
    {
        let tags = ValueTags { text_elsewhere: texts.any(), ..ValueTags::of(markup, "") };
        let value = value(values, &tags, &schema, &path);
        options.extend(value.map(|value| member(values, markup, &key, &value)));
    }
    (!options.is_empty()).then(|| one_of(&options))
}

fn member(values: &mut Values<'_>, markup: Markup<'_>, key: &str, value: &str) -> String {
    let open = markup.next(values.lark, values.layout, markup.lead(), markup.call.key.open);
    let close = values.lark.marker(markup.call.key.close);
    values.lark.rule(sequence([&*open, key, &close, value]))
}

/// Syntax around one value.
pub(super) struct ValueTags<'a> {
    pub(super) markup: Markup<'a>,
    pub(super) call: &'a ParameterCall,
    pub(super) open: &'static str,
    pub(super) after_open: &'static str,
    pub(super) before_close: &'static str,
    pub(super) close: String,
    /// Another alternative of the tool's schema allows a string here.
    text_elsewhere: bool,
}

impl<'a> ValueTags<'a> {
    /// Syntax around the value of `key`, which an element's end repeats.
    fn of(markup: Markup<'a>, key: &str) -> Self {
        let call = markup.call;
        let Tags { open, close, after_open, before_close } = call.value;
        let close = match call.written {
            ValueText::Elements => format!("{close}{key}{}", call.key.close),
            _ => close.to_owned(),
        };
        Self { markup, call, open, after_open, before_close, close, text_elsewhere: false }
    }

    /// Texts that end a string: for element values, the start and end of any element.
    pub(super) fn excluded(&self) -> Vec<&str> {
        match self.call.written {
            ValueText::Elements => vec![self.call.key.open, self.call.value.close],
            _ => vec![&self.close],
        }
    }
}

/// Builds the part between a key and the next one: the type, the value, and its markers.
fn value(values: &mut Values<'_>, tags: &ValueTags<'_>, schema: &Value, path: &str) -> Option<String> {
    let mut options = Vec::new();
    let schemas = values.plain(schema);
    // A string ends at the first marker; so does any value if a string is allowed.
    let texts = tags.text_elsewhere || schemas.iter().any(may_be_text);
    let texts = texts && tags.call.type_attribute.is_none();
    let beside = Beside {
        texts,
        free_text: schemas
            .iter()
            .any(|schema| enum_values(schema).is_none() && types_of(schema).contains(&"string")),
        structures: schemas.iter().any(may_be_structure),
    };
    let mut contents = Vec::new();
    let holds_markers = tags.markup.holds_markers(values.lark) && schemas.iter().any(is_free);
    for schema in schemas {
        // If a string is allowed, elements are read as a string.
        let elements = tags.call.written == ValueText::Elements;
        let structures = if elements && !texts { Structures::Elements } else { Structures::Json };
        let bodies = match texts || elements {
            true => {
                let excluded = tags.excluded()[0].to_owned();
                values
                    .excluding(&excluded, |values| of_types(values, tags, &schema, path, structures, &beside))
            }
            false => of_types(values, tags, &schema, path, structures, &beside),
        };
        for (name, body) in bodies {
            match body {
                Body::Closed(body) => options.push(opened(values, tags, name, &body)),
                Body::Content(content) => contents.push(content),
            }
        }
    }
    if !contents.is_empty() {
        let held = if holds_markers { held_markers(values, tags) } else { String::new() };
        let body = closed_text(values, tags, (&held, &one_of(&contents)), beside.free_text);
        options.push(opened(values, tags, "string", &body));
    }
    (!options.is_empty()).then(|| one_of(&options))
}

/// The body of a value of the type `name`, after its layout, type attribute and opening marker.
fn opened(values: &mut Values<'_>, tags: &ValueTags<'_>, name: &str, body: &str) -> String {
    let attribute = tags.call.type_attribute.as_ref().map(|attribute| attribute_text(attribute, name));
    let attribute = attribute.map_or(String::new(), |text| values.lark.marker(&text));
    let layout = space(values.lark, tags.call.after_key, values.layout);
    let open = values.lark.marker(tags.open);
    // Whitespace that no marker follows is the value's.
    let layout = if attribute.is_empty() && open.is_empty() { String::new() } else { layout };
    values.lark.rule(sequence([&*layout, &attribute, &open, body]))
}

/// Encoding of arrays and objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structures {
    Json,
    Elements,
}

/// The other values that a parameter allows. They share its lexemes: the lexer takes the longest one and does
/// not backtrack.
pub(super) struct Beside {
    /// Strings, without a type attribute that marks them.
    pub(super) texts: bool,
    /// Strings that are not listed.
    pub(super) free_text: bool,
    /// Arrays or objects.
    pub(super) structures: bool,
}

/// The body of a value.
pub(super) enum Body {
    /// With its closing marker.
    Closed(String),
    /// A terminal expression to be joined with its neighbours to one lexeme.
    Content(String),
}

/// The bodies of values by their type.
fn of_types(
    values: &mut Values<'_>,
    tags: &ValueTags<'_>,
    schema: &Map<String, Value>,
    path: &str,
    structures: Structures,
    beside: &Beside,
) -> Vec<(&'static str, Body)> {
    if let Some(listed) = enum_values(schema) {
        let mut bodies = Vec::new();
        for value in &listed {
            match constant(values, tags, value, beside) {
                Some(body) => bodies.push((type_of(value), body)),
                None => values.leave_out(value, path),
            }
        }
        return bodies;
    }
    let mut bodies = Vec::new();
    for name in types_of(schema) {
        let Some(name) = TYPE_NAMES.into_iter().find(|known| *known == name) else { continue };
        let body = match name {
            "string" => text(values, tags, schema, path).map(Body::Content),
            "array" | "object" if structures == Structures::Elements && has_elements(name, schema) => {
                let key = format!("{name} {} {}", tags.close, Value::Object(schema.clone()));
                values.recursive(&key, |values| elements(values, tags, name, schema, path)).map(Body::Closed)
            }
            _ => {
                let mut one = schema.clone();
                one.insert("type".to_owned(), name.into());
                let is_scalar = !matches!(name, "array" | "object");
                // The output of the grammar library's own translator is not a terminal.
                values.value(&Value::Object(one), path).map(|body| {
                    match beside.texts && is_scalar && !body.contains('%') {
                        true => Body::Content(body),
                        false => Body::Closed(enclosed(values, tags, &body)),
                    }
                })
            }
        };
        bodies.extend(body.map(|body| (name, body)));
    }
    bodies
}

const TYPE_NAMES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Returns true if the schema allows strings.
pub(super) fn may_be_text(schema: &Map<String, Value>) -> bool {
    let listed = enum_values(schema);
    listed.map_or_else(|| types_of(schema).contains(&"string"), |values| values.iter().any(Value::is_string))
}

/// Returns true if the schema allows arrays or objects.
fn may_be_structure(schema: &Map<String, Value>) -> bool {
    let listed = enum_values(schema);
    listed.map_or_else(
        || types_of(schema).iter().any(|name| matches!(*name, "array" | "object")),
        |values| values.iter().any(|value| value.is_array() || value.is_object()),
    )
}

/// Returns true if a list or object is written as elements: if the schema names its elements. Others are
/// JSON.
fn has_elements(name: &str, schema: &Map<String, Value>) -> bool {
    let further = schema.get("additionalProperties").is_some_and(|further| *further != Value::Bool(false));
    match name {
        "object" => schema.get("properties").is_some_and(|all| all != &Value::Object(Map::new())) && !further,
        _ => schema.get("items").is_some_and(Value::is_object) && !schema.contains_key("prefixItems"),
    }
}

/// Builds an object or list whose members are elements.
fn elements(
    values: &mut Values<'_>,
    tags: &ValueTags<'_>,
    name: &str,
    schema: &Map<String, Value>,
    path: &str,
) -> Option<String> {
    let body = match name {
        "object" => arguments(values, tags.markup, schema, path, &Texts::default())?,
        _ => {
            let items = schema.get("items").cloned().unwrap_or(Value::Bool(true));
            let item = value(values, &ValueTags::of(tags.markup, ITEM), &items, &format!("{path}/items"))?;
            let item = member(values, tags.markup, &literal(ITEM), &item);
            let (min, max) = values.item_counts(schema, path)?;
            match max {
                Some(0) => String::new(),
                Some(max) => format!("{item}{{{min},{max}}}"),
                None => format!("{item}{{{min},}}"),
            }
        }
    };
    Some(enclosed(values, tags, &body))
}

/// Element name of list elements.
const ITEM: &str = "item";

pub(super) fn attribute_text(attribute: &TypeAttribute, name: &str) -> String {
    let others = || attribute.others.iter().find(|(own, _)| own.is_empty()).map_or("", |(_, word)| word);
    let word = match name {
        "string" => attribute.text,
        name => attribute.others.iter().find(|(own, _)| *own == name).map_or_else(others, |(_, word)| word),
    };
    format!("{}{word}{}", attribute.open, attribute.close)
}

#[cfg(test)]
mod tests {
    use crate::{ALL, Error, GrammarRequest, ToolChoice, ToolSpec};

    /// Infinitely nested lists are a recursive rule, in every syntax.
    #[test]
    fn recursive_schemas_are_supported() {
        let schema = serde_json::json!({
            "type": "object", "properties": {"a": {"$ref": "#/$defs/b"}, "c": {"$ref": "#"}}, "required": ["a"],
            "$defs": {
                "b": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/b"}}, {"type": "integer"}]},
                "d": {"allOf": [{"$ref": "#/$defs/e"}, {"type": "object"}], "minProperties": 1},
                "e": {"properties": {"x": {"allOf": [{"$ref": "#/$defs/d"}, {"maxProperties": 3}]}}},
            },
        });
        let tools = [ToolSpec::new("f", "", schema)];
        let request =
            GrammarRequest { tools: &tools, choice: ToolChoice::Required, ..GrammarRequest::default() };
        for family in ALL {
            match family.processor.grammar(&request) {
                Ok(grammar) => assert!(grammar.is_some_and(|grammar| grammar.grammar.lark.len() < 100_000)),
                Err(error) => assert!(matches!(error, Error::NoCallSyntax { .. }), "{error}"),
            }
        }
    }
}
