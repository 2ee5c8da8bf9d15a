//! Names of members that a schema does not declare.

use std::collections::BTreeSet;

use lm_template::Value;

use super::name_patterns::NamePattern;
use super::{Keys, Object, Strings, Values};
use crate::grammar::lark::literal;
use crate::schema::{escaped_pointer, escaped_regex};

/// Maximum length of a name that no pattern restricts.
const MAX_NAME_CHARS: usize = 64;

/// Form of undeclared names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum NameForm {
    /// In quotes, without escapes.
    Quoted,
    /// Letters, digits and some signs.
    Bare,
    /// Identifiers.
    Identifier,
}

/// Some undeclared names, with the schema of their values.
pub(in crate::grammar) struct FurtherNames {
    /// Expression for the names.
    pub(in crate::grammar) key: String,
    /// Schema of their values.
    pub(in crate::grammar) schema: Value,
    /// Location of that schema.
    pub(in crate::grammar) path: String,
}

impl Values<'_> {
    /// Name patterns of a schema that can be written.
    pub(in crate::grammar) fn name_patterns(&self, schema: &Object) -> Vec<NamePattern> {
        let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let (escaped, _) = self.unquoted();
        patterns.filter_map(|(pattern, schema)| NamePattern::new(pattern, schema, &escaped)).collect()
    }

    /// Undeclared names other than `taken`: those of each pattern, and if `additional` is a schema, all
    /// others.
    pub(in crate::grammar) fn further_names(
        &mut self,
        form: NameForm,
        taken: &[&str],
        patterns: &[NamePattern],
        additional: Option<&Value>,
        path: &str,
    ) -> Vec<FurtherNames> {
        let of_pattern = |values: &mut Self, pattern: &NamePattern| FurtherNames {
            key: values.undeclared(form, taken, &[&pattern.names], &[]),
            schema: pattern.schema.clone(),
            path: format!("{path}/patternProperties/{}", escaped_pointer(&pattern.pattern)),
        };
        let mut found: Vec<_> = patterns.iter().map(|pattern| of_pattern(self, pattern)).collect();
        if let Some(schema) = additional {
            let others: Vec<&str> = patterns.iter().map(|pattern| &*pattern.names).collect();
            found.push(FurtherNames {
                key: self.undeclared(form, taken, &[], &others),
                schema: schema.clone(),
                path: format!("{path}/additionalProperties"),
            });
        }
        found
    }

    /// Any key, without escapes.
    pub(super) fn free_key(&mut self) -> String {
        self.undeclared(self.name_form(), &[], &[], &[])
    }

    /// Form of the undeclared names of objects.
    pub(super) fn name_form(&self) -> NameForm {
        if self.spelling.keys == Keys::Bare { NameForm::Bare } else { NameForm::Quoted }
    }

    /// Builds a terminal for the names that match all of `within`, other than `taken` and those of `others`.
    fn undeclared(&mut self, form: NameForm, taken: &[&str], within: &[&str], others: &[&str]) -> String {
        let (avoided, rest) = self.unquoted();
        let counted = within.is_empty() && others.is_empty();
        let times = |most: usize| if counted { format!("{{0,{most}}}") } else { "*".to_owned() };
        let all = match (form, counted) {
            (NameForm::Quoted, _) => {
                let avoided: String = avoided.chars().map(|c| escaped_regex(&c.to_string())).collect();
                format!("/[^\\x00-\\x1f\\x7f{avoided}]{}/", times(MAX_NAME_CHARS))
            }
            (NameForm::Bare, false) => "/[A-Za-z0-9_$@][A-Za-z0-9_.$@-]*/".to_owned(),
            _ => format!("/[A-Za-z_][A-Za-z0-9_]{}/", times(MAX_NAME_CHARS - 1)),
        };
        let mut names = vec![all];
        names.extend(within.iter().map(|names| (*names).to_owned()));
        if form == NameForm::Quoted && !rest.is_empty() {
            names.push(self.lark.text_without(&rest.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        let taken = taken.iter().map(|name| literal(name)).filter(|name| !name.is_empty());
        let others: Vec<String> = taken.chain(others.iter().map(|names| (*names).to_owned())).collect();
        if !others.is_empty() {
            names.push(format!("~({})", others.join(" | ")));
        }
        let names = names.join(" & ");
        let key = match (form, self.spelling.strings) {
            (NameForm::Quoted, Strings::Python(_)) => {
                let names = self.lark.terminal(names);
                format!("/'/ {names} /'/ | /\\x22/ {names} /\\x22/")
            }
            (NameForm::Quoted, _) => format!("/\\x22/ ({names}) /\\x22/"),
            _ => names,
        };
        self.lark.terminal(key)
    }

    /// Characters that undeclared names in quotes do not have: quotes, the backslash, and the signs that
    /// excluded texts begin with, because the product of their automaton and that of a pattern is large. Also
    /// returns the excluded texts that begin with something else.
    fn unquoted(&self) -> (String, Vec<String>) {
        let begins = |text: &&String| text.chars().next().is_some_and(|c| c.is_ascii_punctuation());
        let (signs, rest): (Vec<&String>, Vec<&String>) = self.excluded.iter().partition(begins);
        let quotes = ['"', '\'', '\\'].into_iter();
        let all: BTreeSet<char> = quotes.chain(signs.iter().filter_map(|text| text.chars().next())).collect();
        (all.into_iter().collect(), rest.into_iter().cloned().collect())
    }
}
