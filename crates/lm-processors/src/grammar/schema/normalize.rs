//! A schema with the keywords that have a grammar only: the one both translators read.

use std::collections::{BTreeMap, BTreeSet};

use lm_template::Value;
use serde_json::{Map, json};

use super::disjoint::all_disjoint;
use super::document::{Document, escaped};
use super::keywords::{FORMATS, Role, TYPES, role};
use super::pattern::{are_disjoint, is_supported};
use crate::grammar::error::{SchemaError, SchemaFault};

/// How deep schemas may be nested.
pub(super) const MAX_DEPTH: usize = 48;
/// How many schemas a document may hold, each reference's target counted once.
const MAX_SCHEMAS: usize = 20_000;
/// How many values an `enum` may list.
const MAX_ENUM: usize = 5_000;

/// A keyword that the grammar does not enforce; the finished value is to be validated instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relaxed {
    /// The tool whose parameters they are; none for a response format.
    pub tool: Option<String>,
    /// Where in the schema, as a JSON pointer in URI form: `#/properties/a`.
    pub path: String,
    /// The keyword.
    pub keyword: String,
}

/// How what a schema leaves open is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// As JSON Schema says: what is not forbidden is allowed.
    #[default]
    Open,
    /// As the declaration of a tool means it: an object that lists its properties has no others, unless it says so, and what
    /// has properties is an object.
    ToolParameters,
}

/// A schema that has a grammar, and allows all that `schema` allows (under `reading`), with a list of the keywords it does not
/// enforce. In the result every reference leads to `#/$defs/…`, `oneOf` is `anyOf`, and annotations are gone.
///
/// # Errors
/// When it is no schema, leads out of the document, or is too large.
pub fn relax(schema: &Value, reading: Reading) -> Result<(Value, Vec<Relaxed>), SchemaError> {
    let mut normalizer = Normalizer {
        document: Document::new(schema),
        reading,
        relaxed: BTreeSet::new(),
        names: BTreeMap::new(),
        definitions: Map::new(),
        in_place: Vec::new(),
        schemas: 0,
    };
    let closing = if reading == Reading::ToolParameters { Closing::Closed } else { Closing::Open };
    let mut root = normalizer.schema(schema, "#", Place { depth: 0, closing, definition: None })?;
    normalizer.refuse_cycles()?;
    if let (Value::Object(map), false) = (&mut root, normalizer.definitions.is_empty()) {
        map.insert("$defs".to_owned(), Value::Object(normalizer.definitions));
    }
    Ok((root, normalizer.relaxed.into_iter().collect()))
}

/// Whether an object that says nothing about further properties has some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closing {
    Open,
    Closed,
}

/// Where a schema stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    depth: usize,
    closing: Closing,
    /// The definition that this schema is a part of in place: not below a property or an item.
    definition: Option<usize>,
}

impl Place {
    /// Below a property or an item.
    fn below(self) -> Self {
        Self { depth: self.depth + 1, definition: None, ..self }
    }

    /// A branch of a combination; it must not close what another branch opens.
    fn branch(self, closing: Closing) -> Self {
        Self { depth: self.depth + 1, closing, ..self }
    }
}

struct Normalizer<'a> {
    document: Document<'a>,
    reading: Reading,
    relaxed: BTreeSet<Relaxed>,
    /// Pointer and closing of each target of a reference, and its number.
    names: BTreeMap<(String, Closing), usize>,
    definitions: Map<String, Value>,
    /// Which definition is another one in place, without a property or an item between them.
    in_place: Vec<(usize, usize, String)>,
    schemas: usize,
}

type Object = Map<String, Value>;

impl Normalizer<'_> {
    fn schema(&mut self, schema: &Value, path: &str, place: Place) -> Result<Value, SchemaError> {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            return Err(SchemaError::new(path, "", SchemaFault::TooLarge("more than 20,000 schemas")));
        }
        if place.depth > MAX_DEPTH {
            return Err(SchemaError::new(path, "", SchemaFault::TooLarge("nested more than 48 deep")));
        }
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(map) => self.object(map, path, place),
            _ => Err(SchemaError::bad(path, "", "a schema is an object, true or false")),
        }
    }

    fn object(&mut self, map: &Object, path: &str, place: Place) -> Result<Value, SchemaError> {
        let mut out = Map::new();
        if let Some(reference) = map.get("$ref") {
            return self.reference(reference, map, path, place);
        }
        let combines = ["allOf", "anyOf", "oneOf"].iter().any(|key| map.contains_key(*key));
        let own = if combines { Closing::Open } else { place.closing };
        for (keyword, value) in map {
            if let Some(role) = role(keyword) {
                self.keyword(role, keyword, value, map, &mut out, path, place)?;
            }
        }
        self.adjust(&mut out, path, own);
        Ok(Value::Object(out))
    }

    #[allow(clippy::too_many_arguments)]
    fn keyword(
        &mut self,
        role: Role,
        keyword: &str,
        value: &Value,
        map: &Object,
        out: &mut Object,
        path: &str,
        place: Place,
    ) -> Result<(), SchemaError> {
        let at = format!("{path}/{keyword}");
        let kept = match role {
            Role::Relaxed => {
                self.relax(path, keyword);
                return Ok(());
            }
            Role::Unresolvable => return Err(SchemaError::new(path, keyword, SchemaFault::Unsupported)),
            Role::Own => return self.own_keyword(keyword, value, map, out, path, place),
            Role::Schema => self.schema(value, &at, self.below(place))?,
            Role::SchemaMap => self.schema_map(keyword, value, path, place)?,
            Role::SchemaList => self.schema_list(keyword, value, map, path, place)?,
            Role::Number if value.is_number() => value.clone(),
            Role::Number => return Err(SchemaError::bad(path, keyword, "it must be a number")),
            Role::Count => count(value)
                .ok_or_else(|| SchemaError::bad(path, keyword, "it must be a count, from 0"))?
                .into(),
        };
        out.insert(keyword.to_owned(), kept);
        Ok(())
    }

    /// What stands below a property or an item is a value of its own, closed as its reading says.
    fn below(&self, place: Place) -> Place {
        let closing = if self.reading == Reading::ToolParameters { Closing::Closed } else { Closing::Open };
        Place { closing, ..place.below() }
    }

    fn schema_map(
        &mut self,
        keyword: &str,
        value: &Value,
        path: &str,
        place: Place,
    ) -> Result<Value, SchemaError> {
        let map = value
            .as_object()
            .ok_or_else(|| SchemaError::bad(path, keyword, "it must be an object of schemas"))?;
        let place = self.below(place);
        let mut out = Map::new();
        for (key, value) in map {
            let at = format!("{path}/{keyword}/{}", escaped(key));
            out.insert(key.clone(), self.schema(value, &at, place)?);
        }
        Ok(Value::Object(out))
    }

    fn schema_list(
        &mut self,
        keyword: &str,
        value: &Value,
        map: &Object,
        path: &str,
        place: Place,
    ) -> Result<Value, SchemaError> {
        let list = value
            .as_array()
            .ok_or_else(|| SchemaError::bad(path, keyword, "it must be a list of schemas"))?;
        if list.is_empty() && keyword != "prefixItems" {
            return Err(SchemaError::bad(path, keyword, "it must not be empty"));
        }
        let place = match keyword {
            "prefixItems" => self.below(place),
            "allOf" if list.len() > 1 => place.branch(Closing::Open),
            _ if map.contains_key("properties") => place.branch(Closing::Open),
            _ => place.branch(place.closing),
        };
        let schemas = list.iter().enumerate();
        schemas.map(|(at, schema)| self.schema(schema, &format!("{path}/{keyword}/{at}"), place)).collect()
    }

    fn own_keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        map: &Object,
        out: &mut Object,
        path: &str,
        place: Place,
    ) -> Result<(), SchemaError> {
        match keyword {
            "const" => drop(out.insert("const".to_owned(), value.clone())),
            "enum" => {
                let values = value.as_array().filter(|values| !values.is_empty());
                let values =
                    values.ok_or_else(|| SchemaError::bad(path, keyword, "it must be a list of values"))?;
                if values.len() > MAX_ENUM {
                    return Err(SchemaError::new(
                        path,
                        keyword,
                        SchemaFault::TooLarge("more than 5,000 values"),
                    ));
                }
                out.insert("enum".to_owned(), value.clone());
            }
            "type" => drop(out.insert("type".to_owned(), types(value, path)?)),
            "required" => {
                let names = value.as_array().filter(|names| names.iter().all(Value::is_string));
                names.ok_or_else(|| SchemaError::bad(path, keyword, "it must be a list of names"))?;
                out.insert("required".to_owned(), value.clone());
            }
            "uniqueItems" => {
                if value
                    .as_bool()
                    .ok_or_else(|| SchemaError::bad(path, keyword, "it must be true or false"))?
                {
                    self.relax(path, keyword);
                }
            }
            "pattern" => {
                let pattern =
                    value.as_str().ok_or_else(|| SchemaError::bad(path, keyword, "it must be a string"))?;
                self.keep_if(is_supported(pattern), keyword, value, out, path);
            }
            "format" => {
                let format =
                    value.as_str().ok_or_else(|| SchemaError::bad(path, keyword, "it must be a string"))?;
                self.keep_if(FORMATS.contains(&format), keyword, value, out, path);
            }
            "exclusiveMinimum" | "exclusiveMaximum" => exclusive_bound(keyword, value, map, out, path)?,
            "items" | "additionalItems" => self.items(keyword, value, map, out, path, place)?,
            "oneOf" => self.one_of(value, map, out, path, place)?,
            _ => unreachable!("the table names no other keyword with rules of its own"),
        }
        Ok(())
    }

    fn keep_if(&mut self, keep: bool, keyword: &str, value: &Value, out: &mut Object, path: &str) {
        if keep {
            out.insert(keyword.to_owned(), value.clone());
        } else {
            self.relax(path, keyword);
        }
    }

    /// `items` in its older form, a list, is what `prefixItems` is now, and `additionalItems` what `items` is.
    fn items(
        &mut self,
        keyword: &str,
        value: &Value,
        map: &Object,
        out: &mut Object,
        path: &str,
        place: Place,
    ) -> Result<(), SchemaError> {
        let is_list = map.get("items").is_some_and(Value::is_array);
        let place = self.below(place);
        let at = format!("{path}/{keyword}");
        match (keyword, is_list) {
            ("items", true) => {
                let schemas = value.as_array().into_iter().flatten().enumerate();
                let schemas = schemas.map(|(i, schema)| self.schema(schema, &format!("{at}/{i}"), place));
                out.insert("prefixItems".to_owned(), schemas.collect::<Result<Value, _>>()?);
            }
            ("items", false) | ("additionalItems", true) => {
                out.insert("items".to_owned(), self.schema(value, &at, place)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn one_of(
        &mut self,
        value: &Value,
        map: &Object,
        out: &mut Object,
        path: &str,
        place: Place,
    ) -> Result<(), SchemaError> {
        let branches = self.schema_list("oneOf", value, map, path, place)?;
        if !all_disjoint(branches.as_array().map_or(&[], Vec::as_slice), &self.definitions) {
            self.relax(path, "oneOf");
        }
        if map.contains_key("anyOf") {
            let all = out.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.push(json!({"anyOf": branches}));
            }
        } else {
            out.insert("anyOf".to_owned(), branches);
        }
        Ok(())
    }

    fn reference(
        &mut self,
        reference: &Value,
        map: &Object,
        path: &str,
        place: Place,
    ) -> Result<Value, SchemaError> {
        let text = reference.as_str().ok_or_else(|| SchemaError::bad(path, "$ref", "it must be a string"))?;
        let siblings: Object = map
            .iter()
            .filter(|(key, _)| *key != "$ref" && role(key).is_some() && !self.document.ref_stands_alone)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let closing = if siblings.is_empty() { place.closing } else { Closing::Open };
        let name = self.definition(text, path, Place { closing, ..place })?;
        let reference = json!({"$ref": format!("#/$defs/{name}")});
        if siblings.is_empty() {
            return Ok(reference);
        }
        if !self.definitions.contains_key(&name) {
            // The target is still being read: what stands beside a reference into itself cannot be merged with it.
            siblings.keys().for_each(|keyword| self.relax(path, keyword));
            return Ok(reference);
        }
        let beside = self.object(&siblings, path, Place { closing, ..place })?;
        Ok(json!({"allOf": [reference, beside]}))
    }

    /// The name of the definition that `reference` leads to; it is read when it is met first.
    fn definition(&mut self, reference: &str, path: &str, place: Place) -> Result<String, SchemaError> {
        let Some((pointer, target)) = self.document.resolve(reference) else {
            let outside = !reference.starts_with('#');
            return Err(match outside {
                true => SchemaError::new(path, "$ref", SchemaFault::Unsupported),
                false => SchemaError::bad(path, "$ref", &format!("nothing stands at {reference}")),
            });
        };
        let key = (pointer, place.closing);
        let known = self.names.get(&key).copied();
        let number = known.unwrap_or(self.names.len());
        if let Some(definition) = place.definition {
            self.in_place.push((definition, number, path.to_owned()));
        }
        let name = format!("d{number}");
        if known.is_none() {
            let at = format!("#{}", key.0);
            self.names.insert(key, number);
            let place = Place { depth: place.depth + 1, definition: Some(number), ..place };
            let schema = self.schema(target, &at, place)?;
            self.definitions.insert(name.clone(), schema);
        }
        Ok(name)
    }

    /// Refuses definitions that are themselves in place: no value is ever decided by them.
    fn refuse_cycles(&self) -> Result<(), SchemaError> {
        let mut edges: BTreeMap<usize, Vec<(usize, &str)>> = BTreeMap::new();
        for (from, to, path) in &self.in_place {
            edges.entry(*from).or_default().push((*to, path));
        }
        for &start in edges.keys() {
            let mut seen = BTreeSet::new();
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                for &(to, path) in edges.get(&at).into_iter().flatten() {
                    if to == start {
                        return Err(SchemaError::bad(path, "$ref", "it leads back to itself"));
                    }
                    if seen.insert(to) {
                        open.push(to);
                    }
                }
            }
        }
        Ok(())
    }

    /// What depends on several keywords at once.
    fn adjust(&mut self, out: &mut Object, path: &str, closing: Closing) {
        if self.reading == Reading::ToolParameters {
            infer_type(out);
        }
        if closing == Closing::Closed
            && out.contains_key("properties")
            && !out.contains_key("patternProperties")
        {
            close(out);
        }
        let patterns = out.get("patternProperties").and_then(Value::as_object);
        let patterns: Vec<&str> = patterns.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let supported = patterns.iter().all(|pattern| is_supported(pattern))
            && (patterns.len() < 2 || are_disjoint(patterns.iter().copied()));
        if !supported {
            self.relax(path, "patternProperties");
            out.shift_remove("patternProperties");
            out.shift_remove("additionalProperties");
        }
        if !counts_of_properties_have_grammar(out) {
            for keyword in ["minProperties", "maxProperties"] {
                if out.shift_remove(keyword).is_some() {
                    self.relax(path, keyword);
                }
            }
        }
    }

    fn relax(&mut self, path: &str, keyword: &str) {
        self.relaxed.insert(Relaxed { tool: None, path: path.to_owned(), keyword: keyword.to_owned() });
    }
}

fn infer_type(out: &mut Object) {
    if out.contains_key("type") || out.contains_key("enum") || out.contains_key("const") {
        return;
    }
    if out.contains_key("properties") {
        out.insert("type".to_owned(), "object".into());
    } else if out.contains_key("items") {
        out.insert("type".to_owned(), "array".into());
    }
}

/// Names all properties and allows no others, unless the schema speaks of others.
fn close(out: &mut Object) {
    if out.contains_key("additionalProperties") {
        return;
    }
    let required: Vec<String> = out
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if let Some(Value::Object(properties)) = out.get_mut("properties") {
        for name in required {
            properties.entry(name).or_insert(Value::Bool(true));
        }
    }
    out.insert("additionalProperties".to_owned(), Value::Bool(false));
}

/// Counts of properties have a grammar where every named property is required, or "at least" or "at most one" is asked of a
/// closed object.
fn counts_of_properties_have_grammar(out: &Object) -> bool {
    let count = |key: &str| out.get(key).and_then(Value::as_u64);
    let (min, max) = (count("minProperties"), count("maxProperties"));
    let required: BTreeSet<&str> = out
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = out.get("properties").and_then(Value::as_object);
    let optional = properties.into_iter().flat_map(Map::keys).any(|name| !required.contains(name.as_str()));
    let min = min.unwrap_or(0).saturating_sub(required.len() as u64);
    let max = max.map(|max| max.saturating_sub(required.len() as u64));
    let closed = out.get("additionalProperties") == Some(&Value::Bool(false))
        && !out.contains_key("patternProperties");
    !optional || (min == 0 && max.is_none()) || (min <= 1 && max.unwrap_or(1) == 1 && closed)
}

/// Up to draft 4 an exclusive bound is a flag beside the bound.
fn exclusive_bound(
    keyword: &str,
    value: &Value,
    map: &Object,
    out: &mut Object,
    path: &str,
) -> Result<(), SchemaError> {
    let plain = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
    let bound = match (value, map.get(plain)) {
        (Value::Number(_), _) => value.clone(),
        (Value::Bool(true), Some(bound)) if bound.is_number() => bound.clone(),
        (Value::Bool(_), _) => return Ok(()),
        _ => return Err(SchemaError::bad(path, keyword, "it must be a number")),
    };
    out.insert(keyword.to_owned(), bound);
    Ok(())
}

fn types(value: &Value, path: &str) -> Result<Value, SchemaError> {
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_type = match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        value => known(value),
    };
    if is_type {
        Ok(value.clone())
    } else {
        Err(SchemaError::bad(path, "type", &format!("{value} is no type")))
    }
}

/// A count, also as old writers give it: `2.0`.
fn count(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n)).map(|n| n as u64))
}
