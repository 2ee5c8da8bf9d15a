//! Arguments written as a JSON object.

use crate::parsers::body_reader::MAX_BLOCK_BYTES;
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::json_mend::JsonMend;
use crate::parsers::json_scan::{JsonScan, JsonStep, UNTERMINATED};
use crate::parsers::marker_scan::Prefix;
use crate::parsers::recovery::Tolerance;

/// JSON object that arrives in pieces.
#[derive(Debug)]
pub(super) struct JsonArguments {
    pub(super) start: usize,
    scan: JsonScan,
    mend: JsonMend,
}

impl JsonArguments {
    /// Creates a reader of the object at `start`.
    pub(super) fn new(start: usize, tolerance: Tolerance) -> Self {
        Self { start, scan: JsonScan::new(tolerance), mend: JsonMend::new(tolerance) }
    }

    /// Reads `text` from `at` on, up to the end of the object; returns true if it is reached. `close` is the
    /// call's closing marker, before which the end of a string may be missing.
    pub(super) fn follow(&mut self, text: &str, at: &mut usize, close: &str) -> Result<bool, Fault> {
        for &byte in &text.as_bytes()[*at..] {
            let step = match self.scan.unterminated_at(&text.as_bytes()[*at..], close) {
                Prefix::Partial => break,
                _ if *at - self.start == MAX_BLOCK_BYTES => JsonStep::Invalid("it is too long"),
                Prefix::Found => JsonStep::Invalid(UNTERMINATED),
                Prefix::Absent => self.scan.step(byte),
            };
            if let JsonStep::Invalid(reason) = step {
                return Err(Fault::malformed(reason));
            }
            *at += 1;
            if step == JsonStep::Close && self.scan.depth() == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Emits a piece of the object.
    pub(super) fn emit(&mut self, piece: &str, calls: &mut CallSink<'_>) {
        calls.arguments(&self.mend.push(piece));
    }
}
