//! Normal form of a schema, with only the keywords that can be expressed, from which values are written.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::ValidatorMap;
use lm_template::Value;
use serde_json::{Map, json};

use super::disjoint::all_disjoint;
use super::document::{Document, escaped};
use super::ecma_patterns::{pattern_error, with_ecma_patterns};
use super::error::{SchemaError, SchemaFault};
use super::integer_range::{BEYOND, beyond_64_bits, check_integer_bounds};
use super::keywords::{FORMATS, Role, TYPES, role};
use super::node::{Closing, MAX_DEPTH, Node, Object, Place};
use super::parts::required;
use super::pattern::has_grammar;
use super::{Normalized, Reading, UnenforcedKeyword};

/// Maximum number of schemas in a document, each reference's target counted once.
const MAX_SCHEMAS: usize = 20_000;
/// Maximum number of properties of an object, and of required ones.
const MAX_PROPERTIES: usize = 5_000;
/// Maximum number of values of an `enum`.
const MAX_ENUM: usize = 5_000;
/// Maximum bytes of the values of an `enum`, as JSON.
const MAX_ENUM_BYTES: usize = 1 << 20;

pub(super) struct Normalizer<'a> {
    pub(super) document: Document<'a>,
    pub(super) reading: Reading,
    pub(super) unenforced: BTreeSet<UnenforcedKeyword>,
    /// Number of each reference target, by pointer and closing.
    pub(super) names: BTreeMap<(String, Closing), usize>,
    pub(super) definitions: Object,
    /// Pairs of a definition and one that it contains in place (without a property or an item between them),
    /// with the path.
    pub(super) in_place: Vec<(usize, usize, String)>,
    /// Validators of all schemas of the document, built on demand; the inner `None` means that this failed.
    pub(super) validators: Option<Option<ValidatorMap>>,
    schemas: usize,
}

/// Returns true for a schema that excludes every value: `{"not": {}}`.
fn excludes_all(schema: &Object) -> bool {
    let accepts_all = |schema: &Value| *schema == true || schema.as_object().is_some_and(Map::is_empty);
    // What is beside a reference is ignored in older drafts.
    !schema.contains_key("$ref") && schema.get("not").is_some_and(accepts_all)
}

impl<'a> Normalizer<'a> {
    pub(super) fn new(schema: &'a Value, reading: Reading) -> Self {
        Self {
            document: Document::new(schema),
            reading,
            unenforced: BTreeSet::new(),
            names: BTreeMap::new(),
            definitions: Map::new(),
            in_place: Vec::new(),
            validators: None,
            schemas: 0,
        }
    }

    pub(super) fn run(mut self, schema: &'a Value) -> Result<Normalized<'a>, SchemaError> {
        let place = Place { depth: 0, closing: self.closing(), definition: None, may_be_empty: false };
        let mut root = self.schema(schema, "#", place)?;
        // Patterns are checked in all schemas, also in those of keywords that have no grammar.
        with_ecma_patterns(schema)?;
        self.reject_cycles()?;
        self.reject_infinite(&root)?;
        self.reject_long(&root)?;
        if let (Value::Object(map), false) = (&mut root, self.definitions.is_empty()) {
            map.insert("$defs".to_owned(), Value::Object(self.definitions));
        }
        let places = self.names.into_iter();
        let places = places.map(|((pointer, _), number)| (format!("d{number}"), format!("#{pointer}")));
        Ok(Normalized {
            document: schema,
            schema: root,
            unenforced: self.unenforced,
            places: places.collect(),
        })
    }

    pub(super) fn schema(&mut self, schema: &Value, path: &str, place: Place) -> Result<Value, SchemaError> {
        let too_large = |what| Err(SchemaError::new(path, "", SchemaFault::TooLarge(what)));
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            return too_large("more than 20,000 schemas");
        }
        if place.depth > MAX_DEPTH {
            return too_large("nested more than 48 deep");
        }
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(map) if excludes_all(map) => Ok(false.into()),
            Value::Object(map) => self.object(Node { map, path, place }),
            _ => Err(SchemaError::bad(path, "", "a schema is an object, true or false")),
        }
    }

    pub(super) fn object(&mut self, node: Node<'_>) -> Result<Value, SchemaError> {
        if let Some(reference) = node.map.get("$ref") {
            return self.reference(node, reference);
        }
        let mut out = Map::new();
        for (keyword, value) in node.map {
            if let Some(role) = role(keyword) {
                self.keyword(node, role, keyword, value, &mut out)?;
            }
        }
        check_integer_bounds(&out, node)?;
        self.adjust(&mut out, node);
        self.filter_enum(&mut out, node)?;
        Ok(Value::Object(out))
    }

    fn keyword(
        &mut self,
        node: Node<'_>,
        role: Role,
        keyword: &str,
        value: &Value,
        out: &mut Object,
    ) -> Result<(), SchemaError> {
        let kept = match role {
            Role::Unenforced => {
                self.leave_unenforced(node.path, keyword);
                return Ok(());
            }
            Role::Unresolvable => return Err(SchemaError::new(node.path, keyword, SchemaFault::Unsupported)),
            Role::Own => return self.own_keyword(node, keyword, value, out),
            Role::Schema => self.schema(value, &format!("{}/{keyword}", node.path), self.below(node))?,
            Role::SchemaMap => self.schema_map(node, keyword, value)?,
            Role::SchemaList => self.schema_list(node, keyword, value)?,
            Role::Number if value.is_number() => value.clone(),
            Role::Number => return Err(node.bad(keyword, "it must be a number")),
            Role::Count => {
                count(value).ok_or_else(|| node.bad(keyword, "it must be a count, from 0"))?.into()
            }
        };
        match (out.get_mut(keyword), kept) {
            // The `anyOf` of a `oneOf` sibling may exist already.
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, kept) => drop(out.insert(keyword.to_owned(), kept)),
        }
        Ok(())
    }

    fn closing(&self) -> Closing {
        if self.reading == Reading::ToolParameters { Closing::Closed } else { Closing::Open }
    }

    /// Place of a subschema of a property or an item: a separate value, closed as its reading says.
    pub(super) fn below(&self, node: Node<'_>) -> Place {
        Place { depth: node.place.depth + 1, closing: self.closing(), definition: None, may_be_empty: false }
    }

    fn schema_map(&mut self, node: Node<'_>, keyword: &str, value: &Value) -> Result<Value, SchemaError> {
        let map = value.as_object().ok_or_else(|| node.bad(keyword, "it must be an object of schemas"))?;
        if map.len() > MAX_PROPERTIES {
            return Err(SchemaError::new(
                node.path,
                keyword,
                SchemaFault::TooLarge("more than 5,000 properties"),
            ));
        }
        let is_required = |key: &str| required(node.map).any(|name| name == key);
        let mut out = Map::new();
        for (key, value) in map {
            let at = format!("{}/{keyword}/{}", node.path, escaped(key));
            let place = Place { may_be_empty: !is_required(key), ..self.below(node) };
            out.insert(key.clone(), self.schema(value, &at, place)?);
        }
        Ok(Value::Object(out))
    }

    fn schema_list(&mut self, node: Node<'_>, keyword: &str, value: &Value) -> Result<Value, SchemaError> {
        let list = value.as_array().ok_or_else(|| node.bad(keyword, "it must be a list of schemas"))?;
        if list.is_empty() && keyword != "prefixItems" {
            return Err(node.bad(keyword, "it must not be empty"));
        }
        let place = match keyword {
            "prefixItems" | "items" => self.below(node),
            "allOf" if list.len() > 1 => node.place.branch(Closing::Open),
            _ if node.map.contains_key("properties") => node.place.branch(Closing::Open),
            _ => node.place.branch(node.place.closing),
        };
        let schemas = list.iter().enumerate();
        schemas
            .map(|(at, schema)| self.schema(schema, &format!("{}/{keyword}/{at}", node.path), place))
            .collect()
    }

    fn own_keyword(
        &mut self,
        node: Node<'_>,
        keyword: &str,
        value: &Value,
        out: &mut Object,
    ) -> Result<(), SchemaError> {
        let keep = match keyword {
            "const" => true,
            "enum" => {
                let values = value.as_array().filter(|values| !values.is_empty());
                let values = values.ok_or_else(|| node.bad(keyword, "it must be a list of values"))?;
                if values.len() > MAX_ENUM {
                    let fault = SchemaFault::TooLarge("more than 5,000 values");
                    return Err(SchemaError::new(node.path, keyword, fault));
                }
                if value.to_string().len() > MAX_ENUM_BYTES {
                    let fault = SchemaFault::TooLarge("more than 1 MiB of values");
                    return Err(SchemaError::new(node.path, keyword, fault));
                }
                true
            }
            "type" if is_type(value) => true,
            "type" => return Err(node.bad(keyword, &format!("{value} is not a type"))),
            "required" => {
                let names = value.as_array().filter(|names| names.iter().all(Value::is_string));
                let names = names.ok_or_else(|| node.bad(keyword, "it must be a list of names"))?;
                if names.len() > MAX_PROPERTIES {
                    let fault = SchemaFault::TooLarge("more than 5,000 properties");
                    return Err(SchemaError::new(node.path, keyword, fault));
                }
                let mut seen = BTreeSet::new();
                let names = names.iter().filter(|name| seen.insert(name.as_str())).cloned();
                out.insert(keyword.to_owned(), names.collect());
                return Ok(());
            }
            // Only `uniqueItems: true` is a restriction.
            "uniqueItems" => match value.as_bool() {
                Some(true) => false,
                Some(false) => return Ok(()),
                None => return Err(node.bad(keyword, "it must be true or false")),
            },
            "pattern" => has_grammar(node.text(keyword, value)?)
                .map_err(|error| pattern_error(error, node.path, keyword))?,
            "multipleOf" => {
                let divisor = value.as_number().filter(|divisor| divisor.as_f64().is_some_and(|it| it > 0.0));
                let divisor = divisor.ok_or_else(|| node.bad(keyword, "it must be a number above 0"))?;
                if beyond_64_bits(value).is_some() {
                    return Err(node.bad(keyword, &format!("{divisor} {BEYOND}")));
                }
                true
            }
            "format" => FORMATS.contains(&node.text(keyword, value)?),
            "exclusiveMinimum" | "exclusiveMaximum" => return exclusive_bound(node, keyword, value, out),
            "items" | "additionalItems" => return self.items(node, keyword, value, out),
            "oneOf" => return self.one_of(node, value, out),
            "propertyNames" => return self.names(node, value, out),
            _ => unreachable!("the table names no other keyword with rules of its own"),
        };
        if keep {
            out.insert(keyword.to_owned(), value.clone());
        } else {
            self.leave_unenforced(node.path, keyword);
        }
        Ok(())
    }

    /// The older list form of `items` becomes `prefixItems`, with `additionalItems` as `items`.
    fn items(
        &mut self,
        node: Node<'_>,
        keyword: &str,
        value: &Value,
        out: &mut Object,
    ) -> Result<(), SchemaError> {
        let is_list = node.map.get("items").is_some_and(Value::is_array);
        match (keyword, is_list) {
            ("items", true) => {
                out.insert("prefixItems".to_owned(), self.schema_list(node, keyword, value)?);
            }
            ("items", false) | ("additionalItems", true) => {
                let items = self.schema(value, &format!("{}/{keyword}", node.path), self.below(node))?;
                out.insert("items".to_owned(), items);
            }
            _ => {}
        }
        Ok(())
    }

    fn one_of(&mut self, node: Node<'_>, value: &Value, out: &mut Object) -> Result<(), SchemaError> {
        let branches = self.schema_list(node, "oneOf", value)?;
        if !all_disjoint(branches.as_array().map_or(&[], Vec::as_slice), &self.definitions) {
            self.leave_unenforced(node.path, "oneOf");
        }
        if !node.map.contains_key("anyOf") {
            out.insert("anyOf".to_owned(), branches);
        } else if let Value::Array(all) = out.entry("allOf").or_insert_with(|| json!([])) {
            all.push(json!({"anyOf": branches}));
        }
        Ok(())
    }

    pub(super) fn leave_unenforced(&mut self, path: &str, keyword: &str) {
        self.unenforced.insert(UnenforcedKeyword {
            tool: None,
            path: path.to_owned(),
            keyword: keyword.to_owned(),
        });
    }
}

/// Up to draft 4, an exclusive bound is a flag next to the bound.
fn exclusive_bound(
    node: Node<'_>,
    keyword: &str,
    value: &Value,
    out: &mut Object,
) -> Result<(), SchemaError> {
    let plain = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
    let bound = match (value, node.map.get(plain)) {
        (Value::Number(_), _) => value,
        (Value::Bool(true), Some(bound)) if bound.is_number() => bound,
        (Value::Bool(_), _) => return Ok(()),
        _ => return Err(node.bad(keyword, "it must be a number")),
    };
    out.insert(keyword.to_owned(), bound.clone());
    Ok(())
}

fn is_type(value: &Value) -> bool {
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        value => known(value),
    }
}

/// A count, including the older form `2.0`.
fn count(value: &Value) -> Option<u64> {
    let whole = || value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n));
    value.as_u64().or_else(|| whole().map(|n| n as u64))
}
