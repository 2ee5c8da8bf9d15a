//! Number of times that a validator applies the schemas of a document: once for each path to a schema, and
//! the number of paths may double with each reference.

use std::collections::HashMap;
use std::ptr::from_ref;

use lm_template::Value;
use referencing::{Draft, Registry, uri};

use super::applied::Located;
use super::error::{SchemaError, SchemaFault};
use super::keywords::{OF_ITEMS, OF_MEMBERS};

/// Maximum number of applications to a value, one of its parts, one of the part's parts, and so on.
const MAX_APPLICATIONS: u64 = 100_000;
/// Maximum number of steps from the document to a schema.
const MAX_DEPTH: usize = 400;
/// Address of a document without an address.
const BASE: &str = "json-schema:///";

/// Refuses a schema if one of its values may need too many applications. A recursive schema counts once: the
/// validator remembers its results for each part of the value.
///
/// # Errors
/// [`SchemaFault::TooLarge`], or [`SchemaFault::Bad`] for a schema that contains itself in place.
pub(super) fn check_evaluations(root: &Value) -> Result<(), SchemaError> {
    count(root, To::Any, MAX_APPLICATIONS).map(drop)
}

/// Returns true if a validator that skips nothing and remembers nothing applies at most `max` schemas to
/// `value` and its parts.
pub(super) fn is_cheap(root: &Value, value: &Value, max: u64) -> bool {
    count(root, To::Value(value), max).is_ok()
}

fn count(root: &Value, to: To<'_>, max: u64) -> Result<u64, SchemaError> {
    let bad = |error: &dyn ToString| SchemaError::bad("#", "", &error.to_string());
    let draft = Draft::default().detect(root);
    let registry = Registry::new().draft(draft).add(BASE, root).and_then(|registry| registry.prepare());
    let registry = registry.map_err(|error| bad(&error))?;
    let base = uri::from_str(BASE).map_err(|error| bad(&error))?;
    let root = Located::new(root, "#".to_owned(), registry.resolver(base), draft);
    Counter { counts: HashMap::new(), max }.count(&root, to, 0)
}

/// Value that schemas are applied to.
#[derive(Clone, Copy)]
enum To<'v> {
    /// A value without its parts.
    Whole,
    /// A value with one such part for each keyword.
    Any,
    /// A value with all of its parts.
    Value(&'v Value),
}

impl<'v> To<'v> {
    fn address(self) -> usize {
        match self {
            To::Whole => 0,
            To::Any => 1,
            To::Value(value) => from_ref(value).addr(),
        }
    }

    /// Keywords that apply to parts of the value.
    fn keywords(self) -> Vec<&'static str> {
        match self {
            To::Any => [OF_MEMBERS, OF_ITEMS].concat(),
            To::Value(Value::Object(_)) => OF_MEMBERS.to_vec(),
            To::Value(Value::Array(_)) => OF_ITEMS.to_vec(),
            To::Value(_) | To::Whole => Vec::new(),
        }
    }

    /// Parts that the schema with this key applies to, or may apply to.
    fn parts(self, keyword: &str, key: &str) -> Vec<Self> {
        match self {
            To::Value(Value::Object(members)) if keyword == "properties" => {
                members.get(key).map(To::Value).into_iter().collect()
            }
            To::Value(Value::Object(members)) => members.values().map(To::Value).collect(),
            To::Value(Value::Array(items)) => match key.parse::<usize>() {
                Ok(index) => items.get(index).map(To::Value).into_iter().collect(),
                Err(_) => items.iter().map(To::Value).collect(),
            },
            other => vec![other],
        }
    }
}

struct Counter {
    /// Numbers by the addresses of schema and value; `None` while they are being counted.
    counts: HashMap<(usize, usize), Option<u64>>,
    max: u64,
}

impl Counter {
    /// Counts the applications of a schema and of those below it.
    fn count(&mut self, at: &Located<'_>, to: To<'_>, depth: usize) -> Result<u64, SchemaError> {
        let too_large = |what| Err(SchemaError::new(&at.path, "", SchemaFault::TooLarge(what)));
        let too_often = || too_large("a value may need more than 100,000 applications of its schemas");
        if !at.schema.is_object() {
            return Ok(1);
        }
        let key = (from_ref(at.schema).addr(), to.address());
        match (self.counts.get(&key), to) {
            (Some(Some(count)), _) => return Ok(*count),
            (Some(None), To::Any) => return Ok(1),
            (Some(None), _) => return Err(SchemaError::bad(&at.path, "", "it leads back to itself")),
            (None, _) if depth > MAX_DEPTH => return too_large("nested more than 400 deep"),
            (None, To::Value(_)) if self.counts.len() as u64 >= self.max => return too_often(),
            (None, _) => drop(self.counts.insert(key, None)),
        }
        if let To::Any = to {
            self.count(at, To::Whole, depth)?;
        }
        let mut count = 1;
        for schema in at.in_place() {
            count += at.rounds() * self.count(&schema, to, depth + 1)?;
        }
        for keyword in to.keywords() {
            count += self.of_parts(at, keyword, to, depth + 1)?;
        }
        if count > self.max {
            return too_often();
        }
        self.counts.insert(key, Some(count));
        Ok(count)
    }

    /// Counts the applications to parts of the value by one keyword.
    fn of_parts(
        &mut self,
        at: &Located<'_>,
        keyword: &str,
        to: To<'_>,
        depth: usize,
    ) -> Result<u64, SchemaError> {
        let mut count: u64 = 0;
        for (key, schema) in at.schemas(keyword) {
            for part in to.parts(keyword, &key) {
                let of_part = self.count(&schema, part, depth)?;
                count = if let To::Any = to { count.max(of_part) } else { count + of_part };
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::validator::{validator, validators};
    use super::*;

    /// Schemas `d0` to `d{n}`, each but the last made of two references to the next one.
    fn doubled(n: usize, link: impl Fn(&Value) -> Value) -> Map<String, Value> {
        let schema = |at: usize| match at == n {
            true => json!({"type": "object"}),
            false => link(&json!({"$ref": format!("#/$defs/d{}", at + 1)})),
        };
        (0..=n).map(|at| (format!("d{at}"), schema(at))).collect()
    }

    fn is_refused(schema: &Value) -> bool {
        let is_refused = match validator(schema, false) {
            Ok(_) => false,
            Err(SchemaError { fault: SchemaFault::TooLarge(_), .. }) => true,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(validators(schema).is_none(), is_refused);
        is_refused
    }

    #[test]
    fn doubling_references_are_bounded_for_each_keyword() {
        let links: [fn(&Value) -> Value; 9] = [
            |next| json!({"allOf": [next, next]}),
            |next| json!({"anyOf": [next, {"oneOf": [next]}]}),
            |next| json!({"not": next, "if": next}),
            |next| json!({"then": next, "else": next}),
            |next| json!({"dependencies": {"a": next, "b": next}}),
            |next| json!({"dependentSchemas": {"a": next}, "$ref": next["$ref"]}),
            |next| json!({"$dynamicRef": next["$ref"], "$ref": next["$ref"]}),
            |next| json!({"allOf": [next], "unevaluatedProperties": false}),
            |next| json!({"anyOf": [next], "unevaluatedItems": false}),
        ];
        for link in links {
            let of = |n| json!({"$defs": doubled(n, link), "$ref": "#/$defs/d0"});
            assert!(!is_refused(&of(8)), "{}", of(1));
            assert!(is_refused(&of(17)), "{}", of(1));
        }
    }

    #[test]
    fn doubling_part_references_are_bounded() {
        let links: [fn(&Value) -> Value; 6] = [
            |next| json!({"allOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]}),
            |next| json!({"anyOf": [{"items": next}, {"items": next}]}),
            |next| json!({"properties": {"a": next}, "patternProperties": {"a": next}}),
            |next| json!({"additionalProperties": next, "patternProperties": {"a": next}}),
            |next| json!({"contains": next, "prefixItems": [next]}),
            |next| json!({"allOf": [{"propertyNames": next}, {"propertyNames": next}]}),
        ];
        for link in links {
            let of = |n| json!({"$defs": doubled(n, link), "items": {"$ref": "#/$defs/d0"}});
            assert!(!is_refused(&of(8)), "{}", of(1));
            assert!(is_refused(&of(17)), "{}", of(1));
        }
    }

    #[test]
    fn costs_of_separate_parts_are_not_added() {
        let defs = doubled(40, |next| json!({"properties": {"a": next, "b": next}}));
        assert!(!is_refused(&json!({"$defs": defs, "$ref": "#/$defs/d0"})));
    }

    #[test]
    fn references_are_resolved_from_the_nearest_id() {
        let mut schema = json!({"type": "object"});
        for at in 0..17 {
            let next = json!({"$ref": format!("d{at}")});
            schema["$id"] = format!("d{at}").into();
            schema = json!({"$defs": {"next": schema}, "allOf": [next, next]});
        }
        assert!(is_refused(&schema));
        schema["$id"] = "https://example.com/schema".into();
        assert!(is_refused(&schema));
    }

    #[test]
    fn in_place_recursion_is_rejected() {
        let cycles = [
            json!({"$ref": "#"}),
            json!({"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]}}}),
            json!({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        ];
        for schema in cycles {
            let error = validator(&schema, false).expect_err("a cycle");
            assert!(error.to_string().ends_with(": it leads back to itself"), "{error}");
        }
        let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}}});
        assert!(!is_refused(&tree));
    }

    #[test]
    fn oversized_schema_error_has_a_pointer() {
        let schema = json!({"$defs": doubled(17, |next| json!({"allOf": [next, next]})), "properties": {"x": {"$ref": "#/$defs/d0"}}});
        let error = check_evaluations(&schema).expect_err("too large");
        assert_eq!(error.path, "#/$defs/d2");
        let deep = (0..500).fold(json!(true), |schema, _| json!({"not": schema}));
        let error = check_evaluations(&deep).expect_err("too deep");
        assert!(error.to_string().ends_with("too large: nested more than 400 deep"), "{error}");
    }

    #[test]
    fn value_count_is_the_sum_of_its_parts() {
        let expression = json!({"anyOf": [{"type": "integer"}, {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        let value = |depth| (0..depth).fold(json!(1), |value, _| json!({"a": value}));
        let applied =
            |schema: &Value, value: &Value| (1..).find(|max| is_cheap(schema, value, *max)).expect("one is");
        let counts: Vec<_> = (0..4).map(|depth| applied(&expression, &value(depth))).collect();
        // Each level: four schemas, and twice the reference with the level below.
        assert_eq!(counts, [4, 14, 34, 74]);
        let list = json!({"items": {"type": "integer"}, "minItems": 1});
        assert_eq!(applied(&list, &json!([1, 2, 3])), 4);
        assert_eq!(applied(&json!({"prefixItems": [true], "items": true}), &json!([1, 2, 3])), 5);
        assert_eq!(applied(&list, &json!({"a": 1})), 1);
    }
}
