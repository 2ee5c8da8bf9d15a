//! Preprocessing of images and audio, one file per model family.

mod gemma3;
mod gemma4;
mod gemma4_audio;
mod granite_speech;
mod lfm2_vl;
mod qwen_vl;
mod smol_vlm;
mod whisper;

pub use gemma3::Gemma3;
pub use gemma4::Gemma4;
pub use gemma4_audio::Gemma4Audio;
pub use granite_speech::GraniteSpeech;
pub use lfm2_vl::Lfm2Vl;
pub use qwen_vl::QwenVl;
pub use smol_vlm::SmolVlm;
pub use whisper::{LongAudio, Whisper};
