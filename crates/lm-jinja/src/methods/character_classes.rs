//! The `is…` methods of texts.

/// Returns true if the text passes the method `name`.
pub(crate) fn predicate(text: &str, name: &str) -> bool {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    match name {
        "isdecimal" => all(is_decimal),
        "isdigit" => all(|c| is_decimal(c) || is_superscript_or_circled(c)),
        "isnumeric" => all(char::is_numeric),
        "isalpha" => all(is_letter),
        "isalnum" => all(|c| is_letter(c) || c.is_numeric()),
        "isspace" => all(is_space),
        "isascii" => text.is_ascii(),
        "isprintable" => text.chars().all(crate::python_text::is_printable),
        "isidentifier" => is_identifier(text),
        "istitle" => is_title(text),
        "islower" => text.chars().any(char::is_lowercase) && !text.chars().any(is_upper_or_title),
        "isupper" => {
            text.chars().any(char::is_uppercase)
                && !text.chars().any(|c| c.is_lowercase() || is_title_case(c))
        }
        _ => false,
    }
}

/// Python's `str.isspace`: Unicode whitespace and the four ASCII separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Returns true for letters: alphabetic characters except marks and letter-like numbers, which Python
/// excludes.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !c.is_numeric() && !is_combining(c)
}

/// Alphabetic marks, in the most common scripts.
fn is_combining(c: char) -> bool {
    matches!(c as u32, 0x345 | 0x5B0..=0x5C7 | 0x610..=0x61A | 0x64B..=0x657 | 0x900..=0x903 | 0x93A..=0x93B
        | 0x93E..=0x94C | 0x94E..=0x957 | 0xE31 | 0xE34..=0xE3A | 0xE4D)
}

/// Zeros of the blocks of ten decimal digits, in all scripts (Unicode 14.0.0).
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50,
    0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
    0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066,
    0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950,
    0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6,
    0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// Value of a decimal digit of any script.
pub(crate) fn decimal_value(c: char) -> Option<u32> {
    let block = ZEROS.partition_point(|zero| *zero <= u32::from(c)).checked_sub(1)?;
    Some(u32::from(c) - ZEROS[block]).filter(|value| *value < 10)
}

fn is_decimal(c: char) -> bool {
    decimal_value(c).is_some()
}

/// Superscript, subscript and circled digits: digits to Python, but not decimals.
fn is_superscript_or_circled(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⑴'..='⑼' | '⒈'..='⒐' | '⓪' | '❶'..='❾')
}

fn is_title_case(c: char) -> bool {
    matches!(c as u32, 0x1C5 | 0x1C8 | 0x1CB | 0x1F2 | 0x1F88..=0x1F8F | 0x1F98..=0x1F9F | 0x1FA8..=0x1FAF | 0x1FBC | 0x1FCC | 0x1FFC)
}

fn is_upper_or_title(c: char) -> bool {
    c.is_uppercase() || is_title_case(c)
}

fn is_identifier(text: &str) -> bool {
    let begins = |c: char| c == '_' || is_letter(c);
    text.starts_with(begins) && text.chars().all(|c| begins(c) || c.is_numeric() || is_combining(c))
}

/// Every word starts with a capital letter, and all other letters are lower case.
fn is_title(text: &str) -> bool {
    let (mut in_word, mut any) = (false, false);
    for c in text.chars() {
        if is_upper_or_title(c) {
            if in_word {
                return false;
            }
            (in_word, any) = (true, true);
        } else if c.is_lowercase() {
            if !in_word {
                return false;
            }
            any = true;
        } else {
            in_word = false;
        }
    }
    any
}
