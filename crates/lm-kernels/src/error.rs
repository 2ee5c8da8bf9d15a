//! What can go wrong in this crate. Wrong shapes between our own functions are panics instead.

use std::io;
use std::path::PathBuf;

use crate::{Device, FloatDtype, Isa, WeightFormat};

/// The result of everything fallible in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A fact about a file, a device, a setting or a weight that stops the work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A word from outside (a flag, a setting, an environment variable) names nothing known.
    #[error("unknown {what} `{name}`, expected one of: {known}")]
    UnknownName {
        /// What the word should have named, such as `device`.
        what: &'static str,
        /// The word as it came.
        name: String,
        /// The words that would have been understood.
        known: &'static str,
    },

    /// The device exists, but this build has no code for it.
    #[error("device `{device}` is not compiled in; build with feature `{feature}`")]
    DeviceNotCompiled {
        /// The device asked for.
        device: Device,
        /// The cargo feature that brings it.
        feature: &'static str,
    },

    /// The device is compiled in, but this machine offers nothing to run it on.
    #[error("no usable graphics adapter: {reason}")]
    NoAdapter {
        /// What the graphics layer said.
        reason: String,
    },

    /// `LM_CPU` asks for instructions that this processor does not have.
    #[error("this processor cannot run `{isa}` kernels, the widest it can run is `{best}`")]
    UnsupportedIsa {
        /// The instruction set asked for.
        isa: Isa,
        /// The widest one this processor has.
        best: Isa,
    },

    /// The global pool runs already with another number of threads.
    #[error("the global thread pool has {threads} threads already, {requested} came too late")]
    PoolStarted {
        /// How many threads it has.
        threads: usize,
        /// How many were asked for.
        requested: usize,
    },

    /// A file cannot be opened or mapped.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried, such as `open`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },

    /// A weight has another number of elements than its shape says.
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

    /// Bytes that should hold whole elements end in the middle of one.
    #[error("{bytes} bytes are no whole number of {dtype} elements")]
    PartialElement {
        /// The element type.
        dtype: FloatDtype,
        /// How many bytes came.
        bytes: usize,
    },

    /// A weight's value has no counterpart in the format it should be packed to.
    #[error("the weight at row {row}, column {col} is {value}, which {format} cannot hold")]
    NotRepresentable {
        /// Row of the value.
        row: usize,
        /// Column of the value.
        col: usize,
        /// The value.
        value: f32,
        /// The format to pack to.
        format: WeightFormat,
    },

    /// Floats cannot be packed to a format that is only read from files.
    #[error("weights cannot be quantised to {format}: its blocks are read from files only")]
    NotQuantizable {
        /// The format asked for.
        format: WeightFormat,
    },

    /// Rows that are no whole number of a format's blocks.
    #[error("rows of {cols} columns are no whole number of {format} blocks of {block}")]
    PartialBlock {
        /// Columns of the shape.
        cols: usize,
        /// Columns of a block.
        block: usize,
        /// The format.
        format: WeightFormat,
    },

    /// A shape whose size in bytes does not fit the address space.
    #[error("the shape {shape:?} is too large")]
    ShapeOverflow {
        /// The shape, outermost dimension first.
        shape: Vec<usize>,
    },

    /// The allocator refused.
    #[error("cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },

    /// A device failed at work it had accepted; GPU work is queued, so that the cause may lie some operations back.
    #[error("the device failed: {reason}")]
    Device {
        /// What the device layer said.
        reason: String,
    },
}

impl Error {
    /// The same error, where the rows that it names are those after the first `rows` of a weight.
    #[must_use]
    pub fn after_rows(mut self, rows: usize) -> Self {
        if let Self::NotRepresentable { row, .. } = &mut self {
            *row += rows;
        }
        self
    }
}
