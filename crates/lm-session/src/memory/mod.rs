//! Whether a model fits the memory, and which context, cache and quantisation do.

mod available;
mod plan;

pub use available::available_memory;
pub use plan::{MemoryPlan, MemoryRequest, WeightChoice};
