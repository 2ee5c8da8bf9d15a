//! Argument lists of Python and brace calls: `a=1, b=2`.

use lm_template::Value;
use serde_json::Map;

use super::super::lark::{literal, one_of};
use super::super::values::{
    FurtherNames, Keys, Member, NameForm, NamePattern, Values, loose, named_properties, with_patterns,
};
use crate::layout::Layout;
use crate::schema::escaped_pointer;

impl Values<'_> {
    /// Builds the arguments of a call, without brackets: `a=1, b=2`.
    pub(super) fn arguments(&mut self, parameters: &Value, colon: &str, comma: &str) -> Option<String> {
        let mut options = Vec::new();
        'branches: for schema in self.objects(parameters) {
            let patterns = self.name_patterns(&schema);
            let mut members = Vec::new();
            let own = schema;
            let schema = with_patterns(&own, &patterns);
            for (name, schema, required) in self.limited(&named_properties(&schema), "#") {
                match self.value(&schema, &format!("#/properties/{}", escaped_pointer(&name))) {
                    Some(value) => {
                        let key = match (self.spelling.keys, self.layout) {
                            (Keys::Bare, _) => format!("{} {}", self.key(&name), self.mark(colon)),
                            (Keys::Quoted, Layout::Any) => loose(&format!("{name}{colon}")),
                            (Keys::Quoted, Layout::Exact) => literal(&format!("{name}{colon}")),
                        };
                        members.push(Member { body: self.lark.rule(format!("{key} {value}")), required });
                    }
                    // No arguments match this alternative; others may have some.
                    None if required => continue 'branches,
                    None => {}
                }
            }
            let comma = self.spelling.mark(comma, self.layout);
            let further = self.further_argument(&own, &schema, &patterns, colon);
            options.extend(self.counted_members(&schema, &members, further.as_deref(), &comma, "#"));
        }
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// Builds an argument with an undeclared name, if the tool allows one. `typed` is the schema with its
    /// patterns applied.
    fn further_argument(
        &mut self,
        schema: &Map<String, Value>,
        typed: &Map<String, Value>,
        patterns: &[NamePattern],
        colon: &str,
    ) -> Option<String> {
        if schema.contains_key("propertyNames") {
            self.leave_unenforced("#", "propertyNames");
        }
        let form = if self.spelling.keys == Keys::Bare { NameForm::Bare } else { NameForm::Identifier };
        let mut options = Vec::new();
        for FurtherNames { key, schema, path } in self.further_arguments(form, schema, typed, patterns, "#") {
            let value = self.value(&schema, &path);
            options.extend(value.map(|value| format!("{key} {} {value}", literal(colon))));
        }
        (!options.is_empty()).then(|| self.lark.rule(options.join(" | ")))
    }

    /// Undeclared names of arguments: a tool that declares some has others only if it says so.
    pub(super) fn further_arguments(
        &mut self,
        form: NameForm,
        schema: &Map<String, Value>,
        typed: &Map<String, Value>,
        patterns: &[NamePattern],
        path: &str,
    ) -> Vec<FurtherNames> {
        let any = Value::Bool(true);
        let additional = schema.get("additionalProperties");
        let additional = additional.or((!schema.contains_key("properties")).then_some(&any));
        let names = named_properties(typed);
        let taken: Vec<&str> = names.iter().map(|(name, _, _)| name.as_str()).collect();
        self.further_names(form, &taken, patterns, additional, path)
    }
}
