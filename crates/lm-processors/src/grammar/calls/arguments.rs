//! Argument lists of Python and brace calls: `a=1, b=2`.

use lm_template::Value;
use serde_json::Map;

use super::super::Layout;
use super::super::lark::{literal, one_of};
use super::super::schema::escaped_pointer;
use super::super::values::{Keys, Member, Values, loose, named_properties};

impl Values<'_> {
    /// Builds the arguments of a call, without brackets: `a=1, b=2`.
    pub(super) fn arguments(&mut self, parameters: &Value, colon: &str, comma: &str) -> Option<String> {
        let mut options = Vec::new();
        'branches: for schema in self.objects(parameters) {
            let mut members = Vec::new();
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
            let further = self.further_argument(&schema, colon);
            options.extend(self.counted_members(&schema, &members, further.as_deref(), &comma, "#"));
        }
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// Builds an argument with an undeclared name, if the tool allows one.
    fn further_argument(&mut self, schema: &Map<String, Value>, colon: &str) -> Option<String> {
        let further = match schema.get("additionalProperties") {
            None if schema.contains_key("properties") => return None,
            None => Value::Bool(true),
            Some(further) => further.clone(),
        };
        let value = self.value(&further, "#/additionalProperties")?;
        if schema.contains_key("propertyNames") {
            self.leave_unenforced("#", "propertyNames");
        }
        let names = named_properties(schema);
        let taken: Vec<&str> = names.iter().map(|(name, _, _)| name.as_str()).collect();
        let key = self.bare_key(&taken);
        Some(self.lark.rule(format!("{key} {} {value}", literal(colon))))
    }
}
