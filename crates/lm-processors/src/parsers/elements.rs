//! Values written as elements: members of objects by name, elements of lists as `item`.

use std::collections::HashMap;
use std::rc::Rc;

use lm_template::{Map, Value};

use super::fault::Fault;
use super::marker_scan::{Scan, scan};
use crate::declared_names::{Declared, declared};
use crate::dialect::ParameterCall;
use crate::marker_guard::unguarded;
use crate::values::{Alternative, MAX_DEPTH, Schema, Types, typed_value};

/// Element name of list elements.
const ITEM: &str = "item";
/// Key of text next to elements.
const TEXT: &str = "$text";
/// Maximum number of schemas of an element, and of their alternatives.
const MAX_SCHEMAS: usize = 16;
const MAX_ALTERNATIVES: usize = 64;
/// Maximum number of alternatives besides the first of each element that are tried for a value.
const MAX_TRIED: usize = 256;

/// Marker of an element, before its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Open,
    Close,
}

fn markers(syntax: &ParameterCall) -> [(Marker, &'static str); 2] {
    [(Marker::Open, syntax.key.open), (Marker::Close, syntax.value.close)]
}

/// Searches for the end of the current element, which `rest` continues; `depth` is the number of open
/// elements inside it. Returns the end of the decided text, and true if the closing marker is there.
///
/// # Errors
/// If elements are nested too deeply.
pub(super) fn elements_end(
    rest: &str,
    syntax: &ParameterCall,
    depth: &mut usize,
) -> Result<(usize, bool), Fault> {
    let mut at = 0;
    loop {
        match scan(&rest[at..], &markers(syntax), false) {
            Scan::Clear { until } => return Ok((at + until, false)),
            Scan::Found { marker: Marker::Close, start, .. } if *depth == 0 => return Ok((at + start, true)),
            Scan::Found { marker, start, len } => {
                at += start + len;
                *depth = if marker == Marker::Close { *depth - 1 } else { *depth + 1 };
                if *depth > MAX_DEPTH {
                    return Err(Fault::malformed(format!("it is nested deeper than {MAX_DEPTH}")));
                }
            }
        }
    }
}

/// An element, with the elements inside it.
struct Element<'a> {
    name: &'a str,
    /// Schemas that the element may have, by the alternatives of those around it.
    schemas: Vec<Schema<'a>>,
    /// The text between its markers.
    inside: &'a str,
    /// The text beside its children.
    text: String,
    children: Vec<Element<'a>>,
}

impl<'a> Element<'a> {
    /// Creates an element whose text begins at the start of `inside`.
    fn new(name: &'a str, schemas: Vec<Schema<'a>>, inside: &'a str) -> Self {
        Self { name, schemas, inside, text: String::new(), children: Vec::new() }
    }
}

/// Schema of the child `name` of an element that one alternative describes.
fn child_schema<'a>(alternative: &Alternative<'a>, name: &str) -> Option<Schema<'a>> {
    if is_list(alternative.types(), name == ITEM) { alternative.items() } else { alternative.property(name) }
}

fn is_list(types: Types, only_items: bool) -> bool {
    types.contains(Types::ARRAY) && (only_items || !types.contains(Types::OBJECT))
}

/// Reader of the values of elements.
struct Values<'s, 'a> {
    syntax: &'s ParameterCall,
    /// Alternatives of the schemas that were met, by the schema's address.
    alternatives: HashMap<usize, Rc<[Alternative<'a>]>>,
    /// Number of further alternatives that are tried.
    alternatives_left: usize,
}

impl<'a> Values<'_, 'a> {
    /// Alternatives of a schema, which are expanded once.
    fn alternatives(&mut self, schema: Schema<'a>) -> Rc<[Alternative<'a>]> {
        let expanded =
            self.alternatives.entry(schema.address()).or_insert_with(|| schema.alternatives().into());
        expanded.clone()
    }

    /// Schemas of a child, by the alternatives of the element's own.
    fn child_schemas(&mut self, element: &Element<'a>, name: &str) -> Vec<Schema<'a>> {
        let alternatives: Vec<_> = element.schemas.iter().map(|schema| self.alternatives(*schema)).collect();
        let mut found: Vec<Schema<'a>> = Vec::new();
        let alternatives = alternatives.iter().flat_map(|alternatives| alternatives.iter());
        for schema in alternatives.take(MAX_ALTERNATIVES).filter_map(|one| child_schema(one, name)) {
            if found.len() < MAX_SCHEMAS && !found.iter().any(|known| known.is(schema)) {
                found.push(schema);
            }
        }
        found
    }

    /// The name of a child of `element` at the start of `text`.
    fn child_name<'t>(&mut self, element: &Element<'a>, text: &'t str) -> Option<&'t str> {
        let close = self.syntax.key.close;
        let plain = name_before(text, [], close)?;
        if !self.child_schemas(element, plain).is_empty() {
            return Some(plain);
        }
        let names: Vec<String> = element.schemas.iter().flat_map(|schema| schema.declared_names()).collect();
        name_before(text, names.iter().map(String::as_str), close)
    }

    /// Value of an element, by the first matching alternative of its schema.
    fn value(&mut self, element: &Element<'a>, schema: Option<Schema<'a>>) -> Value {
        let types = schema.map_or(Types::ANY, Schema::types);
        let empty = element.inside.trim().is_empty();
        let readings = match () {
            // If a string is allowed, elements are text.
            () if types != Types::ANY && types.contains(Types::STRING) => vec![],
            () if !element.children.is_empty() => self.structures(element, schema),
            () if !empty || types == Types::ANY => vec![],
            () => {
                let all = [(Types::ARRAY, Value::Array(vec![])), (Types::OBJECT, Value::Object(Map::new()))];
                all.into_iter().filter(|(own, _)| types.contains(*own)).map(|(_, value)| value).collect()
            }
        };
        match schema {
            _ if readings.is_empty() => typed_value(&unguarded(element.inside), schema, self.syntax.untyped),
            Some(schema) => schema.first_fitting(readings),
            None => readings.into_iter().next().unwrap_or_default(),
        }
    }

    /// The lists and objects that an element's children may be, the likelier one of each alternative first.
    fn structures(&mut self, element: &Element<'a>, schema: Option<Schema<'a>>) -> Vec<Value> {
        let Some(schema) = schema else { return self.of_alternative(element, None) };
        let mut found: Vec<Value> = Vec::new();
        for (at, alternative) in self.alternatives(schema).iter().enumerate() {
            if at > 0 {
                let Some(left) = self.alternatives_left.checked_sub(1) else { break };
                self.alternatives_left = left;
            }
            for value in self.of_alternative(element, Some(alternative)) {
                if !found.contains(&value) {
                    found.push(value);
                }
            }
        }
        found
    }

    fn of_alternative(&mut self, element: &Element<'a>, alternative: Option<&Alternative<'a>>) -> Vec<Value> {
        let types = alternative.map_or(Types::ANY, Alternative::types);
        let children: Vec<(&str, Value)> = element
            .children
            .iter()
            .map(|child| {
                let schema = alternative.and_then(|alternative| child_schema(alternative, child.name));
                (child.name, self.value(child, schema))
            })
            .collect();
        let only_items = children.iter().all(|(name, _)| *name == ITEM);
        let list =
            is_list(types, only_items).then(|| children.iter().map(|(_, value)| value.clone()).collect());
        let both = list.is_some() && types.contains(Types::OBJECT) && alternative.is_some();
        let object = (list.is_none() || both).then(|| object(children, &element.text));
        list.into_iter().chain(object).collect()
    }
}

/// The object of an element's children; a name that occurs several times has a list of its values.
fn object(children: Vec<(&str, Value)>, text: &str) -> Value {
    let mut members: Map<String, Value> = Map::new();
    for (name, value) in children {
        match members.entry(unguarded(name)).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(values) => values.push(value),
            _ => unreachable!("only lists are put in"),
        }
    }
    members.values_mut().for_each(unwrap_single);
    if !text.trim().is_empty() {
        let mut key = TEXT.to_owned();
        while members.contains_key(&key) {
            key.insert(0, '$');
        }
        members.insert(key, unguarded(text).into());
    }
    Value::Object(members)
}

/// The name at the start of `text`: one of `names`, or the text before `close`.
fn name_before<'t, 'n>(
    text: &'t str,
    names: impl IntoIterator<Item = &'n str>,
    close: &str,
) -> Option<&'t str> {
    let len = match declared(text, names, &[close]) {
        Declared::Found(name) => name.len(),
        Declared::Open | Declared::Absent => text.find(close)?,
    };
    Some(&text[..len])
}

/// Replaces a list of one value by the value: the name occurred once.
fn unwrap_single(value: &mut Value) {
    if let Value::Array(values) = value
        && values.len() == 1
        && let Some(single) = values.pop()
    {
        *value = single;
    }
}

/// Value of an argument with the text `text`.
///
/// # Errors
/// If its elements are not properly nested.
pub(super) fn element_value<'a>(
    text: &'a str,
    syntax: &ParameterCall,
    schema: Option<Schema<'a>>,
) -> Result<Value, Fault> {
    let mut values = Values { syntax, alternatives: HashMap::new(), alternatives_left: MAX_TRIED };
    let mut open = vec![Element::new("", schema.into_iter().collect(), text)];
    let mut at = 0;
    loop {
        let Some(top) = open.last_mut() else { return Err(Fault::malformed("its elements do not fit")) };
        let Scan::Found { marker, start, len } = scan(&text[at..], &markers(syntax), true) else {
            top.text.push_str(&text[at..]);
            break;
        };
        top.text.push_str(&text[at..at + start]);
        let name_start = at + start + len;
        let name = match marker {
            Marker::Open => values.child_name(top, &text[name_start..]),
            Marker::Close => name_before(&text[name_start..], [top.name], syntax.key.close),
        };
        let name = name.ok_or_else(|| Fault::malformed("an element's name has no end"))?;
        let end = at + start;
        at = name_start + name.len() + syntax.key.close.len();
        if marker == Marker::Open {
            let schemas = values.child_schemas(top, name);
            open.push(Element::new(name, schemas, &text[at..]));
            continue;
        }
        let element = open.pop().filter(|element| element.name == name && !open.is_empty());
        let mut element =
            element.ok_or_else(|| Fault::malformed(format!("`{name}` is closed and not open")))?;
        element.inside = inside(element.inside, &text[end..]);
        if let Some(parent) = open.last_mut() {
            parent.children.push(element);
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) => Ok(values.value(&root, schema)),
        _ => Err(Fault::malformed("an element is not closed")),
    }
}

/// The part of `text` before its suffix `rest`.
fn inside<'t>(text: &'t str, rest: &str) -> &'t str {
    &text[..text.len() - rest.len()]
}
