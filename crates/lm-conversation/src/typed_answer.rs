//! JSON schemas of Rust types.

use lm_template::Value;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};

/// JSON schema of `T`. Numbers have the bounds of their Rust types, which schemars only names in `format`.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T);
    RecursiveTransform(bound_numbers).transform(&mut schema);
    Value::from(schema)
}

fn bound_numbers(schema: &mut Schema) {
    let (minimum, maximum): (Value, Value) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int" | "int64") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0.into(), u8::MAX.into()),
        Some("uint16") => (0.into(), u16::MAX.into()),
        Some("uint32") => (0.into(), u32::MAX.into()),
        Some("float") => (f64::from(f32::MIN).into(), f64::from(f32::MAX).into()),
        Some("uint" | "uint64") => (0.into(), u64::MAX.into()),
        _ => return,
    };
    let object = schema.ensure_object();
    object.entry("minimum").or_insert(minimum);
    object.entry("maximum").or_insert(maximum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_bounds_of_their_types() {
        let of_list = schema::<Vec<Option<i32>>>();
        assert_eq!(
            (&of_list["items"]["minimum"], &of_list["items"]["maximum"]),
            (&i32::MIN.into(), &i32::MAX.into())
        );
        assert_eq!(schema::<u64>()["maximum"], u64::MAX);
        assert_eq!(schema::<std::num::NonZeroU8>()["minimum"], 1);
    }
}
