//! Translation of ECMA-262 regular expressions to the syntax of the crate `regex-syntax`.
//!
//! Braces and brackets that ECMA-262 reads as literals (Annex B) are literals. Where implementations disagree on a class
//! (`\s`, `.`), the translation matches what all of them match.

use std::iter::Peekable;
use std::str::Chars;

/// White space by ECMA-262, Unicode and Python alike.
const SPACES: &str = r"\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}";
/// Further characters that one of them counts as white space.
const DISPUTED_SPACES: &str = r"\x{1c}-\x{1f}\x{85}\x{feff}";
/// Any character but a line terminator.
const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// Translates `pattern`; `None` for syntax without an equivalent, such as back references.
pub(super) fn translated(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match escape(&mut chars, false)? {
                Atom::Char(c) => push_char(&mut out, c),
                Atom::Set(set) => out.push_str(&format!("[{set}]")),
            },
            '[' => class(&mut chars, &mut out)?,
            '.' => out.push_str(NO_LINE_END),
            '{' => match quantifier(&chars) {
                Some(quantifier) => {
                    chars.nth(quantifier.len() - 1);
                    out.push('{');
                    out.push_str(&quantifier);
                }
                None => push_char(&mut out, c),
            },
            '}' | ']' => push_char(&mut out, c),
            c => out.push(c),
        }
    }
    Some(out)
}

/// An element of a class, or an escape outside of one.
enum Atom {
    Char(char),
    /// Content of a class.
    Set(String),
}

/// Rest of the quantifier after `{`, including `}`; `None` if the brace is a literal.
fn quantifier(rest: &Peekable<Chars<'_>>) -> Option<String> {
    let mut text: String = rest.clone().take_while(|c| *c != '}').collect();
    let (min, max) = text.split_once(',').unwrap_or((&text, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    let valid = !min.is_empty() && is_number(min) && is_number(max);
    let closed = rest.clone().nth(text.chars().count()) == Some('}');
    text.push('}');
    (valid && closed).then_some(text)
}

/// Reads the escape after a backslash; `negated` if it is in a negated class.
fn escape(chars: &mut Peekable<Chars<'_>>, negated: bool) -> Option<Atom> {
    let spaces = |all: bool| format!("{SPACES}{}", if all { DISPUTED_SPACES } else { "" });
    let c = match chars.next()? {
        'd' => return Some(Atom::Set("0-9".to_owned())),
        'D' => return Some(Atom::Set("[^0-9]".to_owned())),
        'w' => return Some(Atom::Set("0-9A-Za-z_".to_owned())),
        'W' => return Some(Atom::Set("[^0-9A-Za-z_]".to_owned())),
        's' => return Some(Atom::Set(spaces(negated))),
        'S' => return Some(Atom::Set(format!("[^{}]", spaces(!negated)))),
        kind @ ('p' | 'P') => return property(chars, kind),
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'v' => '\u{b}',
        'f' => '\u{c}',
        '0' if !chars.peek().is_some_and(char::is_ascii_digit) => '\0',
        'c' => char::from(chars.next().filter(char::is_ascii_alphabetic)? as u8 % 32),
        'x' => char::from_u32(hex(chars, 2)?)?,
        'u' => unicode(chars)?,
        // Other letters and digits: back references, word boundaries and identity escapes.
        c if c.is_alphanumeric() => return None,
        c => c,
    };
    Some(Atom::Char(c))
}

/// Reads the rest of `\p{…}`.
fn property(chars: &mut Peekable<Chars<'_>>, kind: char) -> Option<Atom> {
    let name: String = chars.clone().take_while(|c| *c != '}').collect();
    if !name.starts_with('{') || chars.nth(name.chars().count()) != Some('}') {
        return None;
    }
    Some(Atom::Set(format!("\\{kind}{name}}}")))
}

fn hex(chars: &mut Peekable<Chars<'_>>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0, |value, _| Some(value * 16 + chars.next()?.to_digit(16)?))
}

/// Reads the rest of `\uHHHH`, a surrogate pair of those, or `\u{…}`.
fn unicode(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    if chars.next_if_eq(&'{').is_some() {
        let digits: String = chars.by_ref().take_while(|c| *c != '}').collect();
        return char::from_u32(u32::from_str_radix(&digits, 16).ok()?);
    }
    let high = hex(chars, 4)?;
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high);
    }
    chars.next_if_eq(&'\\')?;
    chars.next_if_eq(&'u')?;
    let low = hex(chars, 4)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)
}

/// Translates the class after `[`.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    let negated = chars.next_if_eq(&'^').is_some();
    if chars.next_if_eq(&']').is_some() {
        out.push_str(if negated { "(?s:.)" } else { r"[^\x{0}-\x{10ffff}]" });
        return Some(());
    }
    out.push_str(if negated { "[^" } else { "[" });
    loop {
        let atom = match chars.next()? {
            ']' => break,
            c => class_atom(chars, c, negated)?,
        };
        // A hyphen between two characters is a range; next to a set or at the end it is a literal.
        let mut after = chars.clone();
        let range = after.next() == Some('-') && after.peek().is_some_and(|c| *c != ']');
        match atom {
            Atom::Char(from) if range => {
                chars.next();
                let to = chars.next()?;
                push_char(out, from);
                match class_atom(chars, to, negated)? {
                    Atom::Char(to) => {
                        out.push('-');
                        push_char(out, to);
                    }
                    Atom::Set(set) => {
                        push_char(out, '-');
                        out.push_str(&set);
                    }
                }
            }
            Atom::Char(c) => push_char(out, c),
            Atom::Set(set) => out.push_str(&set),
        }
    }
    out.push(']');
    Some(())
}

fn class_atom(chars: &mut Peekable<Chars<'_>>, first: char, negated: bool) -> Option<Atom> {
    match first {
        '\\' if chars.next_if_eq(&'b').is_some() => Some(Atom::Char('\u{8}')),
        '\\' => escape(chars, negated),
        c => Some(Atom::Char(c)),
    }
}

/// Writes one literal character.
fn push_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn characters_that_are_literals_in_ecma_262_are_escaped() {
        let cases = [
            (r"^{a}$", r"^\x{7b}a\x{7d}$"),
            (r"a{2,3}b{,3}c{2", r"a{2,3}b\x{7b},3\x{7d}c\x{7b}2"),
            (r"^\0$", r"^\x{0}$"),
            (r"[[:alpha:]]", r"[\x{5b}\x{3a}alpha\x{3a}]\x{5d}"),
            (r"[a&&b~~c-]", r"[a\x{26}\x{26}b\x{7e}\x{7e}c\x{2d}]"),
            (r"[\w-z]", r"[0-9A-Za-z_\x{2d}z]"),
            (r"[a-\d]", r"[a\x{2d}0-9]"),
            (r"[^]", "(?s:.)"),
            (r"\cJ\x41\u0042\u{43}\ud83d\ude00", r"\x{a}ABC\x{1f600}"),
            (r"\/\-", r"\x{2f}\x{2d}"),
            (r"[\b]", r"[\x{8}]"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(translated(pattern).as_deref(), Some(expected), "{pattern}");
        }
        for unsupported in [r"\1", r"\k<a>", r"\bword", r"\ud83d", r"\01", r"\a", r"[a", r"\"] {
            assert_eq!(translated(unsupported), None, "{unsupported}");
        }
    }
}
