//! Types that `#[arg(range(..))]`, `length`, `pattern`, `items` and `choices` restrict.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};

/// A keyword of a schema and its value.
type Keyword = (String, Value);

/// A number with a range of the type `R`.
#[diagnostic::on_unimplemented(
    message = "this `range` does not fit the type `{Self}`",
    label = "the argument is not a number of the limits' type",
    note = "limits of a float are floats: `range(0.0..=1.0)`",
    note = "for the length of a text or a list write `length(1..=80)`, for the items of a list `items(range(1..=10))`",
    note = "a type of your own has its limits on its definition: `#[schemars(range(min = 1, max = 10))]`"
)]
pub trait Number<R> {
    /// The limits as JSON.
    fn limits(range: &R) -> (Bound<Value>, Bound<Value>);
}

/// A text.
#[diagnostic::on_unimplemented(
    message = "`pattern` applies to texts, not to `{Self}`",
    label = "the argument is not a text",
    note = "for the items of a list write `items(pattern = \"..\")`"
)]
pub trait Text {}

/// A value with a length.
#[diagnostic::on_unimplemented(
    message = "`length` applies to texts, lists and maps, not to `{Self}`",
    label = "the argument is not a text, a list or a map",
    note = "for the value of a number write `range(1..=10)`"
)]
pub trait Length {
    /// Keywords of the minimum and the maximum length.
    const KEYWORDS: [&str; 2];
}

/// A list.
#[diagnostic::on_unimplemented(
    message = "`items` applies to lists, not to `{Self}`",
    label = "the argument is not a list",
    note = "write the options of the argument itself without `items(..)`"
)]
pub trait List {
    /// Type of the items.
    type Item;
}

/// A type with values that can be listed.
#[diagnostic::on_unimplemented(
    message = "`choices` applies to texts and numbers, not to `{Self}`",
    label = "the argument is not a text or a number",
    note = "an enum has its variants as choices: derive `schemars::JsonSchema` and `serde::Deserialize` for it"
)]
pub trait Choose {
    /// Type of a choice as written.
    type Choice: Serialize;
}

/// Keywords of a number's range.
pub(super) fn range<T: Number<R>, R>(range: &R) -> impl Iterator<Item = Keyword> {
    let keyword = |bound, included: &str, excluded: &str| match bound {
        Bound::Included(value) => Some((included.to_owned(), value)),
        Bound::Excluded(value) => Some((excluded.to_owned(), value)),
        Bound::Unbounded => None,
    };
    let (start, end) = T::limits(range);
    let start = keyword(start, "minimum", "exclusiveMinimum");
    let end = keyword(end, "maximum", "exclusiveMaximum");
    start.into_iter().chain(end)
}

/// Keywords of a length's range.
pub(super) fn length<T: Length>(range: &impl RangeBounds<usize>) -> impl Iterator<Item = Keyword> {
    let least = match range.start_bound() {
        Bound::Included(&least) => Some(least),
        Bound::Excluded(&less) => less.checked_add(1),
        Bound::Unbounded => None,
    };
    let most = match range.end_bound() {
        Bound::Included(&most) => Some(most),
        Bound::Excluded(&more) => Some(more.saturating_sub(1)),
        Bound::Unbounded => None,
    };
    let limits = T::KEYWORDS.into_iter().zip([least, most]);
    limits.filter_map(|(keyword, limit)| limit.map(|limit| (keyword.to_owned(), limit.into())))
}

/// One implementation for each kind of range: rustc names the argument's type in errors then, not the range.
macro_rules! number_ranges {
    ($number:ty: $($range:ty),*) => {$(
        impl Number<$range> for $number {
            fn limits(range: &$range) -> (Bound<Value>, Bound<Value>) {
                let json = |limit: &$number| json!(limit);
                (range.start_bound().map(json), range.end_bound().map(json))
            }
        }
    )*};
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        number_ranges!($number: Range<$number>, RangeInclusive<$number>, RangeFrom<$number>, RangeTo<$number>,
            RangeToInclusive<$number>);
        impl Choose for $number {
            type Choice = Self;
        }
    )*};
}
numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

macro_rules! texts {
    ($($text:ty)*) => {$(
        impl Text for $text {}
        impl Length for $text {
            const KEYWORDS: [&str; 2] = ["minLength", "maxLength"];
        }
        impl Choose for $text {
            type Choice = &'static str;
        }
    )*};
}
texts!(String Box<str> std::sync::Arc<str> std::rc::Rc<str> std::borrow::Cow<'static, str> std::path::PathBuf);

macro_rules! lists {
    ($([$($bound:tt)*] $list:ty;)*) => {$(
        impl<$($bound)*> List for $list {
            type Item = T;
        }
        impl<$($bound)*> Length for $list {
            const KEYWORDS: [&str; 2] = ["minItems", "maxItems"];
        }
    )*};
}
lists! {
    [T] Vec<T>;
    [T] VecDeque<T>;
    [T] Box<[T]>;
    [T: Ord] BTreeSet<T>;
    [T: Eq + Hash, S: BuildHasher] HashSet<T, S>;
}

impl<K: Eq + Hash, V, S: BuildHasher> Length for HashMap<K, V, S> {
    const KEYWORDS: [&str; 2] = ["minProperties", "maxProperties"];
}

impl<K: Ord, V> Length for BTreeMap<K, V> {
    const KEYWORDS: [&str; 2] = ["minProperties", "maxProperties"];
}
