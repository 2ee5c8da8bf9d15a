//! What the benchmarks share: timing, a line per case with the achieved rate next to the machine's limit, and weights.

#![forbid(unsafe_code)]

mod measure;
mod weights;

pub use measure::{Limit, median_time};
pub use weights::{noise, random_weight};
