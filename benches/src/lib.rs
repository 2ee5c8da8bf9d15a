//! What the benchmarks share: timing, and a line per case with the achieved rate next to the machine's limit.

#![forbid(unsafe_code)]

mod measure;

pub use measure::{Limit, median_time};
