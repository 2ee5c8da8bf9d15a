//! Interface of `libfuzzer-sys`: the macro that defines a target, its inputs and its results.

/// Result of a target: whether libFuzzer keeps the input in its corpus. Ignored here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corpus {
    /// The input may be kept.
    Keep,
    /// The input must not be kept.
    Reject,
}

impl From<()> for Corpus {
    fn from((): ()) -> Self {
        Self::Keep
    }
}

/// Defines `run`, which passes bytes to the target. `init` is ignored: [`replay`](crate::replay()) sets a
/// panic hook of the same effect.
#[macro_export]
macro_rules! fuzz_target {
    (init: $init:expr, $($target:tt)*) => {
        $crate::fuzz_target!($($target)*);
    };
    (|$input:ident: $type:ty| $body:block) => {
        $crate::fuzz_target!(|$input: $type| -> () $body);
    };
    (|$input:ident: $type:ty| -> $result:ty $body:block) => {
        /// Runs the target on bytes; text that is not UTF-8 is rejected.
        pub fn run(bytes: &[u8]) -> $crate::Corpus {
            fn target($input: $type) -> $result $body
            match <$type as $crate::Input>::of(bytes) {
                Some(input) => target(input).into(),
                None => $crate::Corpus::Reject,
            }
        }
    };
}

/// Types of a target's input.
pub trait Input<'a>: Sized {
    /// Converts these bytes to an input, if they are valid.
    fn of(bytes: &'a [u8]) -> Option<Self>;
}

impl<'a> Input<'a> for &'a [u8] {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        Some(bytes)
    }
}

impl<'a> Input<'a> for &'a str {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok()
    }
}
