//! Interface between the reply parser and the readers of call bodies.

use std::fmt::Debug;
use std::ops::ControlFlow;

use super::call_sink::CallSink;
use super::fault::Fault;

/// Maximum length of a block, so that endless text ends a reader.
pub(crate) const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Checks the length of a block.
///
/// # Errors
/// If it exceeds [`MAX_BLOCK_BYTES`].
pub(crate) fn check_length(text: &str) -> Result<(), Fault> {
    if text.len() > MAX_BLOCK_BYTES { Err(Fault::malformed("it is too long")) } else { Ok(()) }
}

/// Incremental reader of a call's body, between its opening and closing marker.
///
/// A reader is created for one block and dropped with it. It decides on certain text only: its events do not
/// depend on the split of the text.
pub(crate) trait BodyReader: Debug + Send {
    /// Continues with `text`, the whole block so far: it starts right after the opening marker (or with the
    /// body's first character if there is no marker), and only grows between calls. The reader keeps its
    /// position, so that the work is linear.
    ///
    /// # Errors
    /// If this is not a call.
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault>;

    /// Ends the body at the end of the reply, after the last `read` returned [`Progress::Open`]: completes a
    /// call that lacks only its last marker, and returns the end of the body.
    ///
    /// # Errors
    /// [`Fault::unfinished`] if the call is incomplete.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault>;

    /// Number of bytes read.
    fn position(&self) -> usize;

    /// Number of bytes of complete calls, if a body may contain several.
    fn completed(&self) -> usize {
        0
    }
}

/// Next step of a reader: another one, or the end of `read`.
pub(crate) type Step = ControlFlow<Progress>;

/// The step that waits for more text.
pub(crate) const NEED_TEXT: Step = Step::Break(Progress::Open);

/// Progress of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Incomplete: more text is needed.
    Open,
    /// The body ended before this byte. Whitespace and the closing marker, which the driver reads, may
    /// follow.
    Complete(usize),
    /// The text is the answer, which continues at this byte, and not a call.
    Answer(usize),
}
