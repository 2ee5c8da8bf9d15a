//! Digits of numbers, without sign and padding.

/// Notation of a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FloatStyle {
    Fixed,
    Exponent,
    /// The shorter of the two, without trailing zeros.
    General,
}

/// Number of digits after which the decimal digits of every float are zeros. (Precisions of `std::fmt` end at
/// 65,535.)
const EXACT_DIGITS: usize = 1100;

/// Magnitude of a float. `keep_zeros` keeps the trailing zeros that [`FloatStyle::General`] drops.
pub(super) fn float(value: f64, style: FloatStyle, digits: usize, keep_zeros: bool) -> String {
    let value = value.abs();
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return "inf".to_owned();
    }
    match style {
        FloatStyle::Fixed => fixed(value, digits),
        FloatStyle::Exponent => exponent(value, digits).0,
        FloatStyle::General if keep_zeros => general(value, digits.max(1), true),
        FloatStyle::General => general(value, digits.clamp(1, EXACT_DIGITS), false),
    }
}

fn fixed(value: f64, digits: usize) -> String {
    let exact = digits.min(EXACT_DIGITS);
    format!("{value:.exact$}{}", "0".repeat(digits - exact))
}

/// Exponent notation, and the exponent.
fn exponent(value: f64, digits: usize) -> (String, i32) {
    let exact = digits.min(EXACT_DIGITS);
    let zeros = "0".repeat(digits - exact);
    let text = format!("{value:.exact$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let number: i32 = exponent.parse().unwrap_or(0);
    let sign = if number < 0 { '-' } else { '+' };
    (format!("{mantissa}{zeros}e{sign}{:02}", number.abs()), number)
}

fn general(value: f64, digits: usize, keep_zeros: bool) -> String {
    let (scientific, power) = exponent(value, digits - 1);
    let text = if (-4..digits as i32).contains(&power) {
        fixed(value, (digits as i32 - 1 - power).max(0) as usize)
    } else {
        scientific
    };
    if keep_zeros || !text.contains('.') {
        return text;
    }
    match text.split_once('e') {
        Some((mantissa, power)) => format!("{}e{power}", without_zeros(mantissa)),
        None => without_zeros(&text).to_owned(),
    }
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Magnitude of an integer in the base of `kind`.
pub(super) fn integer(value: i128, kind: char) -> String {
    let value = value.unsigned_abs();
    match kind {
        'x' => format!("{value:x}"),
        'X' => format!("{value:X}"),
        'o' => format!("{value:o}"),
        'b' => format!("{value:b}"),
        _ => value.to_string(),
    }
}

/// Inserts a separator before each group of `size` digits, counted from the decimal point.
pub(super) fn grouped(digits: &str, separator: char, size: usize) -> String {
    let whole = digits.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(whole);
    let mut text = String::new();
    for (index, c) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % size == 0 {
            text.push(separator);
        }
        text.push(c);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::{FloatStyle, float, grouped};

    #[test]
    fn numbers_equal_python() {
        let general = |value| float(value, FloatStyle::General, 6, false);
        let values = [0.0, 1.0, 0.0001, 0.00001, 123456.0, 1234567.0, 1.5e300, 2.0 / 3.0];
        let written = ["0", "1", "0.0001", "1e-05", "123456", "1.23457e+06", "1.5e+300", "0.666667"];
        assert_eq!(values.map(general), written);
        assert_eq!(float(2.5, FloatStyle::Fixed, 0, false), "2");
        assert_eq!(float(1e-7, FloatStyle::Exponent, 2, false), "1.00e-07");
        for style in [FloatStyle::Fixed, FloatStyle::Exponent, FloatStyle::General] {
            let long = float(1.5e-300, style, 1 << 16, true);
            let zeros = if style == FloatStyle::Fixed { "000" } else { "000e-300" };
            assert!(long.len() > 1 << 16 && long.ends_with(zeros), "{style:?}");
        }
        assert_eq!(grouped("1234567.891", ',', 3), "1,234,567.891");
    }
}
