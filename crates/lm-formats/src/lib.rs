#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod directory;
mod error;
mod file_bytes;
pub mod file_names;
mod files;
mod gguf;
mod python_floats;
mod safetensors;

pub use ::safetensors::Dtype as SafetensorsType;
pub use directory::{Directory, InMemory};
pub use error::{Error, Result};
pub use file_bytes::FileBytes;
pub use files::{
    MAX_TABLE_BYTES, ModelFiles, check_size, is_plain_name, parse_json, parse_json_up_to, parse_optional,
    read_required,
};
pub use gguf::{
    GgufEntries, GgufEntry, GgufFile, GgufHeader, GgufMetadata, GgufNewTensor, GgufProblem, GgufShard,
    GgufStrings, GgufTensor, GgufTensorType, GgufValue, GgufValueType, is_later_shard,
};
pub use lm_kernels::MappedFile;
pub use safetensors::{SafetensorsTensor, safetensors_tensors};
