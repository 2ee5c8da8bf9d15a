//! Common code of the benchmarks: timing, a line per case with the achieved rate and the machine's limit, and weights.

#![forbid(unsafe_code)]

mod measure;
mod weights;

pub use measure::{Limit, median_time};
pub use weights::{noise, random_weight};
