//! What each keyword of JSON Schema is to a grammar: one table.

/// How a keyword is carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its value holds one schema.
    Schema,
    /// Its value is an object of schemas.
    SchemaMap,
    /// Its value is a list of schemas.
    SchemaList,
    /// Its value is a number.
    Number,
    /// Its value is a count.
    Count,
    /// It has rules of its own.
    Own,
    /// It restricts values, and has no grammar: the result is a superset.
    Relaxed,
    /// It points to another schema in a way that only whole documents resolve.
    Unresolvable,
}

/// The keywords that restrict values. Others are annotations, and say nothing to a grammar.
const ROLES: &[(&str, Role)] = &[
    ("$dynamicRef", Role::Unresolvable),
    ("$recursiveRef", Role::Unresolvable),
    ("$ref", Role::Own),
    ("additionalItems", Role::Own),
    ("additionalProperties", Role::Schema),
    ("allOf", Role::SchemaList),
    ("anyOf", Role::SchemaList),
    ("const", Role::Own),
    ("contains", Role::Relaxed),
    ("dependencies", Role::Relaxed),
    ("dependentRequired", Role::Relaxed),
    ("dependentSchemas", Role::Relaxed),
    ("else", Role::Relaxed),
    ("enum", Role::Own),
    ("exclusiveMaximum", Role::Own),
    ("exclusiveMinimum", Role::Own),
    ("format", Role::Own),
    ("if", Role::Relaxed),
    ("items", Role::Own),
    ("maxContains", Role::Relaxed),
    ("maxItems", Role::Count),
    ("maxLength", Role::Count),
    ("maxProperties", Role::Count),
    ("maximum", Role::Number),
    ("minContains", Role::Relaxed),
    ("minItems", Role::Count),
    ("minLength", Role::Count),
    ("minProperties", Role::Count),
    ("minimum", Role::Number),
    ("multipleOf", Role::Number),
    ("not", Role::Relaxed),
    ("oneOf", Role::Own),
    ("pattern", Role::Own),
    ("patternProperties", Role::SchemaMap),
    ("prefixItems", Role::SchemaList),
    ("properties", Role::SchemaMap),
    ("propertyNames", Role::Relaxed),
    ("required", Role::Own),
    ("then", Role::Relaxed),
    ("type", Role::Own),
    ("unevaluatedItems", Role::Relaxed),
    ("unevaluatedProperties", Role::Relaxed),
    ("uniqueItems", Role::Own),
];

/// The names of types.
pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// The formats of strings that have a grammar.
pub(super) const FORMATS: &[&str] =
    &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// What `keyword` is to a grammar; none when it restricts nothing.
pub(super) fn role(keyword: &str) -> Option<Role> {
    ROLES.binary_search_by(|(name, _)| (*name).cmp(keyword)).ok().map(|at| ROLES[at].1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_in_order() {
        assert!(super::ROLES.is_sorted_by_key(|(name, _)| *name));
    }
}
