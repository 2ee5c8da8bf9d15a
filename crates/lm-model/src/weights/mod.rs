//! Weights: storage in files, names, and loading to the device.

mod checkpoint;
mod compressed_tensors;
mod fp8_mxfp4_scales;
mod gptq_awq_groups;
mod loader;
mod names;
mod pack;
mod quantization;
mod stored_quants;
mod stored_rows;
mod tensor_location;
mod tensor_type;

pub use checkpoint::TensorInfo;
pub(crate) use checkpoint::{Checkpoint, StoredCoding, StoredTensor};
pub(crate) use gptq_awq_groups::{CodePacking, GroupFormat};
pub(crate) use loader::{Storage, WeightLoader};
pub(crate) use names::{LayerParam, Param, Piece, hugging_face_name};
pub(crate) use pack::pack_dense;
pub(crate) use quantization::Quantization;
pub(crate) use stored_quants::{Blocks, describe};
pub(crate) use stored_rows::{RowOrder, StoredRows, StoredValues};
pub(crate) use tensor_location::{SliceRows, TensorLocation};
pub(crate) use tensor_type::TensorType;
