//! Problems of GGUF files.

use super::GgufValueType;

/// Problem with a GGUF file or one of its keys.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufProblem {
    /// The magic bytes differ.
    #[error("it begins with {magic:02x?}, expected \"GGUF\"")]
    Magic {
        /// The bytes.
        magic: [u8; 4],
    },
    /// An unsupported version.
    #[error("its version is {version}, supported: 2, 3")]
    Version {
        /// The version.
        version: u32,
    },
    /// The file is big endian.
    #[error("it is big endian, supported: little endian")]
    BigEndian,
    /// The file is truncated.
    #[error("the {what} at byte {at} needs {needed} bytes, the file has {left} more")]
    Truncated {
        /// Item being read.
        what: &'static str,
        /// Offset of its start.
        at: usize,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes remaining.
        left: usize,
    },
    /// A count that exceeds the remaining bytes or the limit.
    #[error("it claims {got} {what}, at most {limit} are possible")]
    TooMany {
        /// Counted item.
        what: &'static str,
        /// The number in the file.
        got: u64,
        /// Maximum possible here.
        limit: u64,
    },
    /// A name, key or string that is not UTF-8.
    #[error("the {what} at byte {at} is not UTF-8")]
    NotUtf8 {
        /// Kind of string.
        what: &'static str,
        /// Offset of its start.
        at: usize,
    },
    /// An id that is not a value type.
    #[error("the value of {key} has the unknown type {id}")]
    UnknownValueType {
        /// The key.
        key: String,
        /// The id.
        id: u32,
    },
    /// Arrays nested deeper than the limit.
    #[error("the arrays of {key} are nested more than {limit} deep")]
    TooDeep {
        /// The key.
        key: String,
        /// Maximum depth.
        limit: usize,
    },
    /// A duplicate key or tensor.
    #[error("{what} {name} is described twice")]
    Repeated {
        /// `key` or `tensor`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A required key is missing.
    #[error("it has no key {key}")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A setting that is not implemented.
    #[error("{name} is {value}, which this architecture is not implemented with")]
    Unused {
        /// The key, or the tensor.
        name: String,
        /// Its value.
        value: String,
    },
    /// A value of another type than the key's.
    #[error("{key} is {got}, expected {expected}")]
    KeyType {
        /// The key.
        key: String,
        /// The expected type.
        expected: &'static str,
        /// The type in the file.
        got: GgufValueType,
    },
    /// An id that is not a tensor type.
    #[error("tensor {tensor} has the unknown type {id}")]
    UnknownTensorType {
        /// The tensor.
        tensor: String,
        /// The id.
        id: u32,
    },
    /// An invalid shape: too many dimensions, an empty one, too many elements to count, or rows that are not
    /// whole blocks.
    #[error("tensor {tensor} has shape {shape:?}, expected {expected}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The shape, outermost dimension first.
        shape: Vec<u64>,
        /// Description of the valid shapes.
        expected: String,
    },
    /// A tensor whose offset is not a multiple of the alignment.
    #[error("tensor {tensor} has offset {offset}, expected a multiple of {alignment}")]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Its offset from the first tensor.
        offset: u64,
        /// The file's alignment.
        alignment: usize,
    },
    /// A tensor that ends beyond the end of the file.
    #[error("tensor {tensor} has {bytes} bytes at offset {offset}, the file has {left} for tensors")]
    OutsideFile {
        /// The tensor.
        tensor: String,
        /// Its offset from the first tensor.
        offset: u64,
        /// Its size in bytes.
        bytes: usize,
        /// Bytes of the file after its header.
        left: usize,
    },
    /// Two tensors that overlap.
    #[error("tensors {first} and {second} share bytes")]
    Overlap {
        /// The first one.
        first: String,
        /// The other.
        second: String,
    },
    /// Shards that do not belong together, or an incomplete set.
    #[error("it is not part of the model: {reason}")]
    Split {
        /// The inconsistency.
        reason: String,
    },
}
