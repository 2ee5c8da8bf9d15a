//! Bound on the conjunctions of patterns in the schemas of a Lark grammar (`%json`), checked before the
//! library builds their product. The library reads these schemas: only the keywords by which it joins
//! patterns are followed here.

use std::collections::HashMap;

use llguidance::derivre::RegexBuilder;
use serde_json::{Map, Value};

use super::ConstraintSpec;
use super::cost;

/// Maximum number of patterns for one text.
const MAX_PATTERNS: usize = 32;
/// Maximum depth of schemas nested in place, by `$ref` or combination.
const MAX_DEPTH: usize = 256;
/// Rejects schemas inside a Lark grammar if the conjunction of patterns on one text is too large.
///
/// # Errors
/// The reason.
pub(super) fn check(spec: &ConstraintSpec) -> Result<(), String> {
    match spec {
        ConstraintSpec::Lark { text, .. } => text.split("%json").skip(1).try_for_each(|rest| {
            match serde_json::Deserializer::from_str(rest).into_iter::<Value>().next() {
                Some(Ok(schema)) => check_schema(&schema),
                _ => Ok(()),
            }
        }),
        ConstraintSpec::Regex(_) | ConstraintSpec::Choice(_) => Ok(()),
    }
}

fn check_schema(root: &Value) -> Result<(), String> {
    let mut collector = PatternCollector { root, known: HashMap::new() };
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(schema) => {
                if schema.contains_key("allOf") || schema.contains_key("$ref") {
                    check_conjunction(&collector.patterns(schema, 0)?)?;
                }
                open.extend(schema.values());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rejects patterns whose conjunction has too many branches.
fn check_conjunction(patterns: &[&str]) -> Result<(), String> {
    if patterns.len() > MAX_PATTERNS {
        return Err(format!("too many patterns that must hold at once: {}", patterns.len()));
    }
    if patterns.len() < 2 {
        return Ok(());
    }
    let found: Vec<String> = patterns.iter().map(|pattern| format!("(?s:.*)(?:{pattern})(?s:.*)")).collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    let mut builder = RegexBuilder::new();
    // The library rejects patterns that it cannot parse.
    if builder.mk_regex_and(&found).is_err() { Ok(()) } else { cost::check(builder.exprset()) }
}

struct PatternCollector<'a> {
    root: &'a Value,
    /// Patterns of visited schemas, memoised by address: references would otherwise double the work.
    known: HashMap<*const Map<String, Value>, Vec<&'a str>>,
}

impl<'a> PatternCollector<'a> {
    /// Collects the patterns that a text matching `schema` has to match; for alternatives, those of the
    /// longest list. Above [`MAX_PATTERNS`], the list is truncated.
    fn patterns(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Result<Vec<&'a str>, String> {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&address) {
            return Ok(known.clone());
        }
        if depth > MAX_DEPTH {
            return Err(format!("too many schemas in each other: over {MAX_DEPTH}"));
        }
        // A cycle back to this schema adds no pattern.
        self.known.insert(address, Vec::new());
        let mut found: Vec<&str> = schema.get("pattern").and_then(Value::as_str).into_iter().collect();
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        if let Some(Value::Object(target)) = reference.and_then(|at| self.root.pointer(at)) {
            found.extend(self.patterns(target, depth + 1)?);
        }
        for part in members(schema, "allOf") {
            found.extend(self.patterns(part, depth + 1)?);
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut most = Vec::new();
            for option in members(schema, keyword) {
                let patterns = self.patterns(option, depth + 1)?;
                most = if patterns.len() > most.len() { patterns } else { most };
            }
            found.extend(most);
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(MAX_PATTERNS + 1);
        self.known.insert(address, found.clone());
        Ok(found)
    }
}

/// Schemas in the list `keyword` of `schema`.
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
    fn pattern_conjunctions_are_bounded_at_any_depth() {
        let inside = |schema: &Value| {
            let text = format!("start: \"x\" %json {schema} \"y\"\n");
            ConstraintSpec::Lark { text, markers: vec![] }
        };
        let parts: Vec<Value> = ('a'..='z').map(|c| json!({"pattern": format!("a{c}")})).collect();
        let all = json!({"allOf": parts});
        let behind = json!({"properties": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}, "$defs": {"x": all}});
        for schema in [&all, &behind] {
            assert!(check(&inside(schema)).is_err());
        }
        let few = json!({"allOf": [{"pattern": "[a-z]"}, {"pattern": "[A-Z]"}, {"pattern": "[0-9]"}, {"pattern": "^.{8,}$"}]});
        let link = |at: usize| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
        let links: Map<String, Value> = (0..20_000).map(link).collect();
        let chain = json!({"$ref": "#/$defs/d0", "$defs": links});
        assert!(check(&inside(&chain)).is_err());
        let itself = json!({"allOf": [{"$ref": "#"}], "pattern": "a"});
        assert!(check(&inside(&itself)).is_ok());
        let apart = json!({"anyOf": parts});
        for schema in [few, apart] {
            check(&inside(&schema)).unwrap();
        }
    }
}
