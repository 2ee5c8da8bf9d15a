//! Ranges of decimal numbers as terminal expressions.

use super::decimal::{Bound, Decimal, predecessor, successor};

/// Optional fraction.
const FRACTION: &str = r"(\.[0-9]{1,18})?";
/// Decimal digits that every float holds.
const FLOAT_DIGITS: usize = 15;

/// Alternatives that match the numbers from `lower` to `upper`, without exponents; integers only if `whole`.
pub(super) fn between(lower: &Bound, upper: &Bound, whole: bool) -> Vec<String> {
    let (lower, upper) = match whole {
        true => (rounded(lower, true), rounded(upper, false)),
        false => (lower.clone(), upper.clone()),
    };
    if lower.at > upper.at || (lower.at == upper.at && (lower.strict || upper.strict)) {
        return vec![];
    }
    let mut options = Vec::new();
    if lower.at.negative {
        let near = match upper.at.negative {
            true => Bound { at: upper.at.abs(), ..upper },
            // Zero has no sign.
            false if whole => {
                Bound { at: Decimal { whole: "1".to_owned(), ..Decimal::zero() }, strict: false }
            }
            false => Bound { at: Decimal::zero(), strict: true },
        };
        magnitudes("-", &near, &Bound { at: lower.at.abs(), ..lower }, whole, &mut options);
    }
    if !upper.at.negative {
        let near = if lower.at.negative { Bound { at: Decimal::zero(), strict: false } } else { lower };
        magnitudes("", &near, &upper, whole, &mut options);
    }
    options
}

/// The integer next to a bound, inside the range.
pub(super) fn rounded(bound: &Bound, is_lower: bool) -> Bound {
    let Decimal { negative, ref whole, ref fraction } = bound.at;
    let at = |negative: bool, whole: String| {
        let negative = negative && whole != "0";
        Bound { at: Decimal { negative, whole, fraction: String::new() }, strict: false }
    };
    let outward = is_lower != negative;
    if fraction.is_empty() && !bound.strict {
        return bound.clone();
    }
    match (fraction.is_empty(), outward) {
        (_, true) => at(negative, successor(whole)),
        (false, false) => at(negative, whole.clone()),
        (true, false) if whole == "0" => at(!negative, "1".to_owned()),
        (true, false) => at(negative, predecessor(whole)),
    }
}

/// Numbers with `sign` whose absolute value is between two others.
fn magnitudes(sign: &str, near: &Bound, far: &Bound, whole: bool, options: &mut Vec<String>) {
    let (low, high) = (&near.at.whole, &far.at.whole);
    if whole {
        options.push(format!("/{sign}{}/", integers(low, high)));
        return;
    }
    let least = at_least(near);
    let most = at_most(far);
    if low == high {
        options.extend(most.map(|most| format!("(/{sign}{low}{least}/ & /{sign}{low}{most}/)")));
        return;
    }
    let (next, last) = (successor(low), predecessor(high));
    // The fraction below an excluded integer ends before it would be rounded to that integer.
    let below = most.is_none().then(|| format!(r"(\.[0-9]{{1,{}}})?", exact_decimals(high)));
    options.push(match &below {
        Some(below) if *low == last => format!("(/{sign}{low}{least}/ & /{sign}{low}{below}/)"),
        _ => format!("/{sign}{low}{least}/"),
    });
    if let Some(below) = below.filter(|_| is_at_most(&next, &last)) {
        options.push(format!("/{sign}{last}{below}/"));
        if next != last {
            options.push(format!("/{sign}{}{FRACTION}/", integers(&next, &predecessor(&last))));
        }
    } else if is_at_most(&next, &last) {
        options.push(format!("/{sign}{}{FRACTION}/", integers(&next, &last)));
    }
    options.extend(most.map(|most| format!("/{sign}{high}{most}/")));
}

/// Number of decimals up to which numbers beside an integer of these digits are read as other floats than it.
fn exact_decimals(whole: &str) -> usize {
    FLOAT_DIGITS.saturating_sub(whole.len()).max(1)
}

fn is_at_most(low: &str, high: &str) -> bool {
    (low.len(), low) <= (high.len(), high)
}

/// Integers from `low` to `high`, by number of digits.
fn integers(low: &str, high: &str) -> String {
    let mut options = Vec::new();
    for digits in low.len()..=high.len() {
        let first = if digits == low.len() { low.to_owned() } else { format!("1{}", "0".repeat(digits - 1)) };
        let last = if digits == high.len() { high.to_owned() } else { "9".repeat(digits) };
        options.push(same_length(&first, &last));
    }
    format!("({})", options.join("|"))
}

fn same_length(low: &str, high: &str) -> String {
    let (Some(first), Some(last)) = (low.bytes().next(), high.bytes().next()) else { return String::new() };
    let (low_rest, high_rest) = (&low[1..], &high[1..]);
    if first == last {
        return format!("{}{}", char::from(first), same_length(low_rest, high_rest));
    }
    let (from_start, to_end) = (low_rest.bytes().all(|b| b == b'0'), high_rest.bytes().all(|b| b == b'9'));
    let mut options = Vec::new();
    if !from_start {
        let nines = "9".repeat(low_rest.len());
        options.push(format!("{}{}", char::from(first), same_length(low_rest, &nines)));
    }
    let inner = (first + u8::from(!from_start), last - u8::from(!to_end));
    if inner.0 <= inner.1 {
        options.push(format!("{}[0-9]{{{}}}", digits(inner.0, inner.1), low_rest.len()));
    }
    if !to_end {
        let zeros = "0".repeat(high_rest.len());
        options.push(format!("{}{}", char::from(last), same_length(&zeros, high_rest)));
    }
    format!("({})", options.join("|"))
}

fn digits(first: u8, last: u8) -> String {
    if first == last {
        char::from(first).to_string()
    } else {
        format!("[{}-{}]", char::from(first), char::from(last))
    }
}

/// Suffix after the integer digits of `bound` for numbers of at least it.
fn at_least(bound: &Bound) -> String {
    let (fraction, strict) = (&*bound.at.fraction, bound.strict);
    let decimals = exact_decimals(&bound.at.whole).saturating_sub(fraction.len()).max(1);
    let positive: Vec<String> =
        (0..decimals).map(|zeros| format!("0{{{zeros}}}[1-9][0-9]{{0,{}}}", decimals - 1 - zeros)).collect();
    let positive = format!("({})", positive.join("|"));
    match (fraction, strict) {
        ("", false) => return FRACTION.to_owned(),
        ("", true) => return format!(r"\.{positive}"),
        _ => {}
    }
    let mut options: Vec<String> = fraction
        .bytes()
        .enumerate()
        .filter(|(_, digit)| *digit < b'9')
        .map(|(at, digit)| format!("{}{}[0-9]{{0,17}}", &fraction[..at], digits(digit + 1, b'9')))
        .collect();
    options.push(format!("{fraction}{}", if strict { &*positive } else { "[0-9]{0,17}" }));
    format!(r"\.({})", options.join("|"))
}

/// Suffix after the integer digits of `bound` for numbers of at most it; `None` if none is possible.
fn at_most(bound: &Bound) -> Option<String> {
    let (fraction, strict) = (&*bound.at.fraction, bound.strict);
    let decimals = if strict { exact_decimals(&bound.at.whole).max(fraction.len()) } else { 18 };
    match (fraction, strict) {
        ("", true) => return None,
        ("", false) => return Some(r"(\.0{1,18})?".to_owned()),
        _ => {}
    }
    let mut options: Vec<String> = fraction
        .bytes()
        .enumerate()
        .filter(|(_, digit)| *digit > b'0')
        .map(|(at, digit)| {
            let more = decimals.saturating_sub(at + 1);
            format!("{}{}[0-9]{{0,{more}}}", &fraction[..at], digits(b'0', digit - 1))
        })
        .collect();
    options.extend((1..fraction.len()).map(|at| fraction[..at].to_owned()));
    if !strict {
        options.push(format!("{fraction}0{{0,17}}"));
    }
    Some(format!(r"(\.({}))?", options.join("|")))
}
