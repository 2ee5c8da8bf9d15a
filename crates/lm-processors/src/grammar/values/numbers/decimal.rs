//! Decimal numbers of any length, as in the bounds of a schema.

use std::cmp::Ordering;

use serde_json::Number;

/// Maximum fraction digits; a bound with more is tightened to this many.
const MAX_FRACTION: usize = 30;
/// Maximum exponent that is written out.
const MAX_EXPONENT: i64 = 400;

/// A decimal number. Zero has no sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    /// Digits before the decimal point, without leading zeros; `0` if there are none.
    pub(super) whole: String,
    /// Digits after the decimal point, without trailing zeros.
    pub(super) fraction: String,
}

/// Bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) at: Decimal,
    /// True if the bound itself is excluded.
    pub(super) strict: bool,
}

impl Decimal {
    /// Converts a JSON number; `None` if its exponent is too large.
    pub(super) fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (negative, text) = text.strip_prefix('-').map_or((false, &*text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().ok().filter(|exponent: &i64| exponent.abs() <= MAX_EXPONENT)?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let point = whole.len() as i64 + exponent;
        let zeros = |count: i64| "0".repeat(count.max(0) as usize);
        let digits = format!("{}{digits}{}", zeros(1 - point), zeros(point - digits.len() as i64));
        let (whole, fraction) = digits.split_at(point.max(1) as usize);
        Some(Self::new(negative, whole, fraction))
    }

    fn new(negative: bool, whole: &str, fraction: &str) -> Self {
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let fraction = fraction.trim_end_matches('0');
        let negative = negative && (whole != "0" || !fraction.is_empty());
        Self { negative, whole: whole.to_owned(), fraction: fraction.to_owned() }
    }

    pub(super) fn zero() -> Self {
        Self::new(false, "0", "")
    }

    /// Absolute value.
    pub(super) fn abs(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// The next number beyond, away from zero, that has at most this number of decimals.
    pub(super) fn next(&self, decimals: usize) -> Self {
        let fraction = format!("{:0<decimals$}", self.fraction);
        let digits = successor(&format!("{}{}", self.whole, &fraction[..decimals]));
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        Self::new(self.negative, whole, fraction)
    }

    /// The number times ten to the power of `places`; `None` unless that is an integer of at most 38 digits.
    pub(super) fn scaled(&self, places: usize) -> Option<i128> {
        let zeros = places.checked_sub(self.fraction.len())?;
        let digits: i128 = format!("{}{}{}", self.whole, self.fraction, "0".repeat(zeros)).parse().ok()?;
        Some(if self.negative { -digits } else { digits })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitude = |own: &Self, other: &Self| {
            let whole = own.whole.len().cmp(&other.whole.len()).then_with(|| own.whole.cmp(&other.whole));
            whole.then_with(|| own.fraction.cmp(&other.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => magnitude(self, other),
            (true, true) => magnitude(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, point) =
            (if self.negative { "-" } else { "" }, if self.fraction.is_empty() { "" } else { "." });
        write!(f, "{sign}{}{point}{}", self.whole, self.fraction)
    }
}

impl Bound {
    /// Converts `number` to a bound; `None` if it is too large to be written out.
    pub(super) fn of(number: &Number, strict: bool) -> Option<Self> {
        Some(Self { at: Decimal::of(number)?, strict })
    }

    /// The bound with at most [`MAX_FRACTION`] decimals, moved into the range.
    pub(super) fn tightened(self, is_lower: bool) -> Self {
        if self.at.fraction.len() <= MAX_FRACTION {
            return self;
        }
        // Toward zero for one end, away from it for the other.
        let at = if is_lower == self.at.negative {
            Decimal::new(self.at.negative, &self.at.whole, &self.at.fraction[..MAX_FRACTION])
        } else {
            self.at.next(MAX_FRACTION)
        };
        Self { at, strict: false }
    }

    pub(super) fn is_tighter(&self, other: &Self, is_lower: bool) -> bool {
        match self.at.cmp(&other.at) {
            Ordering::Equal => self.strict,
            order => (order == Ordering::Greater) == is_lower,
        }
    }
}

/// `digits` plus one, of the same length or longer.
pub(super) fn successor(digits: &str) -> String {
    let kept = digits.trim_end_matches('9');
    let zeros = "0".repeat(digits.len() - kept.len());
    match kept.as_bytes().last() {
        None => format!("1{zeros}"),
        Some(last) => format!("{}{}{zeros}", &kept[..kept.len() - 1], char::from(last + 1)),
    }
}

/// `digits` (not all zeros) minus one, without leading zeros.
pub(super) fn predecessor(digits: &str) -> String {
    let kept = digits.trim_end_matches('0');
    let nines = "9".repeat(digits.len() - kept.len());
    let Some(last) = kept.as_bytes().last() else { return "0".to_owned() };
    let text = format!("{}{}{nines}", &kept[..kept.len() - 1], char::from(last - 1));
    let text = text.trim_start_matches('0');
    if text.is_empty() { "0".to_owned() } else { text.to_owned() }
}
