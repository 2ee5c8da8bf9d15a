//! Numbers of bytes, for people.

/// Bytes in the unit that leaves one to three digits before the point.
pub fn shown(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in ["kB", "MB", "GB", "TB"] {
        // What is shown as 1000.0 belongs to the next unit.
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
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
            assert_eq!(shown(bytes), expected);
        }
    }
}
