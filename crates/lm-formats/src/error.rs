//! Errors of this crate: facts about files, their keys and their tensors.

use crate::GgufProblem;

/// Result with this crate's [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of reading or writing a model's files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A required file of a model is missing.
    #[error("{location} has no {file}")]
    MissingFile {
        /// The model folder.
        location: String,
        /// Name of the file inside it.
        file: String,
    },
    /// A file exists but cannot be read.
    #[error("{file} cannot be read")]
    Io {
        /// The file.
        file: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file is not the expected JSON.
    #[error("{file} is not valid")]
    Json {
        /// The file.
        file: String,
        /// Location and cause.
        #[source]
        source: serde_json::Error,
    },
    /// A text file is larger than the limit.
    #[error("{file} has {bytes} bytes, at most {limit} are read")]
    FileTooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: usize,
        /// Maximum size that is read.
        limit: usize,
    },
    /// A key holds a value that this crate does not implement.
    #[error("{file}: `{key}` is {value}, supported: {known}")]
    UnsupportedValue {
        /// The file.
        file: String,
        /// The key, with dots between levels.
        key: String,
        /// The value as written.
        value: String,
        /// The values that are implemented.
        known: String,
    },
    /// A key holds an invalid value.
    #[error("{file}: `{key}` is {value}, expected {expected}")]
    InvalidValue {
        /// The file.
        file: String,
        /// The key, with dots between levels.
        key: String,
        /// The value as written.
        value: String,
        /// Description of the valid values.
        expected: String,
    },
    /// A safetensors file with an unreadable header, or one whose header and length disagree.
    #[error("{file} is not a whole safetensors file: {reason}")]
    TensorFile {
        /// The file.
        file: String,
        /// The inconsistency.
        reason: String,
    },
    /// A GGUF file that cannot be read, or lacks a required key.
    #[error("{file} is not a GGUF file that can be used")]
    Gguf {
        /// The file.
        file: String,
        /// The problem with the file.
        #[source]
        problem: GgufProblem,
    },
    /// A required tensor is missing.
    #[error("{location} has no tensor {tensor}")]
    MissingTensor {
        /// The model folder.
        location: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor whose shape differs from the one that the config implies.
    #[error("{file}: tensor {tensor} has shape {got:?}, expected {expected:?}")]
    TensorShape {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The shape that the config implies.
        expected: Vec<usize>,
        /// The shape in the file.
        got: Vec<usize>,
    },
    /// A tensor of a type that cannot be loaded.
    #[error("{file}: tensor {tensor} is stored as {got}, supported: {supported}")]
    TensorDtype {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The type in the file.
        got: String,
        /// The types that can be loaded.
        supported: String,
    },
    /// A file cannot be mapped, or is shorter than when it was mapped.
    #[error(transparent)]
    Mapping(#[from] lm_kernels::Error),
}
