#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod audio;
mod bmp;
mod contents;
mod decode;
mod error;
pub mod families;
mod gif;
mod guard;
mod image;
mod jpeg;
mod limits;
mod mel;
mod orientation;
mod patches;
mod png;
mod resample;
mod rgb;
mod settings;
mod signature;
mod sinc;
mod size;
mod tiles;
mod wav;
mod webp;

pub use audio::{Audio, AudioLimits, SAMPLE_RATE, audio_length};
pub use decode::image_size;
pub use error::{Error, Result};
pub use image::Image;
pub use limits::DecodeLimits;
pub use mel::{AudioFrames, MelLog, MelScale, MelSpectrogram, Spectrum};
pub use patches::{Normalization, PatchOrder, Patches};
pub use resample::Filter;
pub use size::ImageSize;
pub use tiles::TileGrid;
