//! Exclusion of calls without a marker from the start of JSON answers.

use lm_template::Value;

use super::super::lark::{literal, one_of};
use super::strings::TextRules;
use super::{Object, Values, enum_values, types_of};

/// Start of calls that are JSON: an object whose first member is a tool's name, or has a special key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::grammar) struct CallStart {
    /// True if the object is an element of a list.
    pub(in crate::grammar) in_list: bool,
    /// Key of the tool's name.
    pub(in crate::grammar) key: String,
    /// Names of the tools; `None` if the key may have any value.
    pub(in crate::grammar) names: Option<Vec<String>>,
}

impl Values<'_> {
    /// Builds an expression for the values of `schema` that do not start like such a call: the first value of
    /// its key is none of the names.
    pub(in crate::grammar) fn excluding_call(
        &mut self,
        schema: &Value,
        call: &CallStart,
        path: &str,
    ) -> Option<String> {
        let mut options = Vec::new();
        for schema in self.plain(schema) {
            if let Some(values) = enum_values(&schema) {
                let kept: Vec<Value> = values.into_iter().filter(|value| !call.begins(value)).collect();
                options.extend(self.constants(&kept, path));
                continue;
            }
            for name in types_of(&schema) {
                if name == if call.in_list { "array" } else { "object" } {
                    self.first = Some(call.clone());
                }
                options.extend(self.of_type(name, &schema, path));
                self.may_begin_call |= self.first.take().is_some();
            }
        }
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// Builds a list element; the first may start a call.
    pub(super) fn element(
        &mut self,
        schema: &Value,
        first: Option<&CallStart>,
        path: &str,
    ) -> Option<String> {
        match first {
            Some(call) => self.excluding_call(schema, &CallStart { in_list: false, ..call.clone() }, path),
            None => self.value(schema, path),
        }
    }

    /// Builds the value of a member; if the object may start a call with it, the value is not a tool's name.
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
            if let Some(values) = enum_values(&schema) {
                let kept: Vec<Value> = values.into_iter().filter(|value| !is_name(value)).collect();
                options.extend(self.constants(&kept, path));
                continue;
            }
            for name in types_of(&schema) {
                options.extend(match name {
                    "string" => Some(self.text_other_than(&schema, names, path)),
                    name => self.of_type(name, &schema, path),
                });
            }
        }
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// Builds a string other than these names; the schema's other constraints are left to the validation of
    /// the whole answer.
    fn text_other_than(&mut self, schema: &Object, names: &[String], path: &str) -> String {
        for keyword in ["minLength", "maxLength", "pattern", "format"] {
            if schema.contains_key(keyword) {
                self.leave_unenforced(path, keyword);
            }
        }
        let text = TextRules::default().quoted('"', self.spelling.strings.escapes(self.layout), &[]);
        let names = names.iter().map(|name| literal(&self.written(&name.as_str().into())));
        let names: Vec<String> = names.collect();
        self.lark.terminal(format!("({text}) & ~({})", names.join(" | ")))
    }
}

impl CallStart {
    /// Returns true if a listed value starts like this call.
    fn begins(&self, value: &Value) -> bool {
        let object = if self.in_list { value.get(0) } else { Some(value) };
        let first = object.and_then(Value::as_object).and_then(|object| object.iter().next());
        let is_name =
            |value: &Value| self.names.as_ref().is_none_or(|names| names.iter().any(|name| value == name));
        first.is_some_and(|(key, value)| *key == self.key && is_name(value))
    }
}
