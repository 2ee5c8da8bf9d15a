//! Values as families write them, for declarations, calls and results in a prompt.

use serde_json::{Value, json};

use super::BraceArguments;

/// Writes a value in braces, without whitespace: strings between two of `mark`.
pub(crate) fn in_braces(value: &Value, mark: &'static str) -> String {
    let join = |parts: Vec<String>| parts.join(",");
    match value {
        Value::String(text) => format!("{mark}{text}{mark}"),
        Value::Array(values) => {
            format!("[{}]", join(values.iter().map(|value| in_braces(value, mark)).collect()))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| match brace_key(key, mark) {
                BraceKey::Bare => format!("{key}:{}", in_braces(value, mark)),
                BraceKey::Marked => format!("{mark}{key}{mark}:{}", in_braces(value, mark)),
                BraceKey::Quoted => format!("{}:{}", Value::from(key.as_str()), in_braces(value, mark)),
            };
            format!("{{{}}}", join(members.iter().map(member).collect()))
        }
        value => value.to_string(),
    }
}

/// Form of an object key in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BraceKey {
    /// Verbatim.
    Bare,
    /// Between two marks, as strings are.
    Marked,
    /// A JSON string.
    Quoted,
}

/// The first form in which the parser reads this key back.
pub(crate) fn brace_key(key: &str, mark: &'static str) -> BraceKey {
    let reads_back = |written: &str| {
        let text = format!("{{{written}:0}}");
        let mut braces = BraceArguments::new(mark, "");
        let whole = braces.follow(&text, None) == Ok(Some(text.len()));
        whole && serde_json::from_str::<Value>(braces.certain()).is_ok_and(|read| read == json!({key: 0}))
    };
    match () {
        () if reads_back(key) => BraceKey::Bare,
        () if reads_back(&format!("{mark}{key}{mark}")) => BraceKey::Marked,
        () => BraceKey::Quoted,
    }
}

/// Writes a value as a Python literal.
pub(crate) fn in_python(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        // JSON's escapes are a subset of Python's.
        Value::String(_) => value.to_string(),
        Value::Array(values) => format!("[{}]", join(values.iter().map(in_python).collect())),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), in_python(value))
            };
            format!("{{{}}}", join(members.iter().map(member).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::python::python_literal;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_in_both_languages() {
        let value = json!({"a": [1, 2.5, null], "b": {"c": true, "d": "x \"y\"\n"}});
        assert_eq!(in_braces(&value, "<m>"), "{a:[1,2.5,null],b:{c:true,d:<m>x \"y\"\n<m>}}");
        assert_eq!(in_python(&value), r#"{"a": [1, 2.5, None], "b": {"c": True, "d": "x \"y\"\n"}}"#);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(|float: f64| json!(float)),
            "[^<]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let object = prop::collection::btree_map("[a-z_]{1,6}", inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                object.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(value in value()) {
            prop_assert_eq!(python_literal(&in_python(&value)), Some(value.clone()));
            let arguments = json!({"a": value});
            let text = in_braces(&arguments, "<m>");
            let mut braces = BraceArguments::new("<m>", "");
            prop_assert_eq!(braces.follow(&text, None), Ok(Some(text.len())));
            prop_assert_eq!(serde_json::from_str::<Value>(braces.certain()).unwrap(), arguments);
        }
    }
}
