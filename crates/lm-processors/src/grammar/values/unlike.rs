//! Answers that do not begin as a call without a marker does.

use lm_template::Value;

use super::super::lark::{literal, one_of};
use super::strings::TextRules;
use super::{Object, Values, listed, types_of};

/// The beginning of calls that are JSON: an object whose first member is a tool's name, or has a key of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::grammar) struct CallStart {
    /// Whether the object is an element of a list.
    pub(in crate::grammar) in_list: bool,
    /// The key of the tool's name.
    pub(in crate::grammar) key: String,
    /// The tools' names; none where any value may stand under the key.
    pub(in crate::grammar) names: Option<Vec<String>>,
}

impl Values<'_> {
    /// An expression for the values of `schema` that do not begin as such a call: what stands under its key at the
    /// beginning is none of the names.
    pub(in crate::grammar) fn unlike(
        &mut self,
        schema: &Value,
        call: &CallStart,
        path: &str,
    ) -> Option<String> {
        let mut options = Vec::new();
        for schema in self.plain(schema) {
            if let Some(values) = listed(&schema) {
                let kept: Vec<Value> = values.into_iter().filter(|value| !call.begins(value)).collect();
                options.extend(self.constants(&kept));
                continue;
            }
            for name in types_of(&schema) {
                if name == if call.in_list { "array" } else { "object" } {
                    self.first = Some(call.clone());
                }
                options.extend(self.of_type(name, &schema, path));
                self.cannot_tell |= self.first.take().is_some();
            }
        }
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// An element of a list, the first of which may begin a call.
    pub(super) fn element(
        &mut self,
        schema: &Value,
        first: Option<&CallStart>,
        path: &str,
    ) -> Option<String> {
        match first {
            Some(call) => self.unlike(schema, &CallStart { in_list: false, ..call.clone() }, path),
            None => self.value(schema, path),
        }
    }

    /// The value of a member, which, where the object may begin a call by it, is no name of a tool.
    pub(super) fn member_value(
        &mut self,
        key: &str,
        schema: &Value,
        first: Option<&CallStart>,
        path: &str,
    ) -> Option<String> {
        let Some(call) = first.filter(|call| call.key == key) else { return self.value(schema, path) };
        let Some(names) = &call.names else { return None };
        let is_name = |value: &Value| names.iter().any(|name| value == name);
        let mut options = Vec::new();
        for schema in self.plain(schema) {
            if let Some(values) = listed(&schema) {
                let kept: Vec<Value> = values.into_iter().filter(|value| !is_name(value)).collect();
                options.extend(self.constants(&kept));
                continue;
            }
            for name in types_of(&schema) {
                options.extend(match name {
                    "string" => Some(self.text_unlike(&schema, names, path)),
                    name => self.of_type(name, &schema, path),
                });
            }
        }
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// A text that is none of these; what else the schema asks of it is left to a check of the whole answer.
    fn text_unlike(&mut self, schema: &Object, names: &[String], path: &str) -> String {
        for keyword in ["minLength", "maxLength", "pattern", "format"] {
            if schema.contains_key(keyword) {
                self.relax(path, keyword);
            }
        }
        let text = TextRules::default().quoted('"', self.spelling.strings.escapes(self.layout), &[]);
        let names = names.iter().map(|name| literal(&self.spelling.write(&name.as_str().into())));
        let names: Vec<String> = names.collect();
        self.lark.terminal(format!("({text}) & ~({})", names.join(" | ")))
    }
}

impl CallStart {
    /// Whether a listed value begins so.
    fn begins(&self, value: &Value) -> bool {
        let object = if self.in_list { value.get(0) } else { Some(value) };
        let first = object.and_then(Value::as_object).and_then(|object| object.iter().next());
        let is_name =
            |value: &Value| self.names.as_ref().is_none_or(|names| names.iter().any(|name| value == name));
        first.is_some_and(|(key, value)| *key == self.key && is_name(value))
    }
}
