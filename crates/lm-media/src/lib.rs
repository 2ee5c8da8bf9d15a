#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod decode;
mod error;
pub mod families;
mod patches;
mod picture;
mod resample;
mod settings;
mod tiles;

pub use decode::{DecodeLimits, picture_size};
pub use error::{Error, Result};
pub use patches::{Normalization, PatchOrder, Patches};
pub use picture::{Picture, PictureSize};
pub use resample::Filter;
pub use tiles::TileGrid;
