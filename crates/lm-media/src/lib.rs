#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod beginnings;
mod bmp;
mod contents;
mod decode;
mod error;
pub mod families;
mod gif;
mod guard;
mod jpeg;
mod limits;
mod mel;
mod orientation;
mod patches;
mod picture;
mod png;
mod resample;
mod rgb;
mod settings;
mod sinc;
mod size;
mod sound;
mod tiles;
mod wav;
mod webp;

pub use decode::picture_size;
pub use error::{Error, Result};
pub use limits::DecodeLimits;
pub use mel::{MelLog, MelScale, MelSpectrogram, SoundFrames, Spectrum};
pub use patches::{Normalization, PatchOrder, Patches};
pub use picture::Picture;
pub use resample::Filter;
pub use size::PictureSize;
pub use sound::{SAMPLE_RATE, Sound, SoundLimits, sound_length};
pub use tiles::TileGrid;
