//! Jinja2's tests where the engine's differ.

use minijinja::value::ValueKind;
use minijinja::{Environment, Value};

use super::marked::unmark;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment
        .add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok() || is_text(value));
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined)
    });
    for name in ["eq", "equalto", "=="] {
        environment.add_test(name, |a: &Value, b: &Value| equal(a, b));
    }
    for name in ["ne", "!="] {
        environment.add_test(name, |a: &Value, b: &Value| !equal(a, b));
    }
}

fn is_text(value: &Value) -> bool {
    value.kind() == ValueKind::String
}

/// Equality that does not see marks.
fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => unmark(a) == unmark(b),
        _ => a == b,
    }
}
