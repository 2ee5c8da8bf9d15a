//! `strftime` in C's locale, as Python formats a time that has no zone.
//!
//! Source: the manual page of glibc's `strftime` for flags, width, modifiers and conversions; anything else
//! is copied.

use jiff::civil::DateTime;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};

use crate::error::{BoxedResult as Result, Error};

/// Conversions that are formatted by the library, and those that may have a modifier.
const CONVERSIONS: &str = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%";
const AFTER_E: &str = "cCxXyY%";
const AFTER_O: &str = "deHImMSuUVwWy%";

/// Formats `now`, `seconds` after the start of 1970.
///
/// # Errors
/// If a field has several flags or is too wide.
pub(crate) fn strftime(format: &str, now: DateTime, seconds: i64) -> Result<String> {
    let config = Config::new().custom(PosixCustom::new());
    let time = BrokenDownTime::from(now);
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let conversion = Conversion::at(after);
        rest = &after[conversion.length..];
        match (conversion.letter, conversion.options) {
            ('f', "") => out.push_str(&format!("{:06}", now.subsec_nanosecond() / 1000)),
            // The zone name and the offset of a time without a zone are empty.
            ('z' | 'Z', _) => {}
            ('s', _) => out.push_str(&seconds.to_string()),
            ('r', options) => {
                let time = time.to_string_with_config(&config, "%I:%M:%S %p").map_err(failed)?;
                out.push_str(&if options.contains('^') { time.to_uppercase() } else { time });
            }
            (letter, options) if CONVERSIONS.contains(letter) => {
                // The flag changes the case of names to upper case, and that of AM and PM to lower case.
                let options = match letter {
                    'a' | 'A' | 'b' | 'B' | 'h' => &options.replace('#', "^"),
                    'P' => &options.replace('^', ""),
                    _ => options,
                };
                let field = format!("%{options}{letter}");
                out.push_str(&time.to_string_with_config(&config, &field).map_err(failed)?);
            }
            _ => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// A conversion after its `%`.
struct Conversion<'a> {
    /// Flags and width.
    options: &'a str,
    /// `\0` if there is no known conversion.
    letter: char,
    /// Length in bytes.
    length: usize,
}

impl<'a> Conversion<'a> {
    fn at(text: &'a str) -> Self {
        let after_flags = text.trim_start_matches(['_', '-', '0', '^', '#']);
        let after = after_flags.trim_start_matches(|c: char| c.is_ascii_digit());
        let options = &text[..text.len() - after.len()];
        let modified = [('E', AFTER_E), ('O', AFTER_O)]
            .into_iter()
            .find_map(|(modifier, letters)| Some((after.strip_prefix(modifier)?, letters)));
        let (after, letters) = modified.unwrap_or((after, after));
        let letter = after.chars().next().filter(|letter| letters.contains(*letter));
        let length = letter.map_or(0, |letter| text.len() - after.len() + letter.len_utf8());
        Self { options, letter: letter.unwrap_or('\0'), length }
    }
}

fn failed(error: jiff::Error) -> Box<Error> {
    Error::runtime(format!("strftime_now: {error}"))
}
