//! Common code of the benchmarks: groups that hold the machine's limits beside the cases, layouts and random
//! weights.

#![forbid(unsafe_code)]

mod group;
mod weights;

pub use group::{Amount, COLD, Group, criterion};
pub use weights::{check_product, noise, random_weight};
