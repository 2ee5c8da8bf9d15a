//! Patterns of a schema that must hold at once, before the library multiplies them.

use llguidance::derivre::RegexBuilder;
use serde_json::{Map, Value};

use super::ConstraintSpec;
use super::cost;

/// Most patterns that one text may have to match.
const MAX_PATTERNS: usize = 32;
/// Most schemas that are gone through for one text: combinations of references double.
const MAX_SCHEMAS: usize = 10_000;

/// Refuses schemas, those inside of a Lark grammar too, in which a text must match patterns that are too many together.
///
/// # Errors
/// The reason.
pub(super) fn check(spec: &ConstraintSpec) -> Result<(), String> {
    match spec {
        ConstraintSpec::JsonSchema(schema) => document(schema),
        ConstraintSpec::Lark { text, .. } => text.split("%json").skip(1).try_for_each(|rest| {
            match serde_json::Deserializer::from_str(rest).into_iter::<Value>().next() {
                Some(Ok(schema)) => document(&schema),
                _ => Ok(()),
            }
        }),
        ConstraintSpec::Regex(_) | ConstraintSpec::Choice(_) => Ok(()),
    }
}

fn document(root: &Value) -> Result<(), String> {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(schema) => {
                if schema.contains_key("allOf") || schema.contains_key("$ref") {
                    let mut gathered = Gathered { root, schemas_left: MAX_SCHEMAS };
                    together(&gathered.patterns(schema, &mut Vec::new()))?;
                }
                open.extend(schema.values());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses patterns whose branches are too many together.
fn together(patterns: &[&str]) -> Result<(), String> {
    if patterns.len() > MAX_PATTERNS {
        return Err(format!("too many patterns that must hold at once: {}", patterns.len()));
    }
    if patterns.len() < 2 {
        return Ok(());
    }
    let found: Vec<String> = patterns.iter().map(|pattern| format!("(?s:.*)(?:{pattern})(?s:.*)")).collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    let mut builder = RegexBuilder::new();
    // What the library cannot read is refused when it reads it.
    if builder.mk_regex_and(&found).is_err() { Ok(()) } else { cost::check(builder.exprset()) }
}

struct Gathered<'a> {
    root: &'a Value,
    schemas_left: usize,
}

impl<'a> Gathered<'a> {
    /// The patterns that a text has to match which fits `schema`: of alternatives those of the one with the most.
    fn patterns(&mut self, schema: &'a Map<String, Value>, within: &mut Vec<&'a str>) -> Vec<&'a str> {
        let Some(left) = self.schemas_left.checked_sub(1) else { return Vec::new() };
        self.schemas_left = left;
        let mut found: Vec<&str> = schema.get("pattern").and_then(Value::as_str).into_iter().collect();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && !within.contains(&reference)
            && let Some(Value::Object(target)) =
                reference.strip_prefix('#').and_then(|at| self.root.pointer(at))
        {
            within.push(reference);
            found.extend(self.patterns(target, within));
            within.pop();
        }
        for part in members(schema, "allOf") {
            found.extend(self.patterns(part, within));
        }
        for keyword in ["anyOf", "oneOf"] {
            let most =
                members(schema, keyword).map(|option| self.patterns(option, within)).max_by_key(Vec::len);
            found.extend(most.into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The schemas in a list of `schema`.
fn members<'a>(
    schema: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> + use<'a> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_together_are_bounded_wherever_they_stand() {
        let parts: Vec<Value> = ('a'..='z').map(|c| json!({"pattern": format!("a{c}")})).collect();
        let all = json!({"allOf": parts});
        let behind = json!({"properties": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}, "$defs": {"x": all}});
        for schema in [&all, &behind] {
            assert!(check(&ConstraintSpec::JsonSchema(schema.clone())).is_err());
            let text = format!("start: \"x\" %json {schema} \"y\"\n");
            assert!(check(&ConstraintSpec::Lark { text, markers: vec![] }).is_err());
        }
        let few = json!({"allOf": [{"pattern": "[a-z]"}, {"pattern": "[A-Z]"}, {"pattern": "[0-9]"}, {"pattern": "^.{8,}$"}]});
        let apart = json!({"anyOf": parts});
        for schema in [few, apart] {
            check(&ConstraintSpec::JsonSchema(schema)).unwrap();
        }
    }
}
