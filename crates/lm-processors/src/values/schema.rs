//! Type information in a tool's schema.

use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::SchemaCache;
use crate::marker_guard::unguarded;
use crate::schema::{SchemaValidator, names_of_types, required, validator};

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const NUMBER: Self = Self(8 | 4);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ANY: Self = Self(127);

    /// Returns true if every type of `other` is in the set.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if some type of `other` is in the set.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Type of a value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self(8),
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Type by name: those of JSON Schema, and those of Python and Java found in tool declarations. An
    /// unknown name means any type.
    fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "null" | "none" => Self::NULL,
            "boolean" | "bool" => Self::BOOLEAN,
            "integer" | "int" | "long" => Self::INTEGER,
            "number" | "float" | "double" => Self::NUMBER,
            "string" | "str" | "char" => Self::STRING,
            "array" | "list" | "tuple" | "set" | "arraylist" => Self::ARRAY,
            "object" | "dict" | "map" | "hashmap" => Self::OBJECT,
            _ => Self::ANY,
        }
    }
}

/// Maximum number of references and combinations followed before a schema is treated as unconstrained.
const MAX_STEPS: usize = 24;

/// URI of a schema's document, and the key of the current subschema in it, for validation.
const DOCUMENT: &str = "urn:lm:parameters";
const HERE: &str = "x-lm-here";

/// A schema within the document of its references.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'a> {
    root: &'a Value,
    here: &'a Value,
    cache: &'a SchemaCache,
}

impl<'a> Schema<'a> {
    /// Schema of a tool's arguments.
    pub(crate) fn new(root: &'a Value, cache: &'a SchemaCache) -> Self {
        Self { root, here: root, cache }
    }

    pub(super) fn at(self, here: &'a Value) -> Self {
        Self { here, ..self }
    }

    pub(super) fn keyword(self, keyword: &str) -> Option<&'a Value> {
        self.here.get(keyword)
    }

    /// Schema of a property, if the schema defines it: by its name, by a pattern of names, or for undeclared
    /// ones.
    pub(crate) fn property(self, key: &str) -> Option<Self> {
        self.find(MAX_STEPS, &|schema| schema.own_property(key))
    }

    /// The same, without references and combinations: by its name, else by its name's pattern.
    pub(super) fn own_property(self, key: &str) -> Option<Self> {
        let key = unguarded(key);
        let declared = self.keyword("properties").and_then(|properties| properties.get(&*key));
        let further = || self.keyword("additionalProperties").filter(|schema| schema.is_object());
        declared.or_else(|| self.of_pattern(&key)).or_else(further).map(|schema| self.at(schema))
    }

    /// Schema of the first of `patternProperties` in which `key` is found.
    fn of_pattern(self, key: &str) -> Option<&'a Value> {
        let patterns = self.keyword("patternProperties")?.as_object()?;
        patterns
            .iter()
            .find(|(pattern, schema)| self.cache.finds(pattern, schema, key))
            .map(|(_, schema)| schema)
    }

    /// Schema of an array's elements.
    fn items(self) -> Option<Self> {
        self.find(MAX_STEPS, &|schema| schema.own_items())
    }

    /// The same, without references and combinations.
    pub(super) fn own_items(self) -> Option<Self> {
        self.keyword("items").filter(|schema| schema.is_object()).map(|schema| self.at(schema))
    }

    /// Schema of all elements of an array; `None` if alternatives or positions have their own.
    pub(crate) fn all_items(self) -> Option<Self> {
        let target = self.reference().unwrap_or(self);
        let alike =
            !["anyOf", "oneOf", "allOf", "prefixItems"].iter().any(|key| target.here.get(key).is_some());
        if alike { target.items() } else { None }
    }

    /// Names of the declared properties, in order.
    pub(crate) fn property_names(self) -> Vec<String> {
        let properties =
            self.find(MAX_STEPS, &|schema| schema.keyword("properties").map(|found| schema.at(found)));
        let properties = properties.and_then(|properties| properties.here.as_object());
        properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
    }

    /// The first of these values that matches the schema; the first of all if none does, or if the schema has
    /// no validator.
    pub(crate) fn first_fitting(self, mut values: Vec<Value>) -> Value {
        let validator = if values.len() > 1 { self.validator() } else { None };
        let fitting =
            validator.and_then(|validator| values.iter().position(|value| validator.is_valid(value)));
        values.swap_remove(fitting.unwrap_or_default())
    }

    /// Returns true if a value matches the schema, or the schema has no validator.
    pub(crate) fn fits(self, value: &Value) -> bool {
        self.validator().is_none_or(|validator| validator.is_valid(value))
    }

    /// Returns true if `other` is the same part of the same document.
    pub(crate) fn is(self, other: Self) -> bool {
        std::ptr::eq(self.here, other.here)
    }

    /// Validator of the schema.
    fn validator(self) -> Option<Arc<SchemaValidator>> {
        self.cache.validator(self.here, || self.compiled())
    }

    /// Address that identifies the schema among its tools.
    pub(crate) fn address(self) -> usize {
        std::ptr::from_ref(self.here).addr()
    }

    /// Builds a validator of the schema, whose references point into its document.
    fn compiled(self) -> Option<SchemaValidator> {
        let mut root = self.root.as_object()?.clone();
        root.remove("$schema");
        root.insert("$id".to_owned(), DOCUMENT.into());
        root.insert(HERE.to_owned(), self.here.clone());
        let document = json!({"$ref": format!("{DOCUMENT}#/{HERE}"), "$defs": {"document": root}});
        validator(&document, true).ok()
    }

    /// Names of all properties declared or required by the schema, its alternatives and its parts.
    pub(crate) fn declared_names(self) -> Vec<String> {
        let mut names = Vec::new();
        self.collect_names(MAX_STEPS, &mut names);
        names
    }

    /// Returns true if the schema or one of its subschemas declares or requires this property, or applies to
    /// all undeclared ones.
    pub(crate) fn declares(self, key: &str) -> bool {
        self.property(key).is_some() || self.declared_names().iter().any(|name| *name == unguarded(key))
    }

    fn collect_names(self, steps: usize, names: &mut Vec<String>) {
        let Some(steps) = steps.checked_sub(1) else { return };
        let declared = self.here.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        names.extend(declared.cloned().chain(self.required().map(str::to_owned)));
        if let Some(target) = self.reference() {
            target.collect_names(steps, names);
        }
        self.combined().for_each(|schema| schema.collect_names(steps / 2, names));
    }

    /// A required property that is not among these.
    pub(crate) fn missing(self, keys: &[String]) -> Option<&'a str> {
        self.required().find(|name| !keys.iter().any(|key| key == name))
    }

    fn required(self) -> impl Iterator<Item = &'a str> {
        self.here.as_object().into_iter().flat_map(required)
    }

    /// Returns the first result of `ask` for the schema, its reference, or one of its alternatives.
    fn find(self, steps: usize, ask: &dyn Fn(Self) -> Option<Self>) -> Option<Self> {
        let steps = steps.checked_sub(1)?;
        if let Some(found) = ask(self) {
            return Some(found);
        }
        if let Some(target) = self.reference() {
            return target.find(steps, ask);
        }
        self.combined().find_map(|schema| schema.find(steps / 2, ask))
    }

    /// Schemas of a combination: `anyOf`, `oneOf` or `allOf`.
    pub(super) fn branches(self, keyword: &str) -> impl Iterator<Item = Self> + use<'a> {
        let schemas = self.keyword(keyword).and_then(Value::as_array).into_iter().flatten();
        schemas.map(move |schema| self.at(schema))
    }

    fn combined(self) -> impl Iterator<Item = Self> {
        ["anyOf", "oneOf", "allOf"].into_iter().flat_map(move |keyword| self.branches(keyword))
    }

    pub(super) fn reference(self) -> Option<Self> {
        let pointer = self.here.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer).map(|target| self.at(target))
    }

    /// Types that the schema allows; all if unspecified.
    pub(crate) fn types(self) -> Types {
        self.types_within(MAX_STEPS)
    }

    fn types_within(self, steps: usize) -> Types {
        let Some(steps) = steps.checked_sub(1) else { return Types::ANY };
        let mut types = self.own_types();
        if let Some(target) = self.reference() {
            types = types.and(target.types_within(steps));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(schemas) = self.here.get(key).and_then(Value::as_array) {
                let each = schemas.iter().map(|schema| self.at(schema).types_within(steps / 2));
                types = types.and(each.fold(Types::NONE, Types::or));
            }
        }
        for schema in self.branches("allOf") {
            types = types.and(schema.types_within(steps / 2));
        }
        let nullable = self.here.get("nullable") == Some(&Value::Bool(true));
        let types = if types == Types::NONE { Types::ANY } else { types };
        if nullable { types.or(Types::NULL) } else { types }
    }

    /// Types by `type`, `enum` and `const`, else by keywords of a single type.
    pub(super) fn own_types(self) -> Types {
        let get = |key| self.here.get(key);
        let values = get("enum").and_then(Value::as_array).map(|values| values.iter().map(Types::of));
        let by_value = match (get("const"), values) {
            (Some(value), _) => Types::of(value),
            (None, Some(types)) => types.fold(Types::NONE, Types::or),
            (None, None) => Types::ANY,
        };
        let by_name = match get("type").and_then(names_of_types) {
            Some(names) => names.into_iter().map(Types::named).fold(Types::NONE, Types::or),
            _ if by_value != Types::ANY => Types::ANY,
            _ if get("properties").is_some() => Types::OBJECT,
            _ if get("items").is_some() => Types::ARRAY,
            _ => Types::ANY,
        };
        by_name.and(by_value)
    }

    /// The value of `enum` or `const` that is written as this text, if any.
    pub(crate) fn listed(self, text: &str) -> Option<&'a Value> {
        let values = self.here.get("enum").and_then(Value::as_array).into_iter().flatten();
        values.chain(self.here.get("const")).find(|value| match value {
            Value::String(listed) => listed == text,
            value => text == value.to_string().as_str(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types(schema: &Value) -> Types {
        Schema::new(schema, &SchemaCache::default()).types()
    }

    #[test]
    fn types_of_schemas() {
        let string_or_null = Types::STRING.or(Types::NULL);
        let cases = [
            (json!({"type": "string"}), Types::STRING),
            (json!({"type": ["null", "string"]}), string_or_null),
            (json!({"type": "string", "nullable": true}), string_or_null),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), string_or_null),
            (json!({"oneOf": [{"type": "string"}, {"enum": [null]}]}), string_or_null),
            (
                json!({"allOf": [{"type": ["string", "integer"]}, {"type": ["string", "null"]}]}),
                Types::STRING,
            ),
            (json!({"enum": ["a", "b"]}), Types::STRING),
            (json!({"const": 3}), Types::INTEGER),
            (json!({"enum": [1, 2.5]}), Types::NUMBER),
            (json!({"properties": {}}), Types::OBJECT),
            (json!({"items": {}}), Types::ARRAY),
            (json!({"type": "dict"}), Types::OBJECT),
            (json!({"type": "any"}), Types::ANY),
            (json!({}), Types::ANY),
            (json!(true), Types::ANY),
            (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}), Types::NUMBER),
            (json!({"$ref": "#"}), Types::ANY),
            (json!({"$ref": "elsewhere"}), Types::ANY),
        ];
        for (schema, expected) in cases {
            assert_eq!(types(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn properties_are_found_through_references_and_alternatives() {
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/point"}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/point"}]}},
            "additionalProperties": {"type": "boolean"},
            "patternProperties": {"^x-": {"type": "integer"}, "y$": true},
            "$defs": {"point": {"properties": {"x": {"type": "number"}}}},
        });
        let cache = SchemaCache::default();
        let schema = Schema::new(&schema, &cache);
        let type_of = |path: &[&str]| {
            path.iter().try_fold(schema, |schema, key| schema.property(key)).map(Schema::types)
        };
        assert_eq!(type_of(&["a", "x"]), Some(Types::NUMBER));
        assert_eq!(type_of(&["b", "x"]), Some(Types::NUMBER));
        assert_eq!(type_of(&["a", "y"]), None);
        assert_eq!(type_of(&["c"]), Some(Types::BOOLEAN));
        assert_eq!(type_of(&["x-y"]), Some(Types::INTEGER));
        assert_eq!(type_of(&["xy"]), Some(Types::ANY));
        assert_eq!(schema.property_names(), ["a", "b"]);
    }
}
