//! Error types of this crate. Wrong shapes between our own functions are panics instead.

use std::io;
use std::path::PathBuf;

/// Result of the fallible functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors about files, devices, settings and weights.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name from outside (a flag, a setting, an environment variable) is unknown.
    #[error("unknown {what} `{name}`, expected one of: {known}")]
    UnknownName {
        /// Kind of name, such as `device`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The known names.
        known: String,
    },

    /// The device exists, but this build has no code for it.
    #[error("device `{device}` is not compiled in; build with feature `{feature}`")]
    DeviceNotCompiled {
        /// Name of the device requested.
        device: &'static str,
        /// The cargo feature that enables it.
        feature: &'static str,
    },

    /// The device is compiled in, but this machine has no adapter for it.
    #[error("no usable graphics adapter: {reason}")]
    NoAdapter {
        /// Message of the graphics layer.
        reason: String,
    },

    /// `LM_CPU` requests an instruction set that this processor does not have.
    #[error("LM_CPU: this processor cannot run `{isa}` kernels, only those up to `{best}`")]
    UnsupportedIsa {
        /// Name of the instruction set requested.
        isa: &'static str,
        /// Name of the widest one this processor has.
        best: &'static str,
    },

    /// The global pool is already running with another number of threads.
    #[error("the global thread pool has {threads} threads already, {requested} came too late")]
    PoolStarted {
        /// Number of threads it has.
        threads: usize,
        /// Number of threads requested.
        requested: usize,
    },

    /// A file cannot be opened or mapped.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// Operation attempted, such as `open`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },

    /// A weight's number of elements differs from that of its shape.
    #[error("a [{rows}, {cols}] weight has {expected} elements, the source has {got}")]
    SourceLength {
        /// Rows of the shape.
        rows: usize,
        /// Columns of the shape.
        cols: usize,
        /// `rows * cols`.
        expected: usize,
        /// Elements in the source.
        got: usize,
    },

    /// The length in bytes is not a multiple of the element size.
    #[error("{bytes} bytes are not a whole number of {dtype} elements")]
    PartialElement {
        /// Name of the element type.
        dtype: &'static str,
        /// Number of bytes.
        bytes: usize,
    },

    /// A weight's value is not representable in the format it is packed to.
    #[error("the weight at row {row}, column {col} is {value}, which {format} cannot hold")]
    NotRepresentable {
        /// Row of the value.
        row: usize,
        /// Column of the value.
        col: usize,
        /// The value.
        value: f32,
        /// Name of the target format.
        format: &'static str,
    },

    /// Floats cannot be quantised to a format that is only read from files.
    #[error("weights cannot be quantised to {format}: its blocks are read from files only")]
    NotQuantizable {
        /// Name of the format requested.
        format: &'static str,
    },

    /// The row length is not a multiple of the format's block size.
    #[error("rows of {cols} columns are not a whole number of {format} blocks of {block}")]
    PartialBlock {
        /// Columns of the shape.
        cols: usize,
        /// Columns of a block.
        block: usize,
        /// Name of the format.
        format: &'static str,
    },

    /// The number of importances is not one per column of the matrix, or of each of several equal parts of
    /// its rows.
    #[error(
        "{got} importances for a [{rows}, {cols}] weight, expected {cols}, or as many for each of several equal parts of the rows"
    )]
    ImportanceShape {
        /// Rows of the weight.
        rows: usize,
        /// Columns of the weight.
        cols: usize,
        /// Number of importances.
        got: usize,
    },

    /// An importance is negative or not finite, or all importances of a matrix are zero.
    #[error(
        "the importance of column {col} of matrix {matrix} is {value}, expected 0 or more, and more than 0 in some column"
    )]
    ImportanceValue {
        /// The matrix, of several stacked ones.
        matrix: usize,
        /// The column.
        col: usize,
        /// The value.
        value: f32,
    },

    /// The size of a shape in bytes overflows the address space.
    #[error("the shape {shape:?} is too large")]
    ShapeOverflow {
        /// The shape, outermost dimension first.
        shape: Vec<usize>,
    },

    /// Memory allocation failed.
    #[error("cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// Number of bytes requested.
        bytes: usize,
    },

    /// A device failed during accepted work. GPU work is queued, so the cause may be some operations back.
    #[error("the device failed: {reason}")]
    Device {
        /// Message of the device layer.
        reason: String,
    },
}

/// Returns the value of this name, one of `all`; the error lists their names.
pub(crate) fn find_named<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T> {
    let known = || all.iter().map(|&value| name_of(value)).collect::<Vec<_>>().join(", ");
    let found = all.iter().copied().find(|&value| name_of(value) == name);
    found.ok_or_else(|| Error::UnknownName { what, name: name.to_owned(), known: known() })
}

impl Error {
    /// Offsets the row numbers in the error by `rows`, the number of the weight's rows before them.
    #[must_use]
    pub fn after_rows(mut self, rows: usize) -> Self {
        if let Self::NotRepresentable { row, .. } = &mut self {
            *row += rows;
        }
        self
    }
}
