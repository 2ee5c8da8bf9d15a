//! The keyword `multipleOf`, exact for all numbers.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use lm_template::Value;
use serde_json::{Map, Number};

/// The keyword with its value.
struct Divisor(Number);

impl<'i> Keyword<'i> for Divisor {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        match Keyword::is_valid(self, value) {
            true => Ok(()),
            false => Err(ValidationError::custom(format!("{value} is not a multiple of {}", self.0))),
        }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_number().is_none_or(|number| is_multiple(number, &self.0).unwrap_or(false))
    }
}

/// Factory of the keyword, for the validator.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a keyword's factory")]
pub(super) fn divisor<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    // The meta-schema has checked that it is a number above 0.
    Ok(Box::new(Divisor(value.as_number().cloned().unwrap_or_else(|| Number::from(1)))))
}

/// Returns true if `number` is a multiple of `divisor` as decimals; `None` if one of them is not in decimal
/// notation.
fn is_multiple(number: &Number, divisor: &Number) -> Option<bool> {
    let ((value, scale), (step, step_scale)) = (decimal(number)?, decimal(divisor)?);
    if value == 0 || step == 0 {
        return Some(value == 0);
    }
    let places = scale - step_scale;
    if places >= 0 {
        let times_ten = |rest: u128, _| rest * 10 % step;
        return Some((0..places).fold(value % step, times_ten) == 0);
    }
    // A step beyond 128 bits divides no value of 64.
    let step = u32::try_from(-places).ok().and_then(|places| 10_u128.checked_pow(places)?.checked_mul(step));
    Some(step.is_some_and(|step| value % step == 0))
}

/// Digits of a number without its sign, and the power of ten that they are multiplied by.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    let text = number.to_string();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    Some((digits.parse().ok()?, exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_exact() {
        let number = |text: &str| text.parse::<Number>().expect("a number");
        let cases = [
            ("9007199254740993", "9007199254740993", true),
            ("9007199254740992", "9007199254740993", false),
            ("18014398509481986", "9007199254740993", true),
            ("-9223372036854775807", "7", true),
            ("18446744073709551615", "3", true),
            ("18446744073709551614", "3", false),
            ("0", "1e300", true),
            ("5", "1e300", false),
            ("1e300", "3", false),
            ("3e300", "3", true),
            ("0.3", "0.1", true),
            ("1e-300", "1e-301", true),
            ("1e300", "1e-300", true),
            ("0.35", "0.1", false),
            ("5.0", "5", true),
        ];
        for (value, divisor, expected) in cases {
            assert_eq!(is_multiple(&number(value), &number(divisor)), Some(expected), "{value} by {divisor}");
        }
    }
}
