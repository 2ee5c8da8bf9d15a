//! Preprocessing of pictures, one file a model family.

mod gemma3;
mod gemma4;
mod lfm2_vl;
mod qwen_vl;
mod smol_vlm;

pub use gemma3::Gemma3;
pub use gemma4::Gemma4;
pub use lfm2_vl::Lfm2Vl;
pub use qwen_vl::QwenVl;
pub use smol_vlm::SmolVlm;
