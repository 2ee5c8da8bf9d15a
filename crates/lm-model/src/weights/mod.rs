//! Weights: where they stand in the files, what they are called, and how they come to the device.

mod blocks;
mod checkpoint;
mod loader;
mod names;
mod pack;
mod safetensors;

pub(crate) use blocks::{Blocks, describe, read_description};
pub(crate) use checkpoint::Checkpoint;
pub use checkpoint::TensorInfo;
pub(crate) use loader::{Storage, WeightLoader};
pub(crate) use names::{LayerParam, Param, Piece, hugging_face_name};
pub(crate) use pack::pack_dense;
