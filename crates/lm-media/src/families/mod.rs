//! Preprocessing of pictures, one file a model family.

mod gemma3;
mod gemma4;
mod qwen_vl;

pub use gemma3::Gemma3;
pub use gemma4::Gemma4;
pub use qwen_vl::QwenVl;

/// Python's `round`: halves go to the even number.
fn round_half_even(value: f64) -> f64 {
    value.round_ties_even()
}
