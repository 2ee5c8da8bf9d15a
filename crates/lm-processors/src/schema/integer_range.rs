//! Exact range of integers: JSON values hold integers beyond 64 bits as floats, so that grammars exclude
//! them.

use lm_template::Value;
use serde_json::Number;

use super::error::SchemaError;
use super::node::{Node, Object};

/// Error message for such a number.
pub(super) const BEYOND: &str = "has more than 64 bits, so that values would not be exact";
/// Decimal digits that every float represents exactly.
const FLOAT_DIGITS: usize = 15;

/// Checks that the bounds of an integer schema allow integers of 64 bits.
///
/// # Errors
/// [`SchemaError`] with the bound.
pub(super) fn check_integer_bounds(schema: &Object, node: Node<'_>) -> Result<(), SchemaError> {
    if schema.get("type").and_then(Value::as_str) != Some("integer") {
        return Ok(());
    }
    let beyond = |keyword: &str, is_beyond: fn(f64) -> bool| {
        let bound = schema.get(keyword).and_then(Value::as_number)?;
        let float = bound.as_f64().filter(|_| bound.is_f64())?;
        is_beyond(float).then(|| node.bad(keyword, &format!("{bound} {BEYOND}")))
    };
    let too_high = |bound: f64| bound >= u64::MAX as f64;
    let too_low = |bound: f64| bound < i64::MIN as f64;
    let lower = ["minimum", "exclusiveMinimum"].into_iter().find_map(|keyword| beyond(keyword, too_high));
    let upper = ["maximum", "exclusiveMaximum"].into_iter().find_map(|keyword| beyond(keyword, too_low));
    lower.or(upper).map_or(Ok(()), Err)
}

/// Finds a number in a listed value that may have been an integer beyond 64 bits before parsing.
pub(super) fn beyond_64_bits(value: &Value) -> Option<&Number> {
    match value {
        Value::Number(number) => is_beyond_64_bits(number).then_some(number),
        Value::Array(items) => items.iter().find_map(beyond_64_bits),
        Value::Object(members) => members.values().find_map(beyond_64_bits),
        _ => None,
    }
}

fn is_beyond_64_bits(number: &Number) -> bool {
    let whole = number.as_f64().is_some_and(|float| float.fract() == 0.0 && float.abs() >= i64::MAX as f64);
    let mantissa = number.to_string();
    let mantissa = mantissa.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_end_matches(['0', '.']).chars().filter(char::is_ascii_digit).count();
    number.is_f64() && whole && digits > FLOAT_DIGITS
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::{Reading, normalized};

    #[test]
    fn empty_integer_ranges_are_rejected() {
        for (schema, keyword) in [
            (r#"{"type": "integer", "minimum": 18446744073709551617}"#, "minimum"),
            (r#"{"type": "integer", "exclusiveMaximum": -1e20}"#, "exclusiveMaximum"),
            (r#"{"const": 123456789012345678901234567890}"#, "const"),
            (r#"{"type": "integer", "multipleOf": 36893488147419103233}"#, "multipleOf"),
            (r#"{"enum": [1, {"a": [-98765432109876543210]}]}"#, "enum"),
        ] {
            let value = serde_json::from_str(schema).expect("JSON");
            let error = normalized(&value, Reading::Open).expect_err(schema);
            assert_eq!(error.keyword, keyword, "{error}");
            assert!(error.to_string().contains("64 bits"), "{error}");
        }
        for exact in [
            json!({"type": "integer", "maximum": 1e300}),
            json!({"type": "number", "minimum": 1e20}),
            json!({"enum": [u64::MAX, i64::MIN, 1e30, 1e-300, 0.1]}),
        ] {
            normalized(&exact, Reading::Open).expect("a float is what it says");
        }
    }
}
