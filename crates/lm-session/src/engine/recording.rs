//! Records of the requests of an engine.

use std::io::Write;
use std::sync::{MutexGuard, PoisonError};

use super::Engine;
use crate::error::Result;
use crate::record::{RecordHeader, Recorder};

impl Engine {
    /// Starts recording requests, one JSON line for each when it has ended; the first line is
    /// [`Engine::record_header`]. See [`RequestRecord`](crate::RequestRecord). A request whose record cannot
    /// be written ends with [`Error::Recording`](crate::Error::Recording).
    ///
    /// # Errors
    /// [`Error::Recording`](crate::Error::Recording) when the first line cannot be written.
    pub fn record(&self, out: impl Write + Send + 'static) -> Result<()> {
        let recorder = Recorder::new(Box::new(out), &self.record_header())?;
        *self.recorder_slot() = Some(recorder);
        Ok(())
    }

    /// Ends recording; running requests are still written.
    pub fn stop_recording(&self) {
        *self.recorder_slot() = None;
    }

    fn recorder_slot(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.shared.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Recorder of the requests, if recording.
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.recorder_slot().clone()
    }

    /// Returns the first line of a record of this engine.
    pub fn record_header(&self) -> RecordHeader {
        RecordHeader {
            format: RecordHeader::FORMAT.to_owned(),
            version: RecordHeader::VERSION,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            model: self.name().to_owned(),
            fingerprint: self.fingerprint().to_owned(),
            context_tokens: self.context_tokens(),
        }
    }
}
