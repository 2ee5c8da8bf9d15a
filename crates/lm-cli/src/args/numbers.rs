//! Parsers of numbers with a range, for flags and for the settings of a chat.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::str::FromStr;

use lm_tokenizer::TokenId;

/// Largest number of threads: more than any machine has cores, few enough to be started.
const MAX_THREADS: usize = 1024;

/// Parses a number that `is_valid`; `expected` describes the valid ones.
fn number<T: FromStr>(
    text: &str,
    is_valid: impl Fn(&T) -> bool,
    expected: impl Display,
) -> Result<T, String> {
    text.trim().parse().ok().filter(is_valid).ok_or_else(|| format!("expected {expected}"))
}

/// Parses a count of at least 1.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    number(text, |_| true, "an integer of at least 1")
}

/// Parses an integer of at least 1 as `usize`.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    count(text).map(NonZeroUsize::get)
}

/// Parses a count of threads.
pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    number(text, |n: &NonZeroUsize| n.get() <= MAX_THREADS, format_args!("an integer in 1..={MAX_THREADS}"))
}

/// Parses an integer of at least 0.
pub fn at_least_zero(text: &str) -> Result<usize, String> {
    number(text, |_| true, "an integer of at least 0")
}

/// Parses a seed.
pub fn seed(text: &str) -> Result<u64, String> {
    number(text, |_| true, format_args!("an integer in 0..={}", u64::MAX))
}

/// Parses a finite number of at least 0.
pub fn non_negative(text: &str) -> Result<f32, String> {
    number(text, |x: &f32| x.is_finite() && *x >= 0.0, "a number of at least 0")
}

/// Parses a finite number above 0.
pub fn positive(text: &str) -> Result<f32, String> {
    number(text, |x: &f32| x.is_finite() && *x > 0.0, "a number above 0")
}

/// Parses a finite number of at least 1.
pub fn base(text: &str) -> Result<f32, String> {
    number(text, |x: &f32| x.is_finite() && *x >= 1.0, "a number of at least 1")
}

/// Parses a number from 0 to 1.
pub fn probability(text: &str) -> Result<f32, String> {
    number(text, |x: &f32| (0.0..=1.0).contains(x), "a number from 0 to 1")
}

/// Parses a finite number.
pub fn finite(text: &str) -> Result<f32, String> {
    number(text, |x: &f32| x.is_finite(), "a number")
}

/// Parses a token id with the bias of its logit, a number or -inf.
pub fn logit_bias(text: &str) -> Result<(TokenId, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed
        .filter(|(_, bias): &(TokenId, f32)| *bias < f32::INFINITY)
        .ok_or_else(|| "expected a token id, `=` and a number or -inf, as in 17=-2.5".to_owned())
}

/// Parses a stop sequence.
pub fn stop_sequence(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("expected a text that is not empty".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_bounds() {
        for (parse, valid, invalid) in [
            (
                non_negative as fn(&str) -> Result<f32, String>,
                &["0", "0.5", "3"][..],
                &["-1", "nan", "inf", "x"][..],
            ),
            (positive, &["0.1"], &["0", "-0.5"]),
            (base, &["1", "1.75"], &["0.9", "-2", "inf"]),
            (probability, &["0", "1", ".5"], &["1.1", "-0.1", "2", "nan"]),
            (finite, &["-2", "0"], &["inf", ""]),
        ] {
            assert!(valid.iter().all(|text| parse(text).is_ok()), "{valid:?}");
            assert!(invalid.iter().all(|text| parse(text).is_err()), "{invalid:?}");
        }
        assert!(count("0").is_err_and(|message| message.contains("at least 1")));
        assert!(threads("1024").is_ok() && threads("1025").is_err());
        assert!(seed("-1").is_err() && at_least_zero("0") == Ok(0));
        assert_eq!(logit_bias("3=-inf"), Ok((3, f32::NEG_INFINITY)));
        for text in ["3=inf", "3=nan", "3", "-1=0", "=1"] {
            assert!(logit_bias(text).is_err(), "{text}");
        }
    }
}
