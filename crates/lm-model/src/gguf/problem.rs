//! What can be wrong with a GGUF file.

use super::GgufValueType;

/// What is wrong with a GGUF file, or with one of its keys.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufProblem {
    /// The first four bytes are others.
    #[error("it begins with {magic:02x?}, expected \"GGUF\"")]
    Magic {
        /// The bytes.
        magic: [u8; 4],
    },
    /// A version that is not read.
    #[error("its version is {version}, supported: 2, 3")]
    Version {
        /// The version.
        version: u32,
    },
    /// The numbers stand in the other byte order.
    #[error("it is big endian, supported: little endian")]
    BigEndian,
    /// The file ends inside something.
    #[error("the {what} at byte {at} needs {needed} bytes, the file has {left} more")]
    Truncated {
        /// What is being read.
        what: &'static str,
        /// Where it starts.
        at: usize,
        /// Bytes that it should have.
        needed: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// More of something than the file has room for, or than is ever read.
    #[error("it claims {got} {what}, at most {limit} are possible")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// The number in the file.
        got: u64,
        /// The most that is possible here.
        limit: u64,
    },
    /// A name, a key or a text that is not UTF-8.
    #[error("the {what} at byte {at} is not UTF-8")]
    NotUtf8 {
        /// What it is.
        what: &'static str,
        /// Where it starts.
        at: usize,
    },
    /// A number that stands for no type of values.
    #[error("the value of {key} has the unknown type {id}")]
    UnknownValueType {
        /// The key.
        key: String,
        /// The number.
        id: u32,
    },
    /// Arrays inside arrays inside arrays, further than is read.
    #[error("the arrays of {key} are nested more than {limit} deep")]
    TooDeep {
        /// The key.
        key: String,
        /// The depth that is read.
        limit: usize,
    },
    /// A key or a tensor that is there twice.
    #[error("{what} {name} is described twice")]
    Repeated {
        /// `key` or `tensor`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A key that is needed is absent.
    #[error("it has no key {key}")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A setting that nothing here takes into account.
    #[error("{name} is {value}, which this architecture is not implemented with")]
    Unused {
        /// The key, or the tensor.
        name: String,
        /// Its value.
        value: String,
    },
    /// A value of another type than its key has.
    #[error("{key} is {got}, expected {expected}")]
    KeyType {
        /// The key.
        key: String,
        /// The type that is read there.
        expected: &'static str,
        /// The type in the file.
        got: GgufValueType,
    },
    /// A number that stands for no type of tensor elements.
    #[error("tensor {tensor} has the unknown type {id}")]
    UnknownTensorType {
        /// The tensor.
        tensor: String,
        /// The number.
        id: u32,
    },
    /// A shape that no tensor can have: too many dimensions, an empty one, more elements than can be counted, or rows that are
    /// not whole blocks.
    #[error("tensor {tensor} has shape {shape:?}, expected {expected}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The shape, longest-stepping dimension first.
        shape: Vec<u64>,
        /// What would be valid.
        expected: String,
    },
    /// A tensor that does not begin at a multiple of the alignment.
    #[error("tensor {tensor} has offset {offset}, expected a multiple of {alignment}")]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Where it begins, counted from the first tensor.
        offset: u64,
        /// The file's alignment.
        alignment: usize,
    },
    /// A tensor that ends behind the file's end.
    #[error("tensor {tensor} has {bytes} bytes at offset {offset}, the file has {left} for tensors")]
    OutsideFile {
        /// The tensor.
        tensor: String,
        /// Where it begins, counted from the first tensor.
        offset: u64,
        /// Its length.
        bytes: usize,
        /// The bytes of the file after its description.
        left: usize,
    },
    /// Two tensors that share bytes.
    #[error("tensors {first} and {second} share bytes")]
    Overlap {
        /// The one that begins first.
        first: String,
        /// The other.
        second: String,
    },
    /// Parts of one model that do not belong together, or some of them only.
    #[error("it is no part of the model: {reason}")]
    Split {
        /// What does not fit.
        reason: String,
    },
}
