//! Weights: storage in files, names, and loading to the device.

mod blocks;
mod checkpoint;
mod compressed_tensors;
mod groups;
mod loader;
mod names;
mod pack;
mod place;
mod quantization;
mod safetensors;
mod scales;
mod stored_rows;
mod tensor_type;

pub(crate) use blocks::{Blocks, describe};
pub use checkpoint::TensorInfo;
pub(crate) use checkpoint::{Checkpoint, StoredCoding, StoredTensor};
pub(crate) use groups::{CodePacking, GroupFormat};
pub(crate) use loader::{Storage, WeightLoader};
pub(crate) use names::{LayerParam, Param, Piece, hugging_face_name};
pub(crate) use pack::pack_dense;
pub(crate) use place::{PieceRows, Place};
pub(crate) use quantization::Quantization;
pub(crate) use stored_rows::{RowOrder, StoredRows, StoredValues};
pub(crate) use tensor_type::TensorType;
