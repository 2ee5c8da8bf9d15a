//! Rules for the values of a schema in any syntax: one translator with a table of spellings.

mod arrays;
mod call_exclusion;
mod constants;
mod emptiness;
mod further_names;
mod merge;
mod name_patterns;
mod numbers;
mod objects;
mod spelling;
mod strings;
mod types;

use std::collections::{BTreeSet, HashMap};

use lm_template::Value;
use serde_json::{Map, json};

use super::lark::{Lark, literal, one_of};
use crate::layout::Layout;
use crate::schema::{Normalized, SchemaError, SchemaFault, UnenforcedKeyword, definition_name};
pub(super) use call_exclusion::CallStart;
use emptiness::Emptiness;
pub(super) use further_names::{FurtherNames, NameForm};
use merge::merged;
pub(super) use name_patterns::{NamePattern, with_patterns};
pub(super) use objects::{Member, named_properties};
pub(super) use spelling::{Keys, Spelling, Strings, loose};
pub(in crate::grammar) use strings::Escapes;
use strings::{NoText, TextRules};
pub(super) use types::{enum_values, types_of};

/// Maximum nesting depth of unconstrained values. (JSON parsers stop at 127.)
const FREE_DEPTH: usize = 6;

/// Maximum depth of nested schemas, and maximum number of schemas. Recursive combinations may be infinite.
const MAX_DEPTH: usize = 64;
const MAX_SCHEMAS: usize = 50_000;

type Object = Map<String, Value>;

/// Translator for the values of one schema document, after normalization.
pub(super) struct Values<'a> {
    pub(super) lark: &'a mut Lark,
    pub(super) spelling: Spelling,
    pub(super) layout: Layout,
    /// `$defs` of the document.
    definitions: Object,
    /// Keywords that this translator omits, in addition to those that normalization removes.
    pub(super) unenforced: BTreeSet<UnenforcedKeyword>,
    /// Rules that may be recursive, by reference or another key.
    references: HashMap<String, Option<String>>,
    free: Vec<String>,
    /// Location of the first value that the syntax cannot write, and the value if it is a listed one.
    pub(super) unwritable: Option<(String, Option<Value>)>,
    /// Location of the first list of strings without a match in the schema.
    no_text: Option<String>,
    searches: Emptiness,
    /// Location of the first range of numbers that all have too many decimals to be written, once found;
    /// `None` if such numbers do not count as values.
    narrow_range: Option<Option<String>>,
    /// Texts excluded from all strings: markers that end the context of the string.
    excluded: Vec<String>,
    /// The call that the next object, or the first element of the next list, must not start like.
    first: Option<CallStart>,
    /// True if some value that starts like that call could not be excluded.
    pub(super) may_begin_call: bool,
    /// Current schema depth, and number of schemas so far.
    depth: usize,
    seen: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(lark: &'a mut Lark, spelling: Spelling, layout: Layout, root: &Value) -> Self {
        let definitions = root.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
        Self {
            lark,
            spelling,
            layout,
            definitions,
            unenforced: BTreeSet::new(),
            references: HashMap::new(),
            free: Vec::new(),
            unwritable: None,
            no_text: None,
            searches: Emptiness::default(),
            narrow_range: None,
            excluded: Vec::new(),
            first: None,
            may_begin_call: false,
            depth: 0,
            seen: 0,
        }
    }

    /// Fault of a schema without a grammar in any syntax.
    pub(super) fn fault(normalized: &Normalized<'_>, layout: Layout) -> SchemaError {
        let mut lark = Lark::default();
        let mut values = Values::new(&mut lark, Spelling::JSON, layout, &normalized.schema);
        values.narrow_range = Some(None);
        let value = values.value(&normalized.schema, "#");
        let no_text = values.no_text.take();
        match values.narrow_range.flatten().filter(|_| value.is_some()) {
            Some(path) => SchemaError::new(&normalized.place(&path), "", SchemaFault::NarrowRange),
            None => {
                let place = no_text.map_or_else(|| "#".to_owned(), |path| normalized.place(&path));
                SchemaError::unsatisfiable(&place, "", "")
            }
        }
    }

    /// Builds an expression for the values that match `schema`, whose location is `path`; `None` if no value
    /// does.
    pub(super) fn value(&mut self, schema: &Value, path: &str) -> Option<String> {
        match schema {
            Value::Bool(false) => None,
            Value::Object(map) if !map.is_empty() => self.bounded(map, path),
            _ => Some(self.free_value(FREE_DEPTH)),
        }
    }

    /// Builds the values of the schema, or any value beyond the limits.
    fn bounded(&mut self, schema: &Object, path: &str) -> Option<String> {
        if self.depth == MAX_DEPTH || self.seen == MAX_SCHEMAS {
            self.leave_unenforced(path, "$ref");
            return Some(self.free_value(FREE_DEPTH));
        }
        self.depth += 1;
        self.seen += 1;
        let value = self.of_object(schema, path);
        self.depth -= 1;
        value
    }

    fn of_object(&mut self, schema: &Object, path: &str) -> Option<String> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        if let Some(values) = enum_values(schema) {
            return self.constants(&values, path);
        }
        if schema.contains_key("allOf") || schema.contains_key("anyOf") {
            return self.combination(schema, path);
        }
        let options: Vec<String> =
            types_of(schema).into_iter().filter_map(|name| self.of_type(name, schema, path)).collect();
        (!options.is_empty()).then(|| one_of(&options))
    }

    fn reference(&mut self, reference: &str) -> Option<String> {
        let schema = definition_name(reference).and_then(|name| self.definitions.get(name));
        let schema = schema.cloned().unwrap_or(Value::Bool(true));
        self.recursive(reference, |values| values.value(&schema, reference))
    }

    /// Builds the rule with this key on first use; `None` if no value matches. The rule may refer to itself.
    pub(super) fn recursive(
        &mut self,
        key: &str,
        body: impl FnOnce(&mut Self) -> Option<String>,
    ) -> Option<String> {
        if let Some(known) = self.references.get(key) {
            return known.clone();
        }
        let name = self.lark.reserve("r");
        self.references.insert(key.to_owned(), Some(name.clone()));
        let body = body(self);
        // Recursive references already use the name: without values, it needs a body as well, an empty
        // character class.
        self.lark.define_reserved(&name, body.as_deref().unwrap_or("/[^\\x00-\\u{10ffff}]/"));
        let known = body.map(|_| name);
        self.references.insert(key.to_owned(), known.clone());
        known
    }

    /// Runs `write` with `excluded` banned from strings.
    pub(super) fn excluding<T>(&mut self, excluded: &str, write: impl FnOnce(&mut Self) -> T) -> T {
        if self.lark.protects(excluded) || self.excluded.iter().any(|known| known == excluded) {
            return write(self);
        }
        // Rules without the exclusion cannot be reused here, nor those with it elsewhere.
        let (references, free) = (std::mem::take(&mut self.references), std::mem::take(&mut self.free));
        self.excluded.push(excluded.to_owned());
        let written = write(self);
        self.excluded.pop();
        (self.references, self.free) = (references, free);
        written
    }

    fn combination(&mut self, schema: &Object, path: &str) -> Option<String> {
        if let Some(branches) = merged(schema, &self.definitions) {
            let options: Vec<String> = branches
                .iter()
                .filter_map(|branch| self.value(&Value::Object(branch.clone()), path))
                .collect();
            return (!options.is_empty()).then(|| one_of(&options));
        }
        // A superset: the siblings of the combination.
        let mut rest = schema.clone();
        for keyword in ["allOf", "anyOf"] {
            if rest.shift_remove(keyword).is_some() {
                self.leave_unenforced(path, keyword);
            }
        }
        self.value(&Value::Object(rest), path)
    }

    fn of_type(&mut self, name: &str, schema: &Object, path: &str) -> Option<String> {
        match name {
            "null" => Some(literal(self.spelling.constants[0])),
            "boolean" => Some(format!(
                "({} | {})",
                literal(self.spelling.constants[1]),
                literal(self.spelling.constants[2])
            )),
            "integer" | "number" => self.number(name, schema, path),
            "string" => self.text(schema, path),
            "array" => self.array(schema, path),
            "object" => self.object(schema, path),
            _ => None,
        }
    }

    fn text(&mut self, schema: &Object, path: &str) -> Option<String> {
        let excluded = self.avoided();
        let rules =
            self.text_rules(schema, path, self.spelling.strings.kind_of_escapes(self.layout), &excluded)?;
        Some(match self.spelling.strings {
            Strings::Json => {
                let text = rules.quoted('"', self.spelling.strings.escapes(self.layout), &self.excluded);
                self.lark.terminal(text)
            }
            Strings::Python(_) => {
                let escapes = self.spelling.strings.escapes(self.layout);
                let options = ['\'', '"'].map(|quote| rules.quoted(quote, escapes, &self.excluded));
                self.lark.terminal(options.map(|option| format!("({option})")).join(" | "))
            }
            Strings::Fenced(fence) => {
                let content = rules.raw(&excluded, None);
                let open = self.lark.marker(fence);
                let rest = self.lark.up_to(&content, "", fence);
                format!("{open} {rest}")
            }
        })
    }

    /// Constraints on the strings of a schema, which contain none of `excluded`; `None` if there is no such
    /// string.
    pub(in crate::grammar) fn text_rules(
        &mut self,
        schema: &Object,
        path: &str,
        escapes: Escapes,
        excluded: &[String],
    ) -> Option<TextRules> {
        let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
        match TextRules::of(schema, escapes, &excluded, &mut self.searches) {
            Ok((rules, unenforced)) => {
                unenforced.into_iter().for_each(|keyword| self.leave_unenforced(path, keyword));
                return Some(rules);
            }
            Err(NoText::Unsatisfiable) => _ = self.no_text.get_or_insert_with(|| path.to_owned()),
            Err(NoText::Unwritable) => _ = self.unwritable.get_or_insert_with(|| (path.to_owned(), None)),
        }
        None
    }

    /// Builds an unconstrained value, nested at most `depth` levels deep.
    pub(super) fn free_value(&mut self, depth: usize) -> String {
        while self.free.len() <= depth {
            let rule = self.free_rule();
            self.free.push(rule);
        }
        self.free[depth].clone()
    }

    fn free_rule(&mut self) -> String {
        let scalars = ["null", "boolean", "number", "string"];
        let mut options: Vec<String> =
            scalars.iter().filter_map(|name| self.of_type(name, &Object::new(), "")).collect();
        if let Some(inner) = self.free.last().cloned() {
            let (comma, colon) = (self.mark(self.spelling.comma), self.mark(self.spelling.colon));
            let member = |marks: (String, String), inner: &str| {
                format!("{} ({inner} ({comma} {inner})*)? {}", marks.0, marks.1)
            };
            options.push(member((self.mark("["), self.mark("]")), &inner));
            let key = self.free_key();
            let pair = self.lark.rule(format!("{key} {colon} {inner}"));
            options.push(member((self.mark("{"), self.mark("}")), &pair));
        }
        self.lark.rule(options.join(" | "))
    }

    /// Excludes these texts from all strings.
    pub(super) fn never_with(mut self, excluded: &[&str]) -> Self {
        let spelled = excluded.iter().filter(|marker| !self.lark.protects(marker));
        self.excluded.extend(spelled.map(|text| (*text).to_owned()));
        self
    }

    /// Texts excluded from all strings.
    pub(in crate::grammar) fn excluded(&self) -> &[String] {
        &self.excluded
    }

    pub(super) fn mark(&self, text: &str) -> String {
        self.spelling.mark(text, self.layout)
    }

    pub(super) fn leave_unenforced(&mut self, path: &str, keyword: &str) {
        self.unenforced.insert(UnenforcedKeyword {
            tool: None,
            path: path.to_owned(),
            keyword: keyword.to_owned(),
        });
    }
}

impl Values<'_> {
    /// Expands a schema to alternatives without references and combinations; a superset if that is
    /// impossible.
    pub(super) fn plain(&mut self, schema: &Value) -> Vec<Object> {
        let Value::Object(map) = schema else {
            return if *schema == Value::Bool(false) { vec![] } else { vec![Object::new()] };
        };
        if let Some(branches) = merged(map, &self.definitions) {
            let nested = branches.into_iter().flat_map(|branch| match branch.contains_key("$ref") {
                true => merged(&branch, &self.definitions).unwrap_or_else(|| vec![Object::new()]),
                false => vec![branch],
            });
            return nested.collect();
        }
        let mut rest = map.clone();
        for keyword in ["allOf", "anyOf", "$ref"] {
            if rest.shift_remove(keyword).is_some() {
                self.leave_unenforced("#", keyword);
            }
        }
        vec![rest]
    }

    /// Builds the objects that match a schema; `None` if there are none.
    pub(super) fn object_value(&mut self, schema: &Value) -> Option<String> {
        let alternatives = self.objects(schema);
        let options: Vec<String> =
            alternatives.into_iter().filter_map(|schema| self.value(&schema.into(), "#")).collect();
        (!options.is_empty()).then(|| one_of(&options))
    }

    /// Alternatives of a schema that are objects, by their members.
    pub(super) fn objects(&mut self, schema: &Value) -> Vec<Object> {
        let mut found = Vec::new();
        for mut schema in self.plain(schema) {
            if let Some(listed) = enum_values(&schema) {
                found.extend(listed.iter().filter_map(Value::as_object).map(listed_object));
            } else if types_of(&schema).contains(&"object") {
                schema.insert("type".to_owned(), "object".into());
                found.push(schema);
            }
        }
        found
    }
}

/// Schema of one object.
fn listed_object(object: &Object) -> Object {
    let names: Vec<&String> = object.keys().collect();
    let members: Object =
        object.iter().map(|(name, value)| (name.clone(), json!({"const": value}))).collect();
    let schema = [
        ("type", "object".into()),
        ("properties", members.into()),
        ("required", json!(names)),
        ("additionalProperties", false.into()),
    ];
    schema.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}
