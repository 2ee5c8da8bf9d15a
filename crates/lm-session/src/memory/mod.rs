//! Memory planning: choice of context, cache and quantisation that fit the memory.

mod available;
mod plan;

pub use available::available_memory;
pub use plan::{MemoryPlan, MemoryRequest, WeightChoice};
