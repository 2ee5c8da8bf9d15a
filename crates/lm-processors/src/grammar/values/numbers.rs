//! Numbers, which every syntax writes as JSON does.

mod decimal;
mod range;

use lm_template::Value;
use serde_json::Number;

use super::super::lark::{literal, one_of};
use super::{Object, Values};
use decimal::{Bound, Decimal};

/// Numbers that overflow no parser.
const NUMBER: &str = r"/-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?/";
/// Digits before the decimal point of a number that is bounded on the other side only.
const DIGITS: usize = 15;
/// Default upper limit of integers: 64 bits with either sign.
const LARGEST_INTEGER: &str = "9223372036854775807";
/// Exact integer range of a value: `i64::MIN` to `u64::MAX`. Integers outside it would be read as floats.
const INTEGERS: [(bool, &str); 2] = [(true, "9223372036854775808"), (false, "18446744073709551615")];
/// Maximum digits of bounds for which a range is written out.
const MAX_DIGITS: usize = 40;
/// The largest `multipleOf`, without its point, that the grammar library computes with.
const MAX_DIVISOR: u64 = 1_000;
/// Maximum decimals of it, and of the bounds beside it: the library multiplies the divisor by 10 to this
/// power in 32 bits.
const DECIMALS: usize = 6;
/// Maximum number of multiples that are listed instead. (Divisors from 2^53 on have fewer in 64 bits.)
const MAX_LISTED: i128 = 4_096;

impl Values<'_> {
    /// Builds an expression for numbers of the type `name` within the bounds of `schema`; `None` if there are
    /// none.
    pub(super) fn number(&mut self, name: &str, schema: &Object, path: &str) -> Option<String> {
        let whole = name == "integer";
        let exact_bounds = [
            self.bound(schema, ["minimum", "exclusiveMinimum"], path),
            self.bound(schema, ["maximum", "exclusiveMaximum"], path),
        ];
        let [lower, upper] = exact_bounds.clone();
        let given = [lower.map(|bound| bound.tightened(true)), upper.map(|bound| bound.tightened(false))];
        if !whole && given == [None, None] && !schema.contains_key("multipleOf") {
            return Some(NUMBER.to_owned());
        }
        if let Some(divisor) = schema.get("multipleOf").and_then(Value::as_number) {
            let step = Decimal::of(divisor).as_ref().and_then(integer_step).filter(|_| whole);
            let integer = step.and_then(|step| u64::try_from(step).ok()).map(Number::from);
            let divisor = integer.as_ref().unwrap_or(divisor);
            let [lower, upper] = &closed(given.clone(), &"9".repeat(DIGITS));
            if is_computed(divisor, lower, upper) {
                let options = signed_multiples(name, divisor, lower, upper);
                return (!options.is_empty()).then(|| one_of(&options));
            }
            let range = exact(closed(given.clone(), LARGEST_INTEGER));
            if let Some(all) = step.and_then(|step| listed_multiples(step, &range)) {
                return (!all.is_empty()).then(|| self.lark.alternatives(all));
            }
            self.leave_unenforced(path, "multipleOf");
        }
        let options = match whole {
            true => {
                let [lower, upper] = exact(closed(given, LARGEST_INTEGER));
                range::between(&lower, &upper, true)
            }
            false => {
                let [lower, upper] = closed(given, &"9".repeat(DIGITS));
                let is_long = |bound: &Bound| bound.at.whole.len() > MAX_DIGITS;
                let beyond = is_long(&lower) && !lower.at.negative || is_long(&upper) && upper.at.negative;
                if beyond { vec![] } else { range::between(&lower, &upper, false) }
            }
        };
        if options.is_empty() && !whole && is_nonempty(&exact_bounds) {
            return self.narrow_range(path);
        }
        (!options.is_empty()).then(|| self.lark.terminal(options.join(" | ")))
    }

    /// Records a range of numbers that all have too many decimals to be written; `None` unless they count as
    /// values.
    fn narrow_range(&mut self, path: &str) -> Option<String> {
        self.narrow_range.as_mut()?.get_or_insert_with(|| path.to_owned());
        Some(NUMBER.to_owned())
    }

    /// The tighter of two bounds on one side; a bound too large for a grammar is omitted.
    fn bound(&mut self, schema: &Object, keys: [&str; 2], path: &str) -> Option<Bound> {
        let is_lower = keys[0] == "minimum";
        let mut tightest: Option<Bound> = None;
        for (key, strict) in keys.into_iter().zip([false, true]) {
            let Some(number) = schema.get(key).and_then(Value::as_number) else { continue };
            let Some(bound) = Bound::of(number, strict) else {
                self.leave_unenforced(path, key);
                continue;
            };
            if tightest.as_ref().is_none_or(|known| bound.is_tighter(known, is_lower)) {
                tightest = Some(bound);
            }
        }
        tightest
    }
}

/// The part of an integer range that values represent exactly.
fn exact([lower, upper]: [Bound; 2]) -> [Bound; 2] {
    let [least, most] = INTEGERS.map(|(negative, digits)| {
        let at = Decimal { negative, whole: digits.to_owned(), fraction: String::new() };
        Bound { at, strict: false }
    });
    let lower = if least.is_tighter(&lower, true) { least } else { lower };
    let upper = if most.is_tighter(&upper, false) { most } else { upper };
    [lower, upper]
}

/// Closes a range on both sides: a side without a bound, or with a bound of too many digits, gets `default`,
/// or a number of more digits if the other end is at least as large.
fn closed([lower, upper]: [Option<Bound>; 2], default: &str) -> [Bound; 2] {
    let outer = |own: &Option<Bound>, other: &Option<Bound>, negative: bool| {
        let far = |bound: &Bound| bound.at.whole.len() > MAX_DIGITS && bound.at.negative == negative;
        if let Some(own) = own.as_ref().filter(|own| !far(own)) {
            return own.clone();
        }
        let beyond = other
            .as_ref()
            .filter(|other| other.at.negative == negative)
            .map_or(0, |other| other.at.whole.len());
        let digits = if beyond < default.len() { default.to_owned() } else { "9".repeat(beyond + 1) };
        Bound { at: Decimal { negative, whole: digits, fraction: String::new() }, strict: false }
    };
    let (low, high) = (outer(&lower, &upper, true), outer(&upper, &lower, false));
    [low, high]
}

/// Returns true if the range contains a number, with any number of decimals.
fn is_nonempty([lower, upper]: &[Option<Bound>; 2]) -> bool {
    let (Some(lower), Some(upper)) = (lower, upper) else { return true };
    lower.at < upper.at || lower.at == upper.at && !lower.strict && !upper.strict
}

/// Returns true if the grammar library supports multiples of `divisor` in a range: its automaton has a state
/// for each remainder.
fn is_computed(divisor: &Number, lower: &Bound, upper: &Bound) -> bool {
    let Some(divisor) = Decimal::of(divisor) else { return false };
    let coefficient = format!("{}{}", divisor.whole, divisor.fraction).parse::<u64>();
    let is_small = coefficient.is_ok_and(|coefficient| (1..=MAX_DIVISOR).contains(&coefficient));
    let numbers = [&divisor, &lower.at, &upper.at];
    is_small
        && !divisor.negative
        && numbers.iter().all(|at| at.whole.len() <= DIGITS && at.fraction.len() <= DECIMALS)
}

/// Lists the integers of a range that are multiples of `step`; `None` if they are too many.
fn listed_multiples(step: i128, [lower, upper]: &[Bound; 2]) -> Option<Vec<String>> {
    let whole = |bound: &Bound, is_lower: bool| range::rounded(bound, is_lower).at.scaled(0);
    let (low, high) = (whole(lower, true)?, whole(upper, false)?);
    let first = low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0);
    let last = high.div_euclid(step);
    (last - first < MAX_LISTED)
        .then(|| (first..=last).map(|times| literal(&(times * step).to_string())).collect())
}

/// The smallest integer that is a multiple of `divisor`; the largest of 128 bits if it is larger.
fn integer_step(divisor: &Decimal) -> Option<i128> {
    let step = divisor.scaled(divisor.fraction.len());
    let unit = u32::try_from(divisor.fraction.len()).ok().and_then(|places| 10_i128.checked_pow(places));
    match (step, unit) {
        (Some(step), Some(unit)) => Some(step / greatest_common_divisor(step, unit)),
        _ => divisor.fraction.is_empty().then_some(i128::MAX),
    }
}

fn greatest_common_divisor(one: i128, other: i128) -> i128 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// Builds multiples of `divisor` as alternatives for negative numbers and others: the grammar library writes
/// a range across zero with a negative zero.
fn signed_multiples(name: &str, divisor: &Number, lower: &Bound, upper: &Bound) -> Vec<String> {
    let zero = |strict| Bound { at: Decimal::zero(), strict };
    let ranges = match lower.at.negative && !upper.at.negative {
        true => vec![(lower.clone(), zero(true)), (zero(false), upper.clone())],
        false => vec![(lower.clone(), upper.clone())],
    };
    ranges.iter().filter_map(|(lower, upper)| multiples(name, divisor, lower, upper)).collect()
}

/// Builds multiples of `divisor` with the grammar library; `None` if the range contains none.
fn multiples(name: &str, divisor: &Number, lower: &Bound, upper: &Bound) -> Option<String> {
    let divisor_of = Decimal::of(divisor)?;
    let places = [&lower.at, &upper.at, &divisor_of].iter().map(|at| at.fraction.len()).max().unwrap_or(0);
    let scaled = |at: &Decimal| at.scaled(places);
    let (low, high, step) = (scaled(&lower.at)?, scaled(&upper.at)?, scaled(&divisor_of)?);
    let (low, high) = (low + i128::from(lower.strict), high - i128::from(upper.strict));
    let first = low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0);
    if first * step > high {
        return None;
    }
    let [minimum, maximum] = [(lower, "inimum"), (upper, "aximum")].map(|(bound, key)| {
        let key = match (bound.strict, key) {
            (false, key) => format!("m{key}"),
            (true, key) => format!("exclusiveM{key}"),
        };
        format!("\"{key}\": {}", bound.at)
    });
    // Blanks before a number are of the syntax around it.
    let options = r#""x-guidance": {"whitespace_flexible": false}"#;
    Some(format!(
        "%json {{\"type\": \"{name}\", \"multipleOf\": {divisor}, {minimum}, {maximum}, {options}}}"
    ))
}
