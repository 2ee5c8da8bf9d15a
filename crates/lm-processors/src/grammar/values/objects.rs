//! Objects: properties in declared order, optional ones omitted at will.

use std::collections::BTreeSet;

use lm_template::Value;

use super::super::lark::{literal, one_of, sequence};
use super::{CallStart, Keys, Object, Strings, Values};
use crate::values::{BraceKey, brace_key};

/// Maximum number of listed properties of an object.
const MAX_PROPERTIES: usize = 1_000;

/// A member of an object, or an argument of a call.
#[derive(Debug, Clone)]
pub(in crate::grammar) struct Member {
    /// Expression for it.
    pub(in crate::grammar) body: String,
    /// True if it must be present.
    pub(in crate::grammar) required: bool,
}

impl Values<'_> {
    pub(super) fn object(&mut self, schema: &Object, path: &str) -> Option<String> {
        let counts = schema.contains_key("minProperties") || schema.contains_key("maxProperties");
        if self.delegates() && (counts || schema.contains_key("patternProperties")) {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), "object".into());
            return Some(self.delegated(&schema));
        }
        let first = self.first.take();
        let mut first = first.as_ref();
        for keyword in ["minProperties", "maxProperties", "patternProperties"] {
            if schema.contains_key(keyword) {
                self.relax(path, keyword);
            }
        }
        let colon = self.mark(self.spelling.colon);
        let mut members = Vec::new();
        let properties = named_properties(schema);
        for (name, schema, required) in properties.iter().take(MAX_PROPERTIES) {
            let at = format!("{path}/properties/{name}");
            match self.member_value(name, schema, first, &at) {
                Some(value) => {
                    let key = self.key(name);
                    members.push(Member {
                        body: self.lark.rule(format!("{key} {colon} {value}")),
                        required: *required,
                    });
                }
                None if *required => return None,
                None => {}
            }
            // A member after a required one is never the first.
            first = first.filter(|_| !required);
        }
        let further = self.further(schema, &properties, first, path);
        let comma = self.mark(self.spelling.comma);
        let body = self.member_list(&members, further.as_deref(), &comma);
        let (open, close) = (self.mark("{"), self.mark("}"));
        Some(self.lark.rule(format!("{open} {body} {close}")))
    }

    /// Builds a member with an undeclared name, if allowed.
    fn further(
        &mut self,
        schema: &Object,
        properties: &[(String, Value, bool)],
        first: Option<&CallStart>,
        path: &str,
    ) -> Option<String> {
        let further = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if !schema.contains_key("patternProperties") => return None,
            Some(Value::Bool(_)) | None => Value::Bool(true),
            Some(schema) => schema.clone(),
        };
        let path = format!("{path}/additionalProperties");
        let value = self.value(&further, &path)?;
        let mut taken: Vec<&str> = properties.iter().map(|(name, _, _)| name.as_str()).collect();
        let colon = self.mark(self.spelling.colon);
        let mut options = Vec::new();
        if let Some(call) = first.filter(|call| !taken.contains(&call.key.as_str())) {
            let value = self.member_value(&call.key, &further, first, &path);
            let key = self.key(&call.key);
            options.extend(value.map(|value| format!("{key} {colon} {value}")));
            taken.push(&call.key);
        }
        let key = self.free_key(&taken);
        options.push(format!("{key} {colon} {value}"));
        Some(self.lark.rule(options.join(" | ")))
    }

    /// A key in the form of the syntax.
    pub(in crate::grammar) fn key(&mut self, name: &str) -> String {
        match (self.spelling.keys, self.spelling.strings) {
            (Keys::Bare, Strings::Fenced(mark)) if brace_key(name, mark) == BraceKey::Marked => {
                let mark = self.lark.marker(mark);
                sequence([&*mark, &literal(name), &mark])
            }
            (Keys::Quoted, Strings::Python(_)) => {
                let options: Vec<String> =
                    ['\'', '"'].map(|quote| literal(&super::Spelling::python(quote).write_key(name))).into();
                one_of(&options)
            }
            _ => literal(&self.spelling.write_key(name)),
        }
    }

    /// A key other than `taken`, without escapes.
    pub(super) fn free_key(&mut self, taken: &[&str]) -> String {
        if self.spelling.keys == Keys::Bare {
            return self.bare_key(taken);
        }
        let free = without(r"/[^\x00-\x1f\x7f\x22\x27\\]{0,64}/", taken);
        let body = match self.spelling.strings {
            Strings::Python(_) => {
                let free = self.lark.terminal(free);
                format!("/'/ {free} /'/ | /\\x22/ {free} /\\x22/")
            }
            _ => format!("/\\x22/ ({free}) /\\x22/"),
        };
        let body = self.without_excluded(body);
        self.lark.terminal(body)
    }

    /// An identifier as a key other than `taken`.
    pub(in crate::grammar) fn bare_key(&mut self, taken: &[&str]) -> String {
        self.lark.terminal(without("/[A-Za-z_][A-Za-z0-9_]{0,63}/", taken))
    }

    /// Builds members in order with `comma` between them, then any number of `further`. The empty list has no body of
    /// its own: it matches the empty text.
    pub(in crate::grammar) fn member_list(
        &mut self,
        members: &[Member],
        further: Option<&str>,
        comma: &str,
    ) -> String {
        // From last to first: the expressions from each position on, with nothing or something before it.
        let (mut alone, mut after) = match further {
            Some(further) => {
                let more = self.lark.rule(format!("({comma} {further})*"));
                (self.lark.rule(format!("({further} {more})?")), more)
            }
            None => ("\"\"".to_owned(), String::new()),
        };
        for Member { body, required } in members.iter().rev() {
            let with = format!("{body} {after}");
            let (first, later) = match required {
                true => (with, format!("{comma} {body} {after}")),
                false => (format!("{with} | {alone}"), format!("({comma} {body})? {after}")),
            };
            (alone, after) = (self.lark.rule(first), self.lark.rule(later));
        }
        alone
    }
}

/// Properties of an object in declared order, then required ones that are not declared: name, schema, and true if required.
pub(in crate::grammar) fn named_properties(schema: &Object) -> Vec<(String, Value, bool)> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_required: BTreeSet<&str> = required.iter().copied().collect();
    let declared = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let further = schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    let undeclared: Vec<_> = required
        .iter()
        .filter(|name| !declared.contains_key(**name))
        .map(|name| (*name).to_owned())
        .collect();
    let declared = declared.into_iter().map(|(name, schema)| {
        let required = is_required.contains(name.as_str());
        (name, schema, required)
    });
    declared.chain(undeclared.into_iter().map(|name| (name, further.clone(), true))).collect()
}

/// Terminal expression for matches of `plain` other than `taken`.
fn without(plain: &str, taken: &[&str]) -> String {
    let taken: Vec<String> = taken.iter().map(|name| literal(name)).filter(|name| !name.is_empty()).collect();
    if taken.is_empty() { plain.to_owned() } else { format!("{plain} & ~({})", taken.join(" | ")) }
}
