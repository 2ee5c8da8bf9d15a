//! Ranges of decimal numbers as terminal expressions.

use super::decimal::{Bound, Decimal, predecessor, successor};

/// Decimals of numbers beside a bound that is included.
const DECIMALS: usize = 18;
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
    let least = at_least(near, far);
    let most = at_most(far);
    if low == high {
        let both = least.zip(most).filter(|_| contains_number(near, far));
        options.extend(both.map(|(least, most)| format!("(/{sign}{low}{least}/ & /{sign}{low}{most}/)")));
        return;
    }
    let (next, last) = (successor(low), predecessor(high));
    // The fraction below an excluded integer ends before it would be rounded to that integer.
    let below = most.is_none().then(|| format!(r"(\.[0-9]{{1,{}}})?", exact_decimals(&far.at)));
    options.extend(least.and_then(|least| match &below {
        Some(_) if *low == last && !contains_number(near, far) => None,
        Some(below) if *low == last => Some(format!("(/{sign}{low}{least}/ & /{sign}{low}{below}/)")),
        _ => Some(format!("/{sign}{low}{least}/")),
    }));
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

/// Number of decimals up to which numbers beside this one are read as other floats than it.
fn exact_decimals(at: &Decimal) -> usize {
    let zeros = at.fraction.len() - at.fraction.trim_start_matches('0').len();
    match &*at.whole {
        "0" => zeros + FLOAT_DIGITS - 1,
        whole => FLOAT_DIGITS.saturating_sub(whole.len()).max(1),
    }
}

/// Maximum decimals of the numbers that [`at_least`] matches, apart from the bound itself.
fn decimals_above(near: &Bound, far: &Bound) -> usize {
    // Every number beside zero is another float.
    let at = if near.at == Decimal::zero() && far.at.whole == "0" { &far.at } else { &near.at };
    if near.strict { exact_decimals(at) } else { DECIMALS }
}

/// Maximum decimals of the numbers that [`at_most`] matches, apart from the bound itself.
fn decimals_below(far: &Bound) -> usize {
    if far.strict { exact_decimals(&far.at) } else { DECIMALS.max(far.at.fraction.len()) }
}

/// Returns true if both [`at_least`] and [`at_most`] match a number from `near` to `far`, whose integers are
/// the same or in sequence.
fn contains_number(near: &Bound, far: &Bound) -> bool {
    let decimals = decimals_above(near, far).min(decimals_below(far));
    let is_below = |at: &Decimal| *at < far.at || *at == far.at && !far.strict;
    let is_near = !near.strict && is_below(&near.at) && near.at.fraction.len() <= decimals_below(far);
    // The digits after the first one that differs are free.
    let same =
        std::iter::zip(near.at.fraction.bytes(), far.at.fraction.bytes()).take_while(|(a, b)| a == b).count();
    let decimals_at_far = match far.at.fraction.starts_with(&near.at.fraction) {
        true if near.strict => decimals_above(near, far),
        false if near.strict && same >= decimals_above(near, far) => 0,
        _ => same + DECIMALS,
    };
    let is_far = !far.strict && far.at.fraction.len() <= decimals_at_far;
    is_near || is_far || is_below(&near.at.next(decimals))
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

/// Suffix after the integer digits of `near` for numbers of at least it, and at most `far`; `None` if none is
/// possible.
fn at_least(near: &Bound, far: &Bound) -> Option<String> {
    let (fraction, strict) = (&*near.at.fraction, near.strict);
    let limit = if strict { decimals_above(near, far) } else { fraction.len() };
    let decimals = limit.saturating_sub(fraction.len());
    let positive: Vec<String> =
        (0..decimals).map(|zeros| format!("0{{{zeros}}}[1-9][0-9]{{0,{}}}", decimals - 1 - zeros)).collect();
    let positive = format!("({})", positive.join("|"));
    match (fraction, strict) {
        ("", false) => return Some(FRACTION.to_owned()),
        ("", true) => return Some(format!(r"\.{positive}")),
        _ => {}
    }
    let mut options: Vec<String> = fraction
        .bytes()
        .enumerate()
        .take(limit)
        .filter(|(_, digit)| *digit < b'9')
        .map(|(at, digit)| format!("{}{}[0-9]{{0,17}}", &fraction[..at], digits(digit + 1, b'9')))
        .collect();
    match strict {
        false => options.push(format!("{fraction}[0-9]{{0,17}}")),
        true if decimals > 0 => options.push(format!("{fraction}{positive}")),
        true => {}
    }
    (!options.is_empty()).then(|| format!(r"\.({})", options.join("|")))
}

/// Suffix after the integer digits of `bound` for numbers of at most it; `None` if none is possible.
fn at_most(bound: &Bound) -> Option<String> {
    let (fraction, strict) = (&*bound.at.fraction, bound.strict);
    let decimals = decimals_below(bound);
    match (fraction, strict) {
        ("", true) => return None,
        ("", false) => return Some(r"(\.0{1,18})?".to_owned()),
        _ => {}
    }
    let mut options: Vec<String> = fraction
        .bytes()
        .enumerate()
        .take(decimals)
        .filter(|(_, digit)| *digit > b'0')
        .map(|(at, digit)| {
            let more = decimals.saturating_sub(at + 1);
            format!("{}{}[0-9]{{0,{more}}}", &fraction[..at], digits(b'0', digit - 1))
        })
        .collect();
    options.extend((1..fraction.len().min(decimals + 1)).map(|at| fraction[..at].to_owned()));
    if !strict {
        options.push(format!("{fraction}0{{0,17}}"));
    }
    Some(format!(r"(\.({}))?", options.join("|")))
}
