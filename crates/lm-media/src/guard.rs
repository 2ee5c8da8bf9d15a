//! Conversion of panics in decoding libraries to errors of the file: damaged headers can exceed their
//! arithmetic and tables.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

/// Runs code of a decoding library on a file of this format.
pub(crate) fn guarded<T>(format: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let panicked = |_| Err(Error::Invalid { format, message: "the decoder panicked".into() });
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked)
}
