//! Numbers in the notations of Python, JSON and people.

use serde_json::Number;

/// Converts a text to a number as JSON text: decimal, with a sign, an exponent, underscores or leading zeros,
/// or in one of Python's other bases. `None` for anything else, and for numbers that JSON cannot represent
/// (infinities, overflow).
pub(crate) fn number_text(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = without_underscores(digits)?;
    let unsigned = in_base(&digits).or_else(|| decimal(&digits))?;
    let number = format!("{sign}{unsigned}");
    serde_json::from_str::<Number>(&number).ok().map(|_| number)
}

/// Parses a text as a number.
pub(crate) fn number(text: &str) -> Option<Number> {
    serde_json::from_str(&number_text(text)?).ok()
}

/// Removes underscores, which are valid between digits only.
fn without_underscores(digits: &str) -> Option<String> {
    let stray = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    (!stray).then(|| digits.replace('_', ""))
}

/// `0x1f`, `0o17`, `0b101`.
fn in_base(digits: &str) -> Option<String> {
    let radix = match digits.get(..2)? {
        "0x" | "0X" => 16,
        "0o" | "0O" => 8,
        "0b" | "0B" => 2,
        _ => return None,
    };
    let digits = &digits[2..];
    // `from_str_radix` accepts a sign; here it would be a second one.
    let plain = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    plain.then(|| u128::from_str_radix(digits, radix).ok()).flatten().map(|value| value.to_string())
}

/// `007`, `1.5`, `.5`, `5.`, `1e-3`.
fn decimal(digits: &str) -> Option<String> {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let empty = whole.is_empty() && fraction.is_none_or(str::is_empty);
    let bad_exponent = exponent.is_some_and(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        digits.is_empty() || !is_digits(digits)
    });
    if empty || bad_exponent || !is_digits(whole) || !fraction.is_none_or(is_digits) {
        return None;
    }
    let mut text = whole.trim_start_matches('0').to_owned();
    if text.is_empty() {
        text.push('0');
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    if let Some(exponent) = exponent {
        text.push('e');
        text.push_str(exponent);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::number_text;

    #[test]
    fn numbers_become_json() {
        let cases = [
            ("0", "0"),
            ("-7", "-7"),
            ("+3", "3"),
            ("007", "7"),
            ("018956", "18956"),
            ("1_000_000", "1000000"),
            ("0x1F", "31"),
            ("-0b101", "-5"),
            ("0o17", "15"),
            ("1.50", "1.50"),
            (".5", "0.5"),
            ("5.", "5.0"),
            ("1e5", "1e5"),
            ("1.5E-10", "1.5e-10"),
            ("9007199254740993", "9007199254740993"),
        ];
        for (text, json) in cases {
            assert_eq!(number_text(text).as_deref(), Some(json), "{text}");
        }
    }

    #[test]
    fn non_json_numbers_are_rejected() {
        let texts = [
            "", "-", ".", "e5", "1e", "1e+", "--1", "0x", "0x-1", "0xg", "_1", "1__0", "1 2", "1a", "inf",
            "nan", "1e999", "١", "é1", "0é",
        ];
        for text in texts {
            assert_eq!(number_text(text), None, "{text}");
        }
    }
}
