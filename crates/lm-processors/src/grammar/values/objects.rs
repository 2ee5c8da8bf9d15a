//! Objects: properties in declared order, optional ones omitted at will.

use std::collections::BTreeSet;

use lm_template::Value;

use super::super::lark::{literal, one_of, sequence};
use super::further_names::FurtherNames;
use super::name_patterns::{NamePattern, with_patterns};
use super::spelling::holds;
use super::{CallStart, Keys, Object, Strings, Values};
use crate::schema::{escaped_pointer, required};
use crate::values::{BraceKey, brace_key};

/// Maximum number of optional properties that are written: the grammar library follows each of them at once,
/// three items for each, and has at most 2,000. Required ones are not limited here.
const MAX_OPTIONAL: usize = 500;
/// The largest number of members that is counted, times the members that the schema names.
const MAX_COUNTED: usize = 4_000;

/// A member of an object, or an argument of a call.
#[derive(Debug, Clone)]
pub(in crate::grammar) struct Member {
    /// Expression for it.
    pub(in crate::grammar) body: String,
    /// True if it must be present.
    pub(in crate::grammar) required: bool,
}

/// A named property: name, schema, and true if it is required.
pub(in crate::grammar) type Property = (String, Value, bool);

/// Names of an object's members besides its declared properties.
struct Further<'a> {
    properties: &'a [Property],
    patterns: &'a [NamePattern],
    /// Expression for the names that `propertyNames` allows.
    names: Option<String>,
    first: Option<&'a CallStart>,
}

impl Values<'_> {
    pub(super) fn object(&mut self, schema: &Object, path: &str) -> Option<String> {
        let patterns = self.name_patterns(schema);
        let schema = &with_patterns(schema, &patterns);
        let first = self.first.take();
        let mut first = first.as_ref();
        let colon = self.mark(self.spelling.colon);
        let mut members = Vec::new();
        let properties = named_properties(schema);
        for (name, schema, required) in &self.limited(&properties, path) {
            let at = format!("{path}/properties/{}", escaped_pointer(name));
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
        let names = self.names(schema, first);
        if names.is_none() && schema.contains_key("propertyNames") {
            self.leave_unenforced(path, "propertyNames");
        }
        let further = Further { properties: &properties, patterns: &patterns, names, first };
        let further = self.further(schema, further, path);
        let comma = self.mark(self.spelling.comma);
        let body = self.counted_members(schema, &members, further.as_deref(), &comma, path)?;
        let (open, close) = (self.mark("{"), self.mark("}"));
        Some(self.lark.rule(format!("{open} {body} {close}")))
    }

    /// The properties that are written: all required ones, and the first optional ones.
    pub(in crate::grammar) fn limited(&mut self, properties: &[Property], path: &str) -> Vec<Property> {
        let mut optional = 0;
        let is_written = |(_, _, required): &&Property| {
            optional += usize::from(!required);
            *required || optional <= MAX_OPTIONAL
        };
        let written: Vec<Property> = properties.iter().filter(is_written).cloned().collect();
        if written.len() < properties.len() {
            self.leave_unenforced(path, "properties");
        }
        written
    }

    /// Builds a member with an undeclared name, if allowed.
    fn further(&mut self, schema: &Object, further: Further<'_>, path: &str) -> Option<String> {
        let Further { properties, patterns, names, first } = further;
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(true)) | None => Value::Bool(true),
            Some(schema) => schema.clone(),
        };
        let mut taken: Vec<&str> = properties.iter().map(|(name, _, _)| name.as_str()).collect();
        let colon = self.mark(self.spelling.colon);
        let mut options = Vec::new();
        if let Some(call) = first.filter(|call| !taken.contains(&call.key.as_str())) {
            let of_name = patterns.iter().find(|pattern| pattern.matches(&call.key));
            let schema = of_name.map_or(&additional, |pattern| &pattern.schema);
            let value = self.member_value(&call.key, schema, first, path);
            let key = self.key(&call.key);
            options.extend(value.map(|value| format!("{key} {colon} {value}")));
            taken.push(&call.key);
        }
        let form = self.name_form();
        for FurtherNames { key, schema, path } in
            self.further_names(form, &taken, patterns, Some(&additional), path)
        {
            let value = self.value(&schema, &path);
            options.extend(value.map(|value| format!("{} {colon} {value}", names.as_ref().unwrap_or(&key))));
        }
        (!options.is_empty()).then(|| self.lark.rule(options.join(" | ")))
    }

    /// An expression for the names of members where the schema restricts them; none where it does not, or no
    /// rule says it.
    fn names(&mut self, schema: &Object, first: Option<&CallStart>) -> Option<String> {
        let quoted = self.spelling.keys == Keys::Quoted && first.is_none();
        let named = ["properties", "required"].iter().any(|key| schema.contains_key(*key));
        let names = schema.get("propertyNames").filter(|_| quoted && !named)?;
        self.value(names, "#/propertyNames")
    }

    /// A key, as the syntax writes it.
    pub(in crate::grammar) fn key(&mut self, name: &str) -> String {
        let avoided = self.avoided();
        match (self.spelling.keys, self.spelling.strings) {
            (Keys::Bare, Strings::Fenced(mark))
                if !holds(name, &avoided) && brace_key(name, mark) == BraceKey::Marked =>
            {
                let mark = self.lark.marker(mark);
                sequence([&*mark, &literal(name), &mark])
            }
            (Keys::Quoted, Strings::Python(_)) => {
                let python = |quote| super::Spelling::python(quote).write_key(name, &avoided);
                let options: Vec<String> = ['\'', '"'].map(|quote| literal(&python(quote))).into();
                one_of(&options)
            }
            _ => literal(&self.spelling.write_key(name, &avoided)),
        }
    }

    /// The members of an object or a call in their order with `comma` between them, then any number of
    /// `further`, as many as the schema at `path` allows; none when that many are not to be had. What is not
    /// enforced is reported.
    pub(in crate::grammar) fn counted_members(
        &mut self,
        schema: &Object,
        members: &[Member],
        further: Option<&str>,
        comma: &str,
        path: &str,
    ) -> Option<String> {
        // Patterns that the syntax enforces are no longer in the schema.
        if schema.contains_key("patternProperties") {
            self.leave_unenforced(path, "patternProperties");
        }
        let counts = Counts::of(schema, members, further.is_some());
        for keyword in &counts.unenforced {
            self.leave_unenforced(path, keyword);
        }
        self.member_list(members, further, comma, &counts)
    }

    /// From the last to the first, and for each number of members before it: the members allowed at and after
    /// a place.
    fn member_list(
        &mut self,
        members: &[Member],
        further: Option<&str>,
        comma: &str,
        counts: &Counts,
    ) -> Option<String> {
        let places = 0..=counts.told_apart().min(members.len());
        let mut rest: Vec<Option<String>> =
            places.map(|before| self.tail(further, comma, before, counts)).collect();
        for (at, Member { body, required }) in members.iter().enumerate().rev() {
            let before = 0..=counts.told_apart().min(at);
            let found = before.map(|before| {
                let room = counts.max.is_none_or(|max| before < max);
                let next = rest[counts.told_apart().min(before + 1)].as_deref().filter(|_| room);
                let with = next.map(|next| format!("{} {body} {next}", if before == 0 { "" } else { comma }));
                let without = rest[before].clone().filter(|_| !required);
                let options: Vec<String> = with.into_iter().chain(without).collect();
                (!options.is_empty()).then(|| self.lark.rule(options.join(" | ")))
            });
            rest = found.collect();
        }
        rest.swap_remove(0)
    }

    /// The members that the schema does not name, after `before` others.
    fn tail(&mut self, further: Option<&str>, comma: &str, before: usize, counts: &Counts) -> Option<String> {
        let least = counts.min.saturating_sub(before);
        let most = counts.max.map(|max| max.checked_sub(before));
        let nothing = || Some("\"\"".to_owned());
        let (Some(further), false) = (further, most == Some(Some(0))) else {
            return if least == 0 && most != Some(None) { nothing() } else { None };
        };
        let most = match most {
            Some(None) => return None,
            most => most.flatten(),
        };
        let repeated = |part: String, least: usize, most: Option<usize>| match (least, most) {
            (_, Some(0)) => String::new(),
            (0, None) => format!("({part})*"),
            (least, None) => format!("({part}){{{least},}}"),
            (least, Some(most)) => format!("({part}){{{least},{most}}}"),
        };
        if least > most.unwrap_or(usize::MAX) {
            return None;
        }
        if before > 0 {
            return Some(self.lark.rule(repeated(format!("{comma} {further}"), least, most)));
        }
        let more = repeated(format!("{comma} {further}"), least.saturating_sub(1), most.map(|most| most - 1));
        let some = self.lark.rule(format!("{further} {more}"));
        Some(if least == 0 { self.lark.rule(format!("{some}?")) } else { some })
    }
}

/// Bounds on the number of an object's members that its grammar enforces.
struct Counts {
    min: usize,
    max: Option<usize>,
    /// The keywords that it leaves to a check of the finished object.
    unenforced: Vec<&'static str>,
}

impl Counts {
    fn of(schema: &Object, members: &[Member], further: bool) -> Self {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64).map(|count| count as usize);
        let required = members.iter().filter(|member| member.required).count();
        let mut counts = Self {
            min: count("minProperties").filter(|min| *min > required).unwrap_or(0),
            max: count("maxProperties").filter(|max| further || *max < members.len()),
            unenforced: Vec::new(),
        };
        // A name may come twice among those that the schema does not name.
        if further && counts.min > 1 {
            counts.unenforced.push("minProperties");
        }
        if counts.min > MAX_COUNTED || counts.min.saturating_mul(members.len()) > MAX_COUNTED {
            counts.min = 0;
            counts.unenforced.push("minProperties");
        }
        let most = counts.max.unwrap_or(0);
        if most > MAX_COUNTED || most.saturating_mul(members.len()) > MAX_COUNTED {
            counts.max = None;
            counts.unenforced.push("maxProperties");
        }
        counts
    }

    /// Maximum number of preceding members that are distinguished.
    fn told_apart(&self) -> usize {
        self.max.unwrap_or(self.min).max(1)
    }
}

/// Properties of an object in declared order, then required ones that are not declared.
pub(in crate::grammar) fn named_properties(schema: &Object) -> Vec<Property> {
    let is_required: BTreeSet<&str> = required(schema).collect();
    let declared = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let further = schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    let undeclared = required(schema).filter(|name| !declared.contains_key(*name));
    let undeclared: Vec<_> = undeclared.map(str::to_owned).collect();
    let declared = declared.into_iter().map(|(name, schema)| {
        let required = is_required.contains(name.as_str());
        (name, schema, required)
    });
    declared.chain(undeclared.into_iter().map(|name| (name, further.clone(), true))).collect()
}
