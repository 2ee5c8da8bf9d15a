//! Regular expressions of texts as JSON writes them: of the text `"`, its spelling `\"`.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

use crate::layout::Layout;

/// Most ranges of a class whose characters may be written by their number.
const MAX_NUMBERED_RANGES: usize = 32;

/// Characters with a short escape, and its letter.
const SHORT: [(char, char); 7] =
    [('"', '"'), ('\\', '\\'), ('\u{8}', 'b'), ('\u{c}', 'f'), ('\n', 'n'), ('\r', 'r'), ('\t', 't')];

/// One character of a text, as a regular expression.
pub(crate) fn character(layout: Layout) -> &'static str {
    match layout {
        Layout::Exact => r"(?:[^\x22\\\x00-\x1f]|\\[\x22\\bfnrt]|\\u00[01][0-9a-f])",
        // A surrogate is half a character and needs its other half.
        Layout::Any => {
            r"(?:[^\x22\\\x00-\x1f]|\\[\x22\\\/bfnrt]|\\u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
        }
    }
}

/// The expression of the spellings of the texts that `pattern` matches.
pub(super) fn spelled(pattern: &Hir, layout: Layout) -> Hir {
    let inner = |hir: &Hir| spelled(hir, layout);
    match pattern.kind() {
        HirKind::Literal(text) => {
            let one = |c| ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            let text = String::from_utf8_lossy(&text.0);
            Hir::concat(text.chars().map(|c| spelled_class(&one(c), layout)).collect())
        }
        HirKind::Class(Class::Unicode(class)) => spelled_class(class, layout),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(inner(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(group) => inner(&group.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(inner).collect()),
        HirKind::Alternation(options) => Hir::alternation(options.iter().map(inner).collect()),
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => pattern.clone(),
    }
}

/// The spellings of the characters of a class.
fn spelled_class(class: &ClassUnicode, layout: Layout) -> Hir {
    let contains = |c: char| class.ranges().iter().any(|range| range.start() <= c && c <= range.end());
    let escaped = [('\0', '\u{1f}'), ('"', '"'), ('\\', '\\')];
    let mut plain = class.clone();
    plain.difference(&ClassUnicode::new(escaped.map(|(start, end)| ClassUnicodeRange::new(start, end))));
    let mut options = Vec::new();
    if !plain.ranges().is_empty() {
        options.push(Hir::class(Class::Unicode(plain)));
    }
    let slash = ('/', '/');
    let short = SHORT.iter().chain(Some(&slash).filter(|_| layout == Layout::Any));
    options.extend(short.filter(|(c, _)| contains(*c)).map(|(_, letter)| literal(&format!("\\{letter}"))));
    let numbered: Vec<String> = match layout {
        Layout::Exact => ('\0'..=' ')
            .filter(|c| *c < ' ' && contains(*c))
            .map(|c| format!("{:04x}", u32::from(c)))
            .collect(),
        Layout::Any if class.ranges().len() <= MAX_NUMBERED_RANGES => numbers(class),
        Layout::Any => Vec::new(),
    };
    if !numbered.is_empty() {
        let numbered = regex_syntax::parse(&format!(r"\\u(?:{})", numbered.join("|")));
        options.extend(numbered);
    }
    if options.is_empty() { Hir::fail() } else { Hir::alternation(options) }
}

fn literal(text: &str) -> Hir {
    Hir::literal(text.as_bytes())
}

/// Expressions for the four digits of the characters of a class; those beyond the first plane have others.
fn numbers(class: &ClassUnicode) -> Vec<String> {
    let planes = [(0, 0xd7ff), (0xe000, 0xffff)];
    let within = |range: &ClassUnicodeRange| {
        let (start, end) = (u32::from(range.start()), u32::from(range.end()));
        planes.map(|(low, high)| (start.max(low), end.min(high)))
    };
    let ranges = class.ranges().iter().flat_map(within).filter(|(start, end)| start <= end);
    ranges.map(|(start, end)| digits(start, end, 4)).collect()
}

/// Expression for the numbers of a range, in so many hexadecimal digits of either case.
fn digits(start: u32, end: u32, count: u32) -> String {
    let any = |count: u32| format!("[0-9a-fA-F]{{{count}}}");
    if count == 0 {
        return String::new();
    }
    let unit = 16_u32.pow(count - 1);
    let (mut first, mut last) = (start / unit, end / unit);
    let below = |digit: u32, start: u32, end: u32| {
        format!("{}{}", digit_of(digit, digit), digits(start, end, count - 1))
    };
    if first == last {
        return below(first, start % unit, end % unit);
    }
    let mut options = Vec::new();
    if !start.is_multiple_of(unit) {
        options.push(below(first, start % unit, unit - 1));
        first += 1;
    }
    if end % unit != unit - 1 {
        options.push(below(last, 0, end % unit));
        last -= 1;
    }
    if first <= last {
        options.push(format!("{}{}", digit_of(first, last), any(count - 1)));
    }
    format!("(?:{})", options.join("|"))
}

/// Expression for one hexadecimal digit of a range, in either case.
fn digit_of(first: u32, last: u32) -> String {
    let digits = (first..=last).filter_map(|digit| char::from_digit(digit, 16));
    let both: String = digits.flat_map(|c| [c, c.to_ascii_uppercase()]).collect();
    format!("[{both}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_numbers_are_exact() {
        for (start, end) in [(0, 0xffff), (0x2f, 0x2f), (0x30, 0x1a2), (0xabc, 0xbcde), (0x1f, 0x20)] {
            let hir = regex_syntax::parse(&digits(start, end, 4)).expect("an expression");
            let matches = |number: u32| {
                let text = format!("{number:04x}");
                let parsed = hir.to_string();
                let pattern = format!("^(?:{parsed})$");
                let schema = serde_json::json!({"pattern": pattern});
                jsonschema::is_valid(&schema, &text.into())
            };
            for number in [start, end, (start + end) / 2] {
                assert!(matches(number), "{number:x} in {start:x} to {end:x}");
            }
            for number in [start.wrapping_sub(1), end + 1] {
                assert!(number > 0xffff || !matches(number), "{number:x} not in {start:x} to {end:x}");
            }
        }
    }
}
