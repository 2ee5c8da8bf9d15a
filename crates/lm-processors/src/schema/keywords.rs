//! Tables of JSON Schema keywords: those that hold schemas, and their roles in a grammar.

/// Keywords whose schemas apply to members of an object.
pub(super) const OF_MEMBERS: &[&str] =
    &["additionalProperties", "patternProperties", "properties", "propertyNames", "unevaluatedProperties"];
/// Keywords whose schemas apply to items of an array.
pub(super) const OF_ITEMS: &[&str] =
    &["additionalItems", "contains", "items", "prefixItems", "unevaluatedItems"];
/// Keywords whose schemas apply to the value itself.
pub(super) const IN_PLACE: &[&str] =
    &["allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"];
/// Keywords whose value is an object of schemas.
pub(super) const MAPS: &[&str] =
    &["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Returns true if the value of `keyword` is a schema, or a list of schemas.
pub(super) fn holds_schemas(keyword: &str) -> bool {
    let applies = || [IN_PLACE, OF_ITEMS, OF_MEMBERS].iter().any(|keywords| keywords.contains(&keyword));
    keyword == "contentSchema" || !MAPS.contains(&keyword) && applies()
}

/// Role of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its value is a schema.
    Schema,
    /// Its value is an object of schemas.
    SchemaMap,
    /// Its value is a list of schemas.
    SchemaList,
    /// Its value is a number.
    Number,
    /// Its value is a count.
    Count,
    /// It has its own rules.
    Own,
    /// It restricts values and cannot be expressed: the result is a superset.
    Unenforced,
    /// It refers to another schema in a way that only whole documents resolve.
    Unresolvable,
}

/// Keywords that restrict values. Others are annotations, without effect on a grammar.
const ROLES: &[(&str, Role)] = &[
    ("$dynamicRef", Role::Unresolvable),
    ("$recursiveRef", Role::Unresolvable),
    ("$ref", Role::Own),
    ("additionalItems", Role::Own),
    ("additionalProperties", Role::Schema),
    ("allOf", Role::SchemaList),
    ("anyOf", Role::SchemaList),
    ("const", Role::Own),
    ("contains", Role::Unenforced),
    ("dependencies", Role::Unenforced),
    ("dependentRequired", Role::Unenforced),
    ("dependentSchemas", Role::Unenforced),
    ("else", Role::Unenforced),
    ("enum", Role::Own),
    ("exclusiveMaximum", Role::Own),
    ("exclusiveMinimum", Role::Own),
    ("format", Role::Own),
    ("if", Role::Unenforced),
    ("items", Role::Own),
    ("maxContains", Role::Unenforced),
    ("maxItems", Role::Count),
    ("maxLength", Role::Count),
    ("maxProperties", Role::Count),
    ("maximum", Role::Number),
    ("minContains", Role::Unenforced),
    ("minItems", Role::Count),
    ("minLength", Role::Count),
    ("minProperties", Role::Count),
    ("minimum", Role::Number),
    ("multipleOf", Role::Own),
    ("not", Role::Unenforced),
    ("oneOf", Role::Own),
    ("pattern", Role::Own),
    ("patternProperties", Role::SchemaMap),
    ("prefixItems", Role::SchemaList),
    ("properties", Role::SchemaMap),
    ("propertyNames", Role::Own),
    ("required", Role::Own),
    ("then", Role::Unenforced),
    ("type", Role::Own),
    ("unevaluatedItems", Role::Unenforced),
    ("unevaluatedProperties", Role::Unenforced),
    ("uniqueItems", Role::Own),
];

/// Type names.
pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// String formats that can be expressed as a grammar.
pub(super) const FORMATS: &[&str] =
    &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Role of `keyword`; `None` if it restricts nothing.
pub(super) fn role(keyword: &str) -> Option<Role> {
    ROLES.binary_search_by(|(name, _)| (*name).cmp(keyword)).ok().map(|at| ROLES[at].1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn table_is_sorted() {
        assert!(super::ROLES.is_sorted_by_key(|(name, _)| *name));
    }
}
