//! Python's escape sequences in string literals.

/// Decodes a literal's escape sequences; unknown ones stay unchanged.
pub(super) fn unescape(literal: &str) -> Result<String, String> {
    let mut text = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let kind = rest.chars().next().ok_or("a string ends in a backslash")?;
        rest = &rest[kind.len_utf8()..];
        match kind {
            'x' => rest = code(rest, 2, 16, &mut text)?,
            'u' => rest = unit(rest, &mut text)?,
            'U' => rest = code(rest, 8, 16, &mut text)?,
            '0'..='7' => {
                let from = &literal[literal.len() - rest.len() - 1..];
                let length = from.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                rest = code(from, length, 8, &mut text)?;
            }
            'N' => return Err("characters by name are not offered".to_owned()),
            kind => simple(kind, &mut text),
        }
    }
    Ok(text + rest)
}

fn simple(kind: char, text: &mut String) {
    match kind {
        '\n' => {}
        '\\' | '\'' | '"' => text.push(kind),
        'a' => text.push('\x07'),
        'b' => text.push('\x08'),
        'f' => text.push('\x0c'),
        'n' => text.push('\n'),
        'r' => text.push('\r'),
        't' => text.push('\t'),
        'v' => text.push('\x0b'),
        other => text.extend(['\\', other]),
    }
}

/// Parses `length` digits as a number.
fn number(rest: &str, length: usize, base: u32) -> Result<u32, String> {
    let digits = rest.get(..length).filter(|digits| digits.chars().all(|c| c.is_digit(base)));
    digits
        .and_then(|digits| u32::from_str_radix(digits, base).ok())
        .ok_or_else(|| "truncated escape".to_owned())
}

fn code<'a>(rest: &'a str, length: usize, base: u32, text: &mut String) -> Result<&'a str, String> {
    let code = number(rest, length, base)?;
    text.push(char::from_u32(code).ok_or("an escape that is no character")?);
    Ok(&rest[length..])
}

/// Decodes a UTF-16 unit. A surrogate pair is one character here; Python keeps the halves apart and fails to
/// print them.
fn unit<'a>(rest: &'a str, text: &mut String) -> Result<&'a str, String> {
    let first = number(rest, 4, 16)?;
    if !(0xD800..0xDC00).contains(&first) {
        return code(rest, 4, 16, text);
    }
    let second = rest[4..].strip_prefix("\\u").ok_or("an escape that is half a character")?;
    let second = number(second, 4, 16)?.checked_sub(0xDC00).filter(|low| *low < 0x400);
    let low = second.ok_or("an escape that is half a character")?;
    text.extend(char::from_u32(0x10000 + ((first - 0xD800) << 10) + low));
    Ok(&rest[10..])
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_equal_python() {
        let cases = [
            (r"a\nb\t\\\'", "a\nb\t\\'"),
            (r"\x41\u00e9\U0001F600\101\0", "Aé😀A\0"),
            (r"\d\é", r"\d\é"),
            ("a\\\nb", "ab"),
            (r"\ud83d\ude00", "😀"),
        ];
        for (literal, expected) in cases {
            assert_eq!(unescape(literal).as_deref(), Ok(expected), "{literal}");
        }
        for literal in [r"\x4", r"\u12", r"\ud83d", r"\U00110000", "\\"] {
            assert!(unescape(literal).is_err(), "{literal}");
        }
    }
}
