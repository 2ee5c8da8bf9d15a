//! Errors of this crate: facts about files, tensors and batches.

use crate::{GgufProblem, WeightFormat};

/// Result with this crate's [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong when a model is opened, loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that a model needs is not there.
    #[error("{location} has no {file}")]
    MissingFile {
        /// The model folder.
        location: String,
        /// Name of the file inside it.
        file: String,
    },
    /// A file is there and cannot be read.
    #[error("{file} cannot be read")]
    Io {
        /// The file.
        file: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file is not the JSON that is expected there.
    #[error("{file} is not valid")]
    Json {
        /// The file.
        file: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A text file that is too large to be what it should be.
    #[error("{file} has {bytes} bytes, at most {limit} are read")]
    FileTooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: usize,
        /// The most that is read.
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
    /// A key holds a value that makes no sense.
    #[error("{file}: `{key}` is {value}, expected {expected}")]
    InvalidValue {
        /// The file.
        file: String,
        /// The key, with dots between levels.
        key: String,
        /// The value as written.
        value: String,
        /// What would be valid.
        expected: String,
    },
    /// A safetensors file whose header and length do not agree, or whose header is not readable.
    #[error("{file} is not a whole safetensors file: {reason}")]
    TensorFile {
        /// The file.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// A GGUF file that cannot be read, or lacks a key.
    #[error("{file} is not a GGUF file that can be used")]
    Gguf {
        /// The file.
        file: String,
        /// What is wrong with it.
        #[source]
        problem: GgufProblem,
    },
    /// A folder with more than one model in GGUF.
    #[error("{location} has several GGUF models: {}; name one of the files", names.join(", "))]
    SeveralModels {
        /// The folder.
        location: String,
        /// The files, first parts only.
        names: Vec<String>,
    },
    /// Something of a model that a GGUF file of its architecture cannot say: read back, it would be something else.
    #[error("{what} is {value}; a GGUF file of {architecture} cannot say so and would be read as {read}")]
    NoGgufForm {
        /// `general.architecture`.
        architecture: String,
        /// What of the model.
        what: String,
        /// What it is.
        value: String,
        /// What would be read.
        read: String,
    },
    /// The shard index names a file outside the model folder.
    #[error("{file} places tensor {tensor} in {path:?}, expected a file name inside the folder")]
    ShardPath {
        /// The index file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The path as written.
        path: String,
    },
    /// A tensor stands in two files.
    #[error("tensor {tensor} is in both {first} and {second}")]
    DuplicateTensor {
        /// The tensor.
        tensor: String,
        /// One file.
        first: String,
        /// The other file.
        second: String,
    },
    /// A tensor that the architecture needs is absent.
    #[error("{location} has no tensor {tensor}")]
    MissingTensor {
        /// The model folder.
        location: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor that the architecture does not know.
    #[error("{file} has tensor {tensor}, which a {architecture} model does not use")]
    UnexpectedTensor {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The model's architecture.
        architecture: String,
    },
    /// A tensor whose shape is not the one that the config asks for.
    #[error("{file}: tensor {tensor} has shape {got:?}, expected {expected:?}")]
    TensorShape {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The shape that follows from the config.
        expected: Vec<usize>,
        /// The shape in the file.
        got: Vec<usize>,
    },
    /// A tensor stored in a type that cannot be loaded.
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
    /// A tensor that holds a number which makes no sense there, or has no counterpart here.
    #[error("{file}: tensor {tensor} holds {value}, expected {expected}")]
    TensorValue {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The number.
        value: f32,
        /// What would be valid.
        expected: String,
    },
    /// Weights that were quantised before they were written can be had in no other format.
    #[error("the weights are stored in {stored}, they cannot be had in {requested}")]
    AlreadyQuantized {
        /// The format in the files.
        stored: WeightFormat,
        /// The format asked for.
        requested: WeightFormat,
    },
    /// A file or folder cannot be written.
    #[error("{file} cannot be written")]
    Write {
        /// The file or folder.
        file: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// `tokenizer.json` is not accepted by the tokenizer library.
    #[error("the tokenizer cannot be used")]
    Tokenizer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// `tokenizer.json` asks for something whose exact bytes per token are not known here.
    #[error("tokenizer.json: {part} is {value}, supported: {known}")]
    UnsupportedTokenizer {
        /// Part of the tokenizer.
        part: &'static str,
        /// What stands there.
        value: String,
        /// What is implemented.
        known: &'static str,
    },
    /// A tensor whose values the device or the format cannot take.
    #[error("tensor {tensor} cannot be loaded")]
    Weight {
        /// The tensor.
        tensor: String,
        /// Why.
        #[source]
        source: lm_kernels::Error,
    },
    /// A cache that was not made by the model that should write to it.
    #[error(
        "the cache is another model's: it has {got} layers, or layers of another shape, expected {expected}"
    )]
    ForeignCache {
        /// Layers of the model.
        expected: usize,
        /// Layers of the cache.
        got: usize,
    },
    /// A kernel, a device or a mapped file failed.
    #[error(transparent)]
    Kernels(#[from] lm_kernels::Error),
    /// One sequence of a batch cannot run; the cache was not touched.
    #[error("sequence {sequence} of the batch cannot run")]
    Batch {
        /// Index in [`crate::Batch::sequences`].
        sequence: usize,
        /// What is wrong with it.
        #[source]
        problem: BatchProblem,
    },
}

/// What is wrong with one sequence of a [`crate::Batch`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchProblem {
    /// It has no new row.
    #[error("it has no rows")]
    Empty,
    /// An id beyond the embedding's rows.
    #[error("id {id} in row {row}, the embedding has {rows} rows")]
    UnknownToken {
        /// The row.
        row: usize,
        /// The id.
        id: u32,
        /// Number of ids the model knows.
        rows: usize,
    },
    /// Embedding rows of another width than the model's, or not whole rows.
    #[error("{values} embedding values in rows of {hidden_size}, expected whole rows of {expected}")]
    EmbeddingWidth {
        /// Number of values.
        values: usize,
        /// Width given.
        hidden_size: usize,
        /// The model's hidden size.
        expected: usize,
    },
    /// Not one position for each row.
    #[error("{positions} positions for {rows} rows")]
    PositionCount {
        /// Number of positions.
        positions: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A position at or beyond the model's context.
    #[error("row {row} has position {position}, the context holds {context_len}")]
    Position {
        /// The row.
        row: usize,
        /// The position.
        position: u32,
        /// The model's context.
        context_len: usize,
    },
    /// More slots than the model's context.
    #[error("{slots} slots are needed, the context holds {context_len}")]
    ContextFull {
        /// Cached and new slots.
        slots: usize,
        /// The model's context.
        context_len: usize,
    },
    /// A block table that does not cover the cached and new slots.
    #[error("{pages} pages for {slots} slots, expected {expected}")]
    BlockTable {
        /// Pages given.
        pages: usize,
        /// Cached and new slots.
        slots: usize,
        /// Pages that cover them.
        expected: usize,
    },
    /// Not one block table for each group of the cache.
    #[error("{tables} block tables, the cache has {expected} groups")]
    BlockTables {
        /// Tables given.
        tables: usize,
        /// Groups of the cache.
        expected: usize,
    },
    /// [`crate::NO_PAGE`] in place of a page that a group needs or writes to.
    #[error("page {index} of the sequence is not there, and it is needed")]
    MissingPage {
        /// Index in the block table.
        index: usize,
    },
    /// A page outside the pool.
    #[error("page {page}, the pool has {num_pages}")]
    PageOutsidePool {
        /// The page.
        page: u32,
        /// Pages in the pool.
        num_pages: usize,
    },
    /// A page that gets new rows and is used a second time in the batch.
    #[error("page {page} gets new rows and is also used by sequence {other}")]
    SharedPage {
        /// The page.
        page: u32,
        /// The other sequence (or the same one, when its table names the page twice).
        other: usize,
    },
    /// A span that is empty, leaves the rows or overlaps another.
    #[error("span of rows {start}..{end} is empty, leaves the {rows} rows or overlaps another span")]
    Span {
        /// First row.
        start: usize,
        /// Row after the last.
        end: usize,
        /// Number of rows.
        rows: usize,
    },
    /// Logits wanted of a row that is not there.
    #[error("logits of row {row} are wanted, it has {rows} rows")]
    LogitRow {
        /// The row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// An adapter that is not loaded.
    #[error("adapter {adapter} is not loaded")]
    UnknownAdapter {
        /// The adapter.
        adapter: u32,
    },
}
