#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod beginnings;
mod bmp;
mod decode;
mod error;
pub mod families;
mod gif;
mod guard;
mod jpeg;
mod mel;
mod orientation;
mod patches;
mod picture;
mod png;
mod resample;
mod rgb;
mod settings;
mod sinc;
mod sound;
mod tiles;
mod wav;
mod webp;

pub use decode::{DecodeLimits, picture_size};
pub use error::{Error, Result};
pub use mel::{MelLog, MelScale, MelSpectrogram, SoundFrames, Spectrum};
pub use patches::{Normalization, PatchOrder, Patches};
pub use picture::{Picture, PictureSize};
pub use resample::Filter;
pub use sound::{SAMPLE_RATE, Sound, SoundLimits, sound_length};
pub use tiles::TileGrid;
