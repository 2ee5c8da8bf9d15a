//! Errors of this crate: facts about files, tensors and batches.

use std::io;
use std::path::Path;

use lm_kernels::WeightFormat;

/// Result with this crate's [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of opening, loading or running a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the model, one of its keys or one of its tensors is missing or not valid.
    #[error(transparent)]
    Format(#[from] lm_formats::Error),
    /// Logits of tokens, of a model that gives embeddings or labels.
    #[error("{architecture} gives no tokens here: it is a model of embeddings or labels")]
    NoTokens {
        /// `model_type` of the config.
        architecture: String,
    },
    /// Logits of labels, of a model without a classifier.
    #[error("{architecture} has no classifier here")]
    NoLabels {
        /// `model_type` of the config.
        architecture: String,
    },
    /// The tokenizer is not valid, or not supported.
    #[error(transparent)]
    Tokenizer(#[from] lm_tokenizer::Error),
    /// A folder with more than one GGUF model.
    #[error("{location} has several GGUF models: {}; name one of the files", names.join(", "))]
    SeveralModels {
        /// The folder.
        location: String,
        /// The files; of split models, the first shard only.
        names: Vec<String>,
    },
    /// An `mmproj` file for a model that is not a GGUF model.
    #[error("{model} is not a GGUF model: it takes no mmproj file, its own files contain the vision encoder")]
    ProjectorWithoutGguf {
        /// Name of the model.
        model: String,
    },
    /// A property of a model that a GGUF file of its architecture cannot represent: it would be read back as
    /// another value.
    #[error("{what} is {value}; a GGUF file of {architecture} cannot say so and would be read as {read}")]
    NoGgufForm {
        /// `general.architecture`.
        architecture: String,
        /// The property.
        what: String,
        /// Its value.
        value: String,
        /// The value that would be read back.
        read: String,
    },
    /// A property of a GGUF file's tokenizer that a `tokenizer.json` cannot represent: it would be read back
    /// as another value.
    #[error("{what} is {value}; a tokenizer.json cannot say so and would be read as {read}")]
    NoTokenizerJson {
        /// The property.
        what: String,
        /// Its value.
        value: String,
        /// The value that would be read back.
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
    /// A tensor is in two files.
    #[error("tensor {tensor} is in both {first} and {second}")]
    DuplicateTensor {
        /// The tensor.
        tensor: String,
        /// One file.
        first: String,
        /// The other file.
        second: String,
    },
    /// A tensor that the architecture does not use.
    #[error("{file} has tensor {tensor}, which a {architecture} model does not use")]
    UnexpectedTensor {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The model's architecture.
        architecture: String,
    },
    /// A tensor with a value that is invalid there, or has no equivalent here.
    #[error("{file}: tensor {tensor} holds {value}, expected {expected}")]
    TensorValue {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The number.
        value: f32,
        /// Description of the valid values.
        expected: String,
    },
    /// An importance matrix of another model.
    #[error("{file} has the importance of none of the matrices of {model}")]
    NoImportance {
        /// The file.
        file: String,
        /// Name of the model.
        model: String,
    },
    /// Weights that are stored quantised cannot be loaded or written in another format.
    #[error(
        "the weights are quantised already: they are stored in {stored} and cannot be loaded or written in {requested}"
    )]
    AlreadyQuantized {
        /// The format in the files.
        stored: WeightFormat,
        /// The requested format.
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
    /// A tensor with values that the device or the format cannot represent.
    #[error("tensor {tensor} cannot be loaded")]
    Weight {
        /// The tensor.
        tensor: String,
        /// Cause.
        #[source]
        source: lm_kernels::Error,
    },
    /// A cache of another model.
    #[error(
        "the cache is another model's: it has {got} layers, or layers of another shape, expected {expected}"
    )]
    ForeignCache {
        /// Layers of the model.
        expected: usize,
        /// Layers of the cache.
        got: usize,
    },
    /// An image or an audio clip cannot be given to the model.
    #[error(transparent)]
    Media(#[from] lm_media::Error),
    /// A kernel, a device or a mapped file failed.
    #[error(transparent)]
    Kernels(#[from] lm_kernels::Error),
    /// One sequence of a batch cannot run; the cache is unchanged.
    #[error("sequence {sequence} of the batch cannot run")]
    Batch {
        /// Index in [`crate::Batch::sequences`].
        sequence: usize,
        /// The problem with it.
        #[source]
        problem: BatchProblem,
    },
}

/// Error for a file or folder that cannot be written.
pub(crate) fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Write { file: path.display().to_string(), source }
}

/// Problem with one sequence of a [`crate::Batch`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchProblem {
    /// The sequence has no new rows.
    #[error("it has no rows")]
    Empty,
    /// Rows of a bidirectional model after cached ones.
    #[error("a bidirectional model reads a text in one call, and {cached_len} of its tokens were in another")]
    NotWhole {
        /// Number of tokens of earlier calls.
        cached_len: usize,
    },
    /// A token id outside the embedding table.
    #[error("id {id} in row {row}, the embedding has {rows} rows")]
    UnknownToken {
        /// The row.
        row: usize,
        /// The id.
        id: u32,
        /// Number of ids in the embedding table.
        rows: usize,
    },
    /// Embedding rows of another width than the model's, or an incomplete row.
    #[error("{values} embedding values in rows of {hidden_size}, expected whole rows of {expected}")]
    EmbeddingWidth {
        /// Number of values.
        values: usize,
        /// Width given.
        hidden_size: usize,
        /// The model's hidden size.
        expected: usize,
    },
    /// The number of positions differs from the number of rows.
    #[error("{positions} positions for {rows} rows")]
    PositionCount {
        /// Number of positions.
        positions: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A position at or beyond the model's context length.
    #[error("row {row} has position {position}, the context holds {context_len}")]
    Position {
        /// The row.
        row: usize,
        /// The position.
        position: u32,
        /// The model's context length.
        context_len: usize,
    },
    /// More slots than the model's context length.
    #[error("{slots} slots are needed, the context holds {context_len}")]
    ContextFull {
        /// Cached and new slots.
        slots: usize,
        /// The model's context length.
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
    /// The number of block tables differs from the number of cache groups.
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
    /// A page that receives new rows and occurs twice in the batch.
    #[error("page {page} gets new rows and is also used by sequence {other}")]
    SharedPage {
        /// The page.
        page: u32,
        /// The other sequence (or the same one, if its table contains the page twice).
        other: usize,
    },
    /// A span that is empty, out of range or overlaps another.
    #[error("span of rows {start}..{end} is empty, leaves the {rows} rows or overlaps another span")]
    Span {
        /// First row.
        start: usize,
        /// Row after the last.
        end: usize,
        /// Number of rows.
        rows: usize,
    },
    /// Rows of an image that are empty, exceed the call or overlap those of another.
    #[error(
        "rows {start}..{end} of an image are empty, leave the {rows} rows or overlap those of another image"
    )]
    MediaRows {
        /// First row of the call.
        start: usize,
        /// Row after the last.
        end: usize,
        /// Number of rows of the call.
        rows: usize,
    },
    /// Rows that an encoded image does not have, in its first layer or in a deeper one.
    #[error("rows {start}..{end} of an image of {rows} rows")]
    MediaRange {
        /// First row of the image.
        start: usize,
        /// Row after the last.
        end: usize,
        /// Number of rows of the image.
        rows: usize,
    },
    /// An image with rows for more layers than the model has.
    #[error("an image has rows for {layers} layers, the model has {expected}")]
    MediaLayers {
        /// Layers for which the image has rows.
        layers: usize,
        /// The model's layers.
        expected: usize,
    },
    /// Logits requested for a row that does not exist.
    #[error("logits of row {row} are wanted, it has {rows} rows")]
    LogitRow {
        /// The row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// An adapter that was loaded for another model.
    #[error("adapter {adapter} was loaded for another model")]
    ForeignAdapter {
        /// Name of the adapter.
        adapter: String,
    },
}
