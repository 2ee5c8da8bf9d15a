//! Preprocessing of pictures, one file a model family.

mod gemma3;
mod gemma4;
mod qwen_vl;

pub use gemma3::Gemma3;
pub use gemma4::Gemma4;
pub use qwen_vl::QwenVl;
