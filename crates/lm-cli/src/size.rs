//! Formatting and parsing of byte counts.

/// Formats bytes in the unit with one to three digits before the point.
pub fn format_bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in ["kB", "MB", "GB", "TB"] {
        // A value that would be shown as 1000.0 uses the next unit.
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// Least number of bytes that is taken without a unit.
const LEAST_WITHOUT_UNIT: u64 = 1_000_000;

/// Parses a byte count: `512MB`, `1.5 GiB`, `8000000000`, `100 B`. A small number without a unit is an error:
/// `8` means 8 GB to most users.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "k" => 1000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "tb" | "t" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1_u64 << 40,
        _ => return Err("expected a number of bytes, as in 8GB or 512MiB".to_owned()),
    };
    let bytes = number.parse::<f64>().map(|number| number * factor as f64);
    match bytes {
        Ok(bytes) if unit.trim().is_empty() && (1.0..LEAST_WITHOUT_UNIT as f64).contains(&bytes) => Err(
            format!("{text} without a unit are {text} bytes: expected a unit, as in {text}MB or {text}GB"),
        ),
        Ok(bytes) if (1.0..1e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err("expected a number of bytes, as in 8GB or 512MiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_at_most_three_digits_before_the_point() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1500, "1.5 kB"),
            (7_800_000, "7.8 MB"),
            (999_990_000, "1.0 GB"),
            (1 << 30, "1.1 GB"),
        ] {
            assert_eq!(format_bytes(bytes), expected);
        }
    }

    #[test]
    fn sizes_accept_common_spellings() {
        for (text, bytes) in [
            ("4096 B", 4096),
            ("1000000", 1_000_000),
            ("8GB", 8_000_000_000),
            ("1.5 gib", 3 << 29),
            ("512MiB", 512 << 20),
        ] {
            assert_eq!(parse(text), Ok(bytes));
        }
        for text in ["", "x", "-1", "0", "1XB", "1e30", "nan", "1..2GB", "9999999TB"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["8", "1.5", "4096"] {
            let error = parse(text).expect_err("has no unit");
            assert!(error.contains(&format!("as in {text}MB or {text}GB")), "{error}");
        }
    }
}
